// The tab Files: what the tool calls of a session name.
import { get } from "./api.js";
import { el, plural } from "./dom.js";

export async function drawFiles(session) {
  const found = await get(`${session.base}/files`);
  if (!found.files.length) return [el("p", { class: "hint" }, "No tool call names a file.")];
  const tools = Object.entries(found.tools).map(([name, count]) => `${name} ${count.toLocaleString("en")}`).join(" · ");
  return [
    el("p", {}, `${plural(found.files.length + found.more, "file")}${found.more ? `, the first ${found.files.length} are shown` : ""}`),
    el("p", { class: "more" }, `Calls: ${tools}`),
    el("ul", { class: "files" }, ...found.files.map((file) => drawFile(file, session))),
  ];
}

// Each press of the button goes to the next call.
function drawFile(file, session) {
  let next = 0;
  const words = Object.entries(file.tools).map(([name, count]) => (count > 1 ? `${name} ×${count}` : name)).join(", ");
  const place = el("span", { class: "more", role: "status" });
  const button = el("button", { class: "file", title: "Go to the next call that names it", onclick: () => {
    session.goTo({ at: file.at[next % file.at.length] });
    place.textContent = ` · call ${(next % file.at.length) + 1} of ${file.calls}`;
    next++;
  } }, file.file);
  return el("li", {}, button, el("span", { class: "more" }, words), place);
}
