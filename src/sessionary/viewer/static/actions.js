// Changes of a session: first what would be done, then the change, then how to undo it.
import { get, post } from "./api.js";
import { bytes, el, plural } from "./dom.js";

const WORDS = { repair: "Repair", rewind: "Rewind", rename: "Rename", trash: "Move to trash" };

// The buttons of what the layout of a session grants, and the place where previews appear.
export async function drawActions(session, done) {
  const names = await get(`${session.base}/actions`);
  const place = el("div", { class: "preview", role: "status" });
  if (!names.length) return [el("p", { class: "hint" }, `Sessions of ${session.row.kind} are only read here; \`sessionary repair ID --out DIR\` writes a mended copy.`)];
  return [el("div", { class: "bar" }, ...names.map((name) => el("button", { onclick: () => begin(name, session, place, done) }, WORDS[name]))), place];
}

function begin(name, session, place, done) {
  const run = (given) => preview(name, session, place, done, given);
  if (name === "rename") return ask(place, "Name", session.row.title || "", (text) => carryOut(name, session, place, done, { name: text }));
  if (name === "rewind") return ask(place, "Keep the turns up to", String(Math.max(session.row.turns - 1, 0)), (text) => run({ turn: Number.parseInt(text, 10) }));
  return run({});
}

function ask(place, label, value, take) {
  const input = el("input", { value, "aria-label": label });
  place.replaceChildren(el("form", { onsubmit: (event) => { event.preventDefault(); take(input.value); } }, el("label", {}, `${label} `, input), " ", el("button", {}, "Go on")));
  input.focus();
}

async function preview(name, session, place, done, given) {
  try {
    const found = await post(`${session.base}/actions/${name}`, { ...given, dry_run: true });
    const nothing = name === "repair" && !found.changed;
    place.replaceChildren(...words(name, found), nothing ? "" : el("p", {}, el("button", { class: "go", onclick: () => carryOut(name, session, place, done, given) }, `${WORDS[name]} now`), " ", el("button", { onclick: () => place.replaceChildren() }, "Cancel")));
    place.querySelector(".go")?.focus();
  } catch (error) { fail(place, error); }
}

function words(name, found) {
  if (name === "trash") return [el("p", {}, `${plural(found.messages, "message")}, ${bytes(found.size)} would move to the trash.`)];
  if (name === "rewind") return [el("p", {}, `${plural(found.messages_dropped, "message")} would be removed, ${found.messages_kept} stay.`)];
  if (!found.changed) return [el("p", {}, found.remaining.length ? "It cannot be repaired." : "Nothing to repair.")];
  return [
    el("p", {}, `${plural(found.messages_after, "message")} after the repair; ${found.messages_before} can be read now.`),
    el("ul", {}, ...found.fixes.map((fix) => el("li", {}, `line ${fix.line}: ${fix.what}`))),
    found.diff ? el("pre", { class: "diff" }, ...found.diff.split("\n").map((line) => el("span", { class: line[0] === "+" ? "add" : line[0] === "-" ? "del" : "same" }, `${line.slice(0, 300)}\n`))) : "",
  ];
}

async function carryOut(name, session, place, done, given) {
  try {
    const before = session.row.title;
    const found = await post(`${session.base}/actions/${name}`, { ...given, dry_run: false });
    const back = name === "rename" ? () => post(`${session.base}/actions/rename`, { name: found.before, dry_run: false }) : found.undo ? () => post(`/api/undo/${found.undo}`, {}) : null;
    const notice = el("p", { role: "status" }, `${WORDS[name]}: done. ${name === "rename" ? `It was ${before}. ` : ""}`);
    if (back) notice.append(el("button", { onclick: async (event) => { event.target.disabled = true; try { await back(); notice.textContent = "Undone."; await done(name, notice); } catch (error) { fail(place, error); } } }, "Undo"));
    place.replaceChildren(notice);
    await done(name, notice);
  } catch (error) { fail(place, error); }
}

function fail(place, error) {
  place.replaceChildren(el("p", { class: "problem" }, error.message, error.hint ? el("span", { class: "hint" }, error.hint) : null));
}
