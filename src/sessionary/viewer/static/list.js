// The sessions of every kind in one list, with filters and the number of sessions that each leaves.
import { get, post } from "./api.js";
import { ago, byId, dollars, el, plural, quantity } from "./dom.js";
import { VirtualList } from "./virtual.js";

const HEIGHT = 62, FIRST = 200, PAGE = 2500;
export const HEALTH = {
  ok: ["✓", "ok"], note: ["✓", "ok"], cosmetic: ["!", "stray bytes"], hides_data: ["!", "hides data"],
  stops_resume: ["✗", "cannot be resumed"], lost_data: ["✗", "lost data"],
};
const WELL = new Set(["ok", "note"]);
const FILTERS = {
  kind: ["Agent", (row) => [row.kind]],
  project: ["Project", (row) => [projectOf(row)]],
  health: ["Health", (row) => [WELL.has(row.health) ? "ok" : "damaged"]],
  model: ["Model", (row) => row.models],
  when: ["Changed", (row) => agesOf(row.updated)],
};
const SORTS = {
  changed: ["newest first", null],
  tokens: ["most tokens", (row) => -(row.tokens || 0)],
  cost: ["highest cost", (row) => -(row.cost || 0)],
  messages: ["most messages", (row) => -row.messages],
  size: ["largest", (row) => -row.size],
};

export const projectOf = (row) => (row.cwd || row.project || "").replace(/\/+$/, "").split("/").pop() || "(none)";

function agesOf(updated) {
  if (!updated) return [];
  const days = (Date.now() - new Date(updated)) / 864e5;
  return [[1, "last 24 hours"], [7, "last 7 days"], [30, "last 30 days"], [365, "last year"]].filter(([most]) => days < most).map(([, name]) => name);
}

export class SessionList {
  constructor(open) {
    this.open = open;
    this.rows = [];
    this.byKey = new Map();
    this.chosen = {};
    this.sort = "changed";
    this.agents = false;
    this.view = [];
    this.current = null;
    this.virtual = new VirtualList(byId("list"), { estimate: () => HEIGHT, draw: (at) => this.draw(at), fixed: true });
  }

  async load() {
    const first = await get(`/api/sessions?limit=${FIRST}`);
    const before = this.rows.length;
    let rows = first.rows;
    if (!before) this.take(rows, first);
    while (rows.length < first.total) {
      const page = await get(`/api/sessions?offset=${rows.length}&limit=${PAGE}`);
      if (!page.rows.length) break;
      rows = rows.concat(page.rows);
    }
    this.version = first.version;
    this.take(rows, first);
  }

  async refresh() {
    const { version } = await post("/api/refresh", {});
    if (version !== this.version) await this.load();
  }

  take(rows, answer) {
    this.rows = rows;
    this.failures = answer.failures;
    this.byKey = new Map(rows.map((row) => [row.key, row]));
    this.filter();
  }

  update(row) {
    const old = this.byKey.get(row.key);
    if (!old) return;
    Object.assign(old, row);
    this.filter();
  }

  holds(row, except) {
    if ((row.nested && !this.agents) || !row.listed) return false;
    return Object.entries(this.chosen).every(([name, value]) => name === except || !value || FILTERS[name][1](row).includes(value));
  }

  filter() {
    this.view = this.rows.filter((row) => this.holds(row));
    const by = SORTS[this.sort][1];
    if (by) this.view.sort((a, b) => by(a) - by(b));
    this.drawFilters();
    const nested = this.agents ? 0 : this.rows.filter((row) => row.nested).length;
    const others = this.rows.filter((row) => row.listed && (this.agents || !row.nested)).length - this.view.length;
    const parts = [plural(this.view.length, "session")];
    if (others) parts.push(`${others.toLocaleString("en")} filtered out`);
    if (nested) parts.push(`${plural(nested, "sub-agent")} hidden`);
    for (const failure of this.failures || []) parts.push(`not all could be read: ${failure.message}`);
    byId("count").textContent = parts.join(" · ");
    this.virtual.reset(this.view.length);
    if (!this.view.length) this.virtual.room.replaceChildren(this.nothing());
  }

  nothing() {
    if (!this.rows.length)
      return el("p", { class: "empty" }, "No sessions were found. `sessionary doctor` lists the folders that are searched.");
    return el("p", { class: "empty" }, "No sessions match these filters. ", el("button", { onclick: () => { this.chosen = {}; this.filter(); } }, "Show all"));
  }

  drawFilters() {
    const made = [];
    for (const [name, [label, values]] of Object.entries(FILTERS)) {
      const counts = new Map();
      for (const row of this.rows)
        if (this.holds(row, name)) for (const value of values(row)) counts.set(value, (counts.get(value) || 0) + 1);
      const entries = [...counts].sort((a, b) => b[1] - a[1]);
      const chosen = this.chosen[name];
      if (entries.length < 2 && !chosen && name !== "health") continue;
      const select = el("select", { "aria-label": label, onchange: (event) => { this.chosen[name] = event.target.value; this.filter(); byId("filters").querySelector(`[aria-label="${label}"]`)?.focus(); } },
        el("option", { value: "" }, `${label}: all`),
        ...entries.slice(0, 500).map(([value, count]) => el("option", { value, selected: value === chosen }, `${value} (${count.toLocaleString("en")})`)));
      if (chosen && !counts.has(chosen)) select.append(el("option", { value: chosen, selected: true }, `${chosen} (0)`));
      if (chosen) select.classList.add("on");
      made.push(select);
    }
    made.push(el("select", { "aria-label": "Order", onchange: (event) => { this.sort = event.target.value; this.filter(); } },
      ...Object.entries(SORTS).map(([name, [label]]) => el("option", { value: name, selected: name === this.sort }, label))));
    made.push(el("label", { class: "check" }, el("input", { type: "checkbox", checked: this.agents, onchange: (event) => { this.agents = event.target.checked; this.filter(); } }), "sub-agents"));
    byId("filters").replaceChildren(...made);
  }

  draw(at) {
    const row = this.view[at];
    const [sign, words] = HEALTH[row.health] || HEALTH.ok;
    const facts = [projectOf(row), `${row.messages} msgs`, row.tokens ? `${quantity(row.tokens)} tok` : "", dollars(row.cost)].filter(Boolean);
    return el("div", { role: "listitem" },
      el("a", { href: `#/s/${row.key}`, class: `session${row.key === this.current ? " current" : ""}${row.nested ? " nested" : ""}`, "aria-current": row.key === this.current ? "page" : null, tabindex: "-1" },
        el("span", { class: "line" },
          el("span", { class: `health ${WELL.has(row.health) ? "well" : row.health}`, title: words, role: "img", "aria-label": words }, sign),
          el("span", { class: "title", dir: "auto" }, row.title || row.id),
          el("time", { datetime: row.updated, title: row.updated }, ago(row.updated))),
        el("span", { class: "line facts" },
          el("span", { class: "kind" }, row.kind), facts.join(" · "), row.archived ? " · archived" : "")));
  }

  show(key) {
    const before = this.view.findIndex((row) => row.key === this.current);
    this.current = key;
    const at = this.view.findIndex((row) => row.key === key);
    if (before >= 0) this.virtual.redraw(before);
    if (at >= 0) { this.virtual.redraw(at); this.virtual.scrollTo(at, "near"); }
  }

  step(by) {
    const at = this.view.findIndex((row) => row.key === this.current);
    const next = this.view[at < 0 ? 0 : Math.min(Math.max(at + by, 0), this.view.length - 1)];
    if (next) this.open(next.key);
  }
}
