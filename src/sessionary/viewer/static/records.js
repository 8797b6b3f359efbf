// The tab Raw: every stored record of the files of a session, page by page; of a database those of its messages.
import { get } from "./api.js";
import { bytes, copy, el } from "./dom.js";

const PAGE = 50, START = 120;

export async function drawRecords(session, drawer, given = {}) {
  const marked = session.marked || session.view[session.at], known = whereItemsAre(session.items);
  const asked = { at: Math.max(marked?.at ?? 0, 0), ...(given.file === undefined ? known.of(marked) : {}), ...given };
  const load = (query) => get(`${session.base}/records?${new URLSearchParams(query)}`);
  const found = await load(asked).catch(() => load({ at: asked.at })); // the message may be in a file of another session
  const least = found.file === null ? 0 : 1, open = (more) => drawer.open("records", { file: found.file || "", ...more });
  const go = (label, to) => el("button", { disabled: to === null, onclick: () => open(found.file === null ? { at: to } : { from: to }) }, label);
  const back = found.first > least;
  const pages = () => el("p", { class: "bar" }, go("First", back ? least : null), go("Earlier", back ? Math.max(found.first - PAGE, least) : null), go("Later", found.next));
  const made = [el("p", { class: "hint" }, found.file === null ? "This session is in a database: the stored record of each message, from the chosen one on. Encryption keys are masked."
    : "Every record as it is stored, from that of the chosen message on; also those that are not a message, and damaged ones.")];
  if (found.files.length > 1) made.push(el("p", {}, el("label", {}, "File ", el("select", { onchange: (event) => drawer.open("records", { file: event.target.value }) },
    ...found.files.map((one) => el("option", { value: one.name, selected: one.name === found.file }, `${one.name} · ${bytes(one.size)}`))))));
  if (!found.records.length) return [...made, el("p", { class: "hint" }, "No records are stored from here on."), pages()];
  return [...made, pages(), ...found.records.map((one, at) => draw(one, session, at === 0, itemsOf(one, session, found, known), found)), pages()];
}

const itemsOf = (one, session, found, known) => (found.file === null ? session.items.filter((item) => item.at === one.number) : found.lines ? known.find(found.file.split("/").pop(), one.number) : []);

// The messages and problems by file and line. A message bears the name of its file where it is another one than before.
function whereItemsAre(items) {
  const at = new Map(), files = new Map();
  let file = items.find((item) => item.file)?.file ?? "";
  for (const item of items) {
    if (item.sub) continue;
    file = item.file ?? file;
    files.set(item, file);
    if (item.line) at.set(`${file}:${item.line}`, (at.get(`${file}:${item.line}`) || []).concat(item));
  }
  return { find: (name, line) => at.get(`${name}:${line}`) || [], of: (item) => ({ file: files.get(item) ?? "", line: item?.line ?? 0 }) };
}

function draw(one, session, open, items, found) {
  const message = items.find((item) => !item.problem), problem = items.find((item) => item.problem);
  const place = `${found.file === null ? "message" : found.lines ? "line" : "part"} ${one.number.toLocaleString("en")}`;
  const body = el("div", { class: "body" });
  const fill = () => {
    if (body.firstChild) return;
    body.append(el("div", { class: "bar" }, message ? el("button", { onclick: () => session.goTo({ at: message.at }) }, "Show the message") : null, el("button", { onclick: (event) => copy(one.text, event.target) }, "Copy")),
      el("pre", {}, pretty(one.text)), one.cut ? el("p", { class: "hint" }, `${bytes(one.cut)} more are not shown.`) : "");
  };
  const says = problem ? el("span", { class: "badge" }, problem.text) : message ? el("span", { class: "more" }, message.speaker) : null;
  const made = el("details", { class: "record", open }, el("summary", {}, el("b", {}, place), ` · ${bytes(one.size)} `, says, " ", el("code", {}, one.text.slice(0, START))), body);
  if (open) fill();
  made.addEventListener("toggle", () => { if (made.open) fill(); });
  return made;
}

function pretty(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}
