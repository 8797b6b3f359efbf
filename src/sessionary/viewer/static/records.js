// The tab Raw: every stored record of the files of a session, or every row of it in a database, page by page.
import { get } from "./api.js";
import { bytes, copy, el } from "./dom.js";

const PAGE = 50, START = 120;

export async function drawRecords(session, drawer, given = {}) {
  const marked = session.marked || session.view[session.at], known = whereItemsAre(session.items);
  const asked = { ...(given.file === undefined ? known.of(marked) : {}), ...given };
  const load = (query) => get(`${session.base}/records?${new URLSearchParams(query)}`);
  const found = await load(asked).catch(() => load({})); // the message may be in a file of another session
  const go = (label, to) => el("button", { disabled: to === null, onclick: () => drawer.open("records", { file: found.file || "", from: to }) }, label);
  const back = found.first > 1;
  const pages = () => el("p", { class: "bar" }, go("First", back ? 1 : null), go("Earlier", back ? Math.max(found.first - PAGE, 1) : null), go("Later", found.next));
  const made = [el("p", { class: "hint" }, found.unit === "row" ? "Every row of this session in its database, from that of the chosen message on. Stored JSON is shown as JSON; encryption keys are masked."
    : "Every record as it is stored, from that of the chosen message on; also those that are not a message, and damaged ones.")];
  if (found.files.length > 1) made.push(el("p", {}, el("label", {}, "File ", el("select", { onchange: (event) => drawer.open("records", { file: event.target.value }) },
    ...found.files.map((one) => el("option", { value: one.name, selected: one.name === found.file }, `${one.name} · ${bytes(one.size)}`))))));
  if (!found.records.length) return [...made, el("p", { class: "hint" }, "No records are stored from here on."), pages()];
  return [...made, pages(), ...found.records.map((one, at) => draw(one, session, at === 0, itemsOf(one, session, found, known), found)), pages()];
}

const itemsOf = (one, session, found, known) => (found.unit === "row" ? session.items.filter((item) => item.row && isRow(item, one)) : found.unit === "line" ? known.find(found.file.split("/").pop(), one.number) : []);

// The place of a message names its row by table and key, or by its key; a part of a row has a number behind that.
const isRow = (item, one) => [one.row, one.row.slice(one.row.indexOf("/") + 1)].includes(item.row.split("#")[0]);

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
  return { find: (name, line) => at.get(`${name}:${line}`) || [], of: (item) => ({ file: files.get(item) ?? "", line: item?.line ?? 0, row: item?.row?.split("#")[0] ?? "" }) };
}

function draw(one, session, open, items, found) {
  const message = items.find((item) => !item.problem), problem = items.find((item) => item.problem);
  const place = `${found.unit} ${one.number.toLocaleString("en")}${one.row ? ` of ${one.row.slice(0, one.row.indexOf("/"))}` : ""}`;
  const body = el("div", { class: "body" });
  const fill = () => {
    if (body.firstChild) return;
    body.append(el("div", { class: "bar" }, message ? el("button", { onclick: () => session.goTo({ at: message.at }) }, "Show the message") : null, el("button", { onclick: (event) => copy(one.text, event.target) }, "Copy")),
      el("pre", {}, pretty(one.text, found.unit === "row")), one.cut ? el("p", { class: "hint" }, `${bytes(one.cut)} more are not shown.`) : "");
  };
  const says = problem ? el("span", { class: "badge" }, problem.text) : message ? el("span", { class: "more" }, message.speaker) : null;
  const made = el("details", { class: "record", open }, el("summary", {}, el("b", {}, place), ` · ${bytes(one.size)} `, says, " ", el("code", {}, one.text.slice(0, START))), body);
  if (open) fill();
  made.addEventListener("toggle", () => { if (made.open) fill(); });
  return made;
}

function pretty(text, nested) {
  try { return JSON.stringify(JSON.parse(text, nested ? (_, value) => parsed(value) : undefined), null, 2); } catch { return text; }
}

function parsed(value) {
  if (typeof value !== "string" || !/^[[{]/.test(value)) return value;
  try { return JSON.parse(value); } catch { return value; }
}
