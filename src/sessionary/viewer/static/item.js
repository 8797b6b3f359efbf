// One message of a transcript as an element.
import { get, post } from "./api.js";
import { clock, copy, el, quantity, setHtml } from "./dom.js";
import { drawImages } from "./images.js";

const LONG_EDIT = 40, MOST = 300_000;
const waiting = [];
let planned = false;

// Markdown becomes HTML on the server, for many texts at once, and only for those near the screen.
function render(part, element) {
  if (part.html !== undefined) { setHtml(element, part.html); addCopies(element); return; }
  element.textContent = part.text;
  element.classList.add("plain");
  waiting.push([part, element]);
  if (!planned) { planned = true; queueMicrotask(send); }
}

async function send() {
  planned = false;
  while (waiting.length) {
    let size = 0, count = 0;
    while (count < waiting.length && size < MOST) size += waiting[count++][0].text.length;
    const some = waiting.splice(0, count);
    try {
      const pages = await post("/api/render", some.map(([part]) => part.text));
      some.forEach(([part, element], at) => {
        part.html = pages[at];
        element.classList.remove("plain");
        setHtml(element, part.html);
        addCopies(element);
      });
    } catch { /* the text stays as it is stored */ }
  }
}

function addCopies(element) {
  for (const pre of element.querySelectorAll("pre"))
    pre.append(el("button", { class: "copy", onclick: (event) => copy(pre.querySelector("code")?.textContent ?? pre.textContent, event.target) }, "copy"));
}

export const textOf = (item) => (item.parts || []).filter((part) => part.kind === "text").map((part) => part.text).join("\n\n");
export const hasError = (item) => Boolean(item.problem) || (item.parts || []).some((part) => part.error || part.result?.error);
export const isPrompt = (item) => item.origin === "person" && !item.inherited;

// The result of a call is shown with the call, wherever it is stored. Returns the message that holds it now.
export function pair(item, calls) {
  const left = [];
  let holder = null;
  for (const part of item.parts || []) {
    if (part.kind === "call" && part.id) calls.set(part.id, [part, item]);
    const found = part.kind === "result" && part.id ? calls.get(part.id) : undefined;
    if (found && !found[0].result) {
      found[0].result = part;
      found[0].resultItem = item;
      item.heldBy = holder = found[1];
    } else left.push(part);
  }
  if (item.parts) item.parts = left;
  return holder;
}

export function drawItem(item, { link, before, base, forks, tokens }) {
  if (item.problem)
    return el("div", { class: `problem ${item.problem}`, role: "article" }, `${item.text}${item.line ? ` (line ${item.line})` : ""}`);
  if (item.origin === "compaction") return divider(item, tokens);
  const quiet = before && before.origin === item.origin && before.turn === item.turn && !before.problem && !item.parts.some((part) => part.kind === "text");
  const box = el("article", { class: `message ${item.origin}${item.outside ? " outside" : ""}${item.inherited ? " inherited" : ""}${quiet ? " quiet" : ""}`, tabindex: "-1" });
  if (!quiet) box.append(head(item, link));
  for (const part of item.parts) box.append(drawPart(part, item, base));
  if (forks) box.append(forks);
  return box;
}

function head(item, link) {
  const more = [item.outside ? "left branch" : "", item.inherited ? "of the session it was forked from" : "", item.model || "",
    item.tokens ? `${quantity(item.tokens.in)} in · ${quantity(item.tokens.out)} out` : ""].filter(Boolean);
  return el("header", {},
    el("b", {}, item.origin === "person" ? `${item.turn && !item.outside ? `${item.turn}. ` : ""}${item.speaker}` : item.speaker),
    el("span", { class: "more" }, more.join(" · ")),
    el("span", { class: "tools" },
      el("button", { title: "Copy the text", onclick: (event) => copy(textOf(item), event.target) }, "copy"),
      el("button", { title: "Copy a link to this message", onclick: (event) => copy(`${location.origin}/${link(item)}`, event.target) }, "link")),
    item.time ? el("time", { datetime: item.time, title: item.time }, clock(item.time)) : null);
}

