// Which sessions the list shows, in which order, and how many each value of a filter would leave.
import { day, el } from "./dom.js";

export const HEALTH = {
  ok: ["✓", "ok"], note: ["✓", "ok"], cosmetic: ["!", "stray bytes"], hides_data: ["!", "hides data"],
  stops_resume: ["✗", "cannot be resumed"], lost_data: ["✗", "lost data"],
};
export const isWell = (row) => row.health === "ok" || row.health === "note";
export const projectOf = (row) => (row.cwd || row.project || "").replace(/\/+$/, "").split("/").pop() || "(none)";

const DAY = 864e5, MOST = 500;
const AGES = [[1, "last 24 hours"], [7, "last 7 days"], [30, "last 30 days"], [365, "last year"]];
const FILTERS = {
  kind: ["Agent", (row) => [row.kind]],
  project: ["Project", (row) => [row.place]],
  health: ["Health", (row) => [isWell(row) ? "ok" : "damaged"]],
  model: ["Model", (row) => row.models],
  when: ["Changed", (row) => AGES.filter(([days]) => row.age < days).map(([, name]) => name)],
  mark: ["Mark", (row) => [...(row.starred ? ["starred"] : []), ...(row.unread || row.opened ? ["unread"] : []), ...(row.archived ? ["archived"] : [])]],
  tag: ["Tag", (row) => row.tags],
};
const NAMES = Object.keys(FILTERS);
const SORTS = {
  changed: ["newest first", null],
  tokens: ["most tokens", (row) => row.tokens || 0],
  cost: ["highest cost", (row) => row.cost || 0],
  messages: ["most messages", (row) => row.messages],
  size: ["largest", (row) => row.size],
};

// What the filters ask of a row, computed once.
export function prepare(row, now) {
  row.place = projectOf(row);
  row.age = row.updated ? (now - Date.parse(row.updated)) / DAY : Infinity;
  return row;
}

export class Filters {
  constructor(box, changed) {
    this.box = box;
    this.changed = changed;
    this.clear();
    this.sort = "changed";
    this.agents = false;
    document.addEventListener("choose", (event) => this.choose(event.detail));
  }

  // What a plot was pressed for, in place of what was chosen before; where the list is not beside the plots, it is shown.
  choose(wanted) {
    this.chosen = wanted;
    this.changed();
    if (!document.getElementById("side").offsetWidth) location.hash = "#/";
  }

  // A session that began on the chosen day; for the tokens of a day one that was in use then.
  isOfDay(row) {
    const { date, used } = this.chosen.day, began = day(row.created || row.updated);
    return used ? began <= date && date <= day(row.updated) : began === date;
  }

  clear() {
    this.chosen = {};
  }

  // One pass: a row that only one filter leaves out counts for the values of that filter.
  apply(rows) {
    const counts = Object.fromEntries(NAMES.map((name) => [name, new Map()])), view = [];
    const chosen = NAMES.filter((name) => this.chosen[name]);
    let nested = 0, others = 0;
    const count = (name, row) => { for (const value of FILTERS[name][1](row)) counts[name].set(value, (counts[name].get(value) || 0) + 1); };
    for (const row of rows) {
      if (row.nested && !this.agents) { nested++; continue; }
      if (this.chosen.day && !this.isOfDay(row)) { others++; continue; }
      let against = 0, only;
      for (const name of chosen) if (!FILTERS[name][1](row).includes(this.chosen[name])) { against++; only = name; }
      if (!against) { view.push(row); for (const name of NAMES) count(name, row); }
      else { others++; if (against === 1) count(only, row); }
    }
    const by = SORTS[this.sort][1];
    if (by) view.sort((a, b) => by(b) - by(a));
    return { view, counts, nested, others };
  }

  draw(counts) {
    const made = NAMES.map((name) => this.select(name, counts[name]));
    const order = el("select", { "aria-label": "Order", onchange: (event) => { this.sort = event.target.value; this.changed(); } },
      ...Object.entries(SORTS).map(([name, [label]]) => el("option", { value: name, selected: name === this.sort }, label)));
    const agents = el("label", { class: "check" }, el("input", { type: "checkbox", checked: this.agents, onchange: (event) => { this.agents = event.target.checked; this.changed(); } }), "sub-agents");
    const focused = this.box.contains(document.activeElement) ? [...this.box.querySelectorAll("select, input")].indexOf(document.activeElement) : -1;
    const chosen = this.chosen.day, words = chosen && `${chosen.used ? "in use on" : "began on"} ${chosen.date}`;
    const date = chosen ? el("button", { class: "on day", "aria-label": `Only sessions ${words}: remove`, onclick: () => { delete this.chosen.day; this.changed(); } }, `${words} ×`) : "";
    this.box.replaceChildren(...made, order, agents, date);
    if (focused >= 0) this.box.querySelectorAll("select, input")[focused].focus();
  }

  select(name, counts) {
    const label = FILTERS[name][0], chosen = this.chosen[name];
    const entries = name === "when" ? AGES.map(([, value]) => [value, counts.get(value) || 0]) : [...counts].sort((a, b) => b[1] - a[1]);
    if (chosen && !counts.has(chosen) && name !== "when") entries.unshift([chosen, 0]);
    const made = el("select", { "aria-label": label, class: chosen ? "on" : null, onchange: (event) => { this.chosen[name] = event.target.value; this.changed(); } },
      el("option", { value: "" }, `${label}: all`),
      ...entries.slice(0, MOST).map(([value, count]) => el("option", { value, selected: value === chosen }, `${value} (${count.toLocaleString("en")})`)));
    if (entries.length > MOST) made.append(el("option", { disabled: true }, `${(entries.length - MOST).toLocaleString("en")} more`));
    return made;
  }
}
