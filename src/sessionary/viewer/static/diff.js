// Two sessions side by side, and the choice of the other one.
import { ago, dollars, el, plural, quantity } from "./dom.js";
import { fill, openPage } from "./charts.js";
import { projectOf } from "./list.js";

const MOST = 60;

// The sessions to compare one with: its forks, its parent and its project first.
export function chooseOther(row, list) {
  const box = openPage(`Compare ${row.title || row.id} with\u2026`, `#/s/${row.key}`);
  const kin = (one) => (one.parent === row.id || one.id === row.parent ? 2 : 0) + (projectOf(one) === projectOf(row) ? 1 : 0);
  const others = list.rows.filter((one) => one.key !== row.key).sort((a, b) => kin(b) - kin(a));
  const found = el("ul", { class: "choices" }), count = el("p", { class: "hint", role: "status" });
  const input = el("input", { type: "search", "aria-label": "Title, project or id of the other session", placeholder: "Title, project or id", oninput: () => draw() });
  const draw = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const some = others.filter((one) => words.every((word) => `${one.title || ""} ${one.id} ${projectOf(one)} ${one.kind}`.toLowerCase().includes(word)));
    found.replaceChildren(...some.slice(0, MOST).map((one) => el("li", {}, el("a", { href: `#/diff/${row.key}/${one.key}`, dir: "auto" }, one.title || one.id), el("span", { class: "more" }, ` ${[one.kind, projectOf(one), plural(one.turns, "turn"), ago(one.updated)].filter(Boolean).join(" \u00b7 ")}`))));
    count.textContent = some.length > MOST ? `the first ${MOST} of ${plural(some.length, "session")}` : some.length ? "" : "No session matches.";
  };
  box.replaceChildren(input, found, count);
  draw();
  input.focus();
}

export function showDiff(row, other) {
  const box = openPage(`${row.title || row.id} \u2194 ${other.title || other.id}`, `#/s/${row.key}`, el("a", { href: `#/diff/${other.key}/${row.key}` }, "Swap"), el("a", { href: `#/diff/${row.key}` }, "Another\u2026"));
  return fill(box, `/api/session/${row.key}/diff/${other.key}`, (found) => [facts(found), turns(found), counts("Tool", "name", found.tools), counts("File", "file", found.files)]);
}

const table = (label, head, rows) => el("div", { class: "plot", tabindex: "0", role: "group", "aria-label": label },
  el("table", {}, el("thead", {}, el("tr", {}, ...head.map((name) => el("th", { scope: "col", dir: "auto" }, name)))), el("tbody", {}, ...rows)));

const line = (name, values, differs) => el("tr", { class: differs ? "differs" : "" }, el("th", { scope: "row", dir: "auto" }, name), ...values.map((value) => el("td", { dir: "auto" }, value)));

function facts({ a, b, equal_turns: equal }) {
  const rows = [["Agent", "kind"], ["Turns", "turns"], ["Messages", "messages"], ["Failed tools", "errors"], ["Models", "models"], ["Tokens", "tokens", (number) => quantity(number || null)], ["Cost", "cost", dollars]];
  const link = (side) => el("a", { href: `#/s/${side.key}` }, side.title);
  const made = table("Totals of both", ["", "", ""], rows.map(([name, key, words = String]) => [name, [words(a[key]), words(b[key])], String(a[key]) !== String(b[key])])
    .filter(([, values]) => values.some(Boolean)).map((one) => line(...one)));
  const head = made.querySelectorAll("thead th");
  head[0].append("Session");
  head[1].append(link(a));
  head[2].append(link(b));
  return el("div", {}, made, el("p", { class: "facts" }, equal ? `The first ${plural(equal, "turn")} are equal.` : "They differ from the first turn on."));
}

function turns(found) {
  const equal = found.equal_turns;
  const rows = found.rows.map((pair, at) => [pair, at]);
  const drawn = rows.slice(equal).map(pairOf(found));
  const same = rows.slice(0, equal);
  const box = el("section", { class: "pairs" });
  if (same.length) {
    const body = el("div", {});
    box.append(el("details", { ontoggle: () => { if (!body.firstChild) body.append(...same.map(pairOf(found))); } }, el("summary", {}, plural(same.length, "equal turn")), body));
  }
  box.append(...drawn, found.more ? el("p", { class: "hint" }, `${plural(found.more, "further turn")} not shown`) : "");
  return box;
}

const pairOf = (found) => ([pair, at]) => el("div", { class: "pair" }, ...pair.map((turn, side) => (turn ? drawTurn(turn, at + 1, (side ? found.b : found.a).key) : el("div", { class: "turn missing" }, "\u2013"))));

function drawTurn(turn, number, key) {
  const words = [turn.calls ? plural(turn.calls, "call") : "", turn.errors ? `${turn.errors} failed` : ""].filter(Boolean).join(" \u00b7 ");
  return el("article", { class: "turn" },
    el("p", { class: "said" }, el("a", { href: `#/s/${key}/${turn.index}` }, `${number}.`), " ", el("span", { dir: "auto" }, turn.prompt || "(no text)")),
    turn.answer ? el("p", { class: "answered", dir: "auto" }, turn.answer) : null,
    words ? el("p", { class: "more" }, words) : null);
}

function counts(what, key, rows) {
  const some = rows.filter((row) => row.a !== row.b), same = rows.length - some.length;
  if (!rows.length) return "";
  return el("div", {}, el("h3", {}, `${what}s`), some.length ? table(`${what}s`, [what, "left", "right"], some.map((row) => line(row[key], [String(row.a), String(row.b)], true))) : "",
    same ? el("p", { class: "hint" }, `${plural(same, what.toLowerCase())} as often on both sides`) : "");
}