function divider(item, tokens) {
  const box = el("div", { class: "divider", role: "article" }, el("span", {}, `Compacted here${tokens || ""}`));
  const text = el("div", { class: "text", dir: "auto" });
  const part = item.parts.find((one) => one.kind === "text");
  if (part) box.append(fold(part, "The summary that replaces earlier messages", () => { render(part, text); return text; }));
  return box;
}

// A line that opens; its content is made when it is opened first.
function fold(state, summary, make, isOpen = false) {
  const body = el("div", { class: "body" });
  const made = el("details", {}, typeof summary === "string" ? el("summary", {}, summary) : summary, body);
  const fill = () => { if (!body.firstChild) body.append(make()); };
  if (state.open ?? isOpen) { made.open = true; fill(); }
  made.addEventListener("toggle", () => { state.open = made.open; if (made.open) fill(); });
  return made;
}

function drawPart(part, item, base) {
  if (part.kind === "text") return drawText(part, item, base);
  if (part.kind === "thinking") return fold(part, `Thinking · ${part.text.slice(0, 90).replaceAll("\n", " ")}`, () => { const text = el("div", { class: "text thought", dir: "auto" }); render(part, text); return text; });
  if (part.kind === "call") return drawCall(part, item, base);
  if (part.kind === "result") return fold(part, summaryOf("Result", part.text, part.error), () => resultOf(part, item, base), part.error);
  if (part.images) return drawImages(part, item, base);
  if (part.text) return fold(part, summaryOf(part.name, part.text), () => el("pre", {}, part.text));
  return el("p", { class: "other" }, `[${part.name}]`);
}

function drawText(part, item, base) {
  const text = el("div", { class: "text", dir: "auto" });
  if (item.origin === "harness" && part.text.length > 300)
    return fold(part, part.text.slice(0, 120).replaceAll("\n", " "), () => { render(part, text); return text; });
  render(part, text);
  if (!part.more) return text;
  return el("div", {}, text, whole(`${quantity(part.more)} more characters`, item, base, (full) => full.find((one) => one.kind === "text")?.text));
}

function summaryOf(name, telling, failed, more) {
  return el("summary", { class: failed ? "failed" : "" }, el("b", {}, name), " ", el("code", {}, telling.slice(0, 200).replaceAll("\n", " ")), more ? el("span", { class: "more" }, more) : null, failed ? el("span", { class: "badge" }, "failed") : null);
}

function drawCall(part, item, base) {
  const failed = part.result?.error;
  const counts = part.diff ? `+${part.added} −${part.removed}` : "";
  const open = failed || (part.diff && part.added + part.removed <= LONG_EDIT && part.added + part.removed > 0);
  return fold(part, summaryOf(part.name, part.telling, failed, counts), () => {
    const body = el("div", {}, part.diff ? diffOf(part.text) : el("pre", {}, part.text));
    if (part.more) body.append(whole(`${quantity(part.more)} more characters`, item, base, (full) => full.find((one) => one.id === part.id && one.kind === "call")?.text));
    if (part.result) body.append(resultOf(part.result, part.resultItem || item, base));
    return body;
  }, open);
}

function diffOf(text) {
  return el("pre", { class: "diff" }, ...text.split("\n").map((line) => el("span", { class: line[0] === "+" ? "add" : line[0] === "-" ? "del" : "same" }, line + "\n")));
}

function resultOf(part, item, base) {
  const box = el("div", { class: `result${part.error ? " failed" : ""}` }, el("pre", {}, part.text || "(empty)"));
  if (part.hidden) box.append(el("p", { class: "gap" }, `… ${part.hidden.toLocaleString("en")} more lines`), el("pre", {}, part.tail));
  if (part.images) box.append(drawImages(part, item, base));
  if (part.cut) box.append(whole("show all of it", item, base, (full) => full.find((one) => one.kind === "result" && one.id === part.id)?.text));
  return box;
}

function whole(label, item, base, pick) {
  return el("button", { class: "whole", onclick: async (event) => {
    try {
      const full = await get(`${base}/message/${item.at}`);
      event.target.replaceWith(el("pre", { class: "all" }, pick(full.parts) ?? "(gone)"));
    } catch (error) { event.target.textContent = error.message; }
  } }, label);
}
