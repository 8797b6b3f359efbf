// The tab Raw: the stored records of the messages, page by page.
import { get } from "./api.js";
import { bytes, copy, el } from "./dom.js";

export async function drawRecords(session, drawer, from) {
  const start = from ?? Math.max((session.marked || session.view[session.at])?.at ?? 0, 0);
  const found = await get(`${session.base}/records?from=${start}`);
  const go = (label, to) => el("button", { disabled: to === null, onclick: () => drawer.open("records", to) }, label);
  const pages = () => el("p", { class: "bar" }, go("First", start ? 0 : null), go("Earlier", start ? Math.max(start - 50, 0) : null), go("Later", found.next));
  if (!found.records.length) return [el("p", { class: "hint" }, "No records are stored from here on."), pages()];
  return [el("p", { class: "hint" }, "The stored record of each message, from the chosen one on. Encryption keys are masked."), pages(), ...found.records.map((one, at) => draw(one, session, at === 0)), pages()];
}

function draw(one, session, open) {
  const place = one.line ? `line ${one.line.toLocaleString("en")}` : `message ${one.at}`;
  const body = el("div", { class: "body" });
  const fill = () => {
    if (body.firstChild) return;
    body.append(el("div", { class: "bar" }, el("button", { onclick: () => session.goTo({ at: one.at }) }, "Show the message"), el("button", { onclick: (event) => copy(one.text, event.target) }, "copy")),
      el("pre", {}, pretty(one.text)), one.cut ? el("p", { class: "hint" }, `${bytes(one.cut)} more are not shown.`) : "");
  };
  const made = el("details", { class: "record", open }, el("summary", {}, el("b", {}, place), ` · ${bytes(one.size)}  `, el("code", {}, one.text.slice(0, 120))), body);
  if (open) fill();
  made.addEventListener("toggle", () => { if (made.open) fill(); });
  return made;
}

function pretty(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}
