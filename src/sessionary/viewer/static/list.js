// The sessions of every kind in one list. The first screen is drawn while the rest arrives.
import { ask, lines, post } from "./api.js";
import { ago, byId, dollars, el, plural, quantity, withCode } from "./dom.js";
import { Filters, HEALTH, isWell, prepare, projectOf } from "./filters.js";
import { VirtualList } from "./virtual.js";

export { HEALTH, projectOf };
const HEIGHT = 62, SOON = 300, APART = 5000;

const SLICE = 10; // milliseconds of reading rows before the page may do something else

// The first rows are on the screen before the others are taken; a page in the background paints nothing.
const painted = () => new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 100); });

const pause = () => new Promise((done) => setTimeout(done));

export class SessionList {
  // open(key) shows a session; asked resolves to the head of the list and its first rows.
  constructor(open, asked) {
    this.open = open;
    this.asked = asked;
    this.rows = [];
    this.byKey = new Map();
    this.wanted = new Map(); // the sessions that the address names, until all rows are here
    this.view = [];
    this.current = null;
    this.version = 0;
    byId("all-read").addEventListener("click", () => this.markAllRead());
    this.filters = new Filters(byId("filters"), () => this.filter());
    this.virtual = new VirtualList(byId("list"), { estimate: () => HEIGHT, draw: (at) => this.draw(at), fixed: true });
    byId("list").addEventListener("keydown", (event) => this.onKey(event));
  }

  // Resolves when the first rows are drawn; `whole` when all are, which are asked for when the first ones are painted.
  async load() {
    const { rows, head } = await this.asked;
    this.wanted = new Map(head.wanted.map((row) => [row.key, prepare(row, Date.now())]));
    this.take(rows.map((row) => this.wanted.get(row.key) ?? prepare(row, Date.now())), head, rows.length < head.total);
    this.whole = painted().then(() => this.read());
    this.whole.catch(() => {}); // who loads the list reports it
  }

  async read() {
    const since = this.version, rows = [], now = Date.now();
    let head = null, began = performance.now();
    await lines(await ask(`/api/sessions?since=${since}`), async (found) => {
      if (!head) { head = found; return; }
      for (const row of found) rows.push(this.asKnown(prepare(row, now)));
      if (performance.now() - began > SLICE) { await pause(); began = performance.now(); }
    });
    if (this.more) await pause();
    const all = since ? this.merged(rows, now) : rows;
    if (since && all.length !== head.total) { this.version = 0; return this.read(); } // some are gone
    this.wanted.clear();
    this.take(all, head, false);
    document.body.classList.add("complete");
  }

  // A row stays the same object: an open session has one, and the list keeps in it that it was opened.
  asKnown(row) {
    const known = this.byKey.get(row.key);
    return known ? Object.assign(known, row) : row;
  }

  merged(rows, now) {
    const changed = new Set(rows.map((row) => row.key));
    return rows.concat(this.rows.filter((row) => !changed.has(row.key)).map((row) => prepare(row, now)))
      .sort((a, b) => (a.updated === b.updated ? 0 : (a.updated || "") < (b.updated || "") ? 1 : -1));
  }

  async refresh() {
    const { version } = await post("/api/refresh", {});
    if (version !== this.version) await this.read();
  }

  take(rows, head, more) {
    this.rows = rows;
    this.head = head;
    this.more = more;
    if (!more) this.version = head.version;
    this.byKey = new Map([...this.wanted, ...rows.map((row) => [row.key, row])]);
    this.filter();
  }

  // A followed session grows several times a second; the list follows a little later.
  update(row) {
    const old = this.byKey.get(row.key);
    if (!old) return;
    Object.assign(old, row);
    prepare(old, Date.now());
    this.later ||= setTimeout(() => { this.later = null; this.filter(); if (old.key === this.current) this.markRead(old); }, SOON);
  }

  // Kept by the server, so that it holds for every start. One that grows while it is open is marked at times, and when it is left.
  async markRead(row) {
    if (row.unread) { row.unread = false; row.opened = true; this.filter(); }
    if (this.head.read_only || row.marked === row.updated) return;
    if (row.key === this.current && Date.now() - row.markedAt < APART) return;
    row.marked = row.updated;
    row.markedAt = Date.now();
    await post(`/api/session/${row.key}/read`, {}).catch((error) => (byId("state").textContent = error.message));
  }

  async markAllRead() {
    await post("/api/read", {});
    for (const row of this.rows) row.unread = false;
    this.filter();
  }

  filter() {
    const { view, counts, nested, others } = this.filters.apply(this.rows);
    const focused = byId("list").contains(document.activeElement) && document.activeElement.dataset.key;
    this.view = view;
    this.filters.draw(counts);
    this.say(nested, others);
    this.virtual.room.querySelector(".empty")?.remove();
    this.virtual.reset(view.length);
    if (!view.length) this.virtual.room.replaceChildren(this.nothing());
    else if (focused) this.focus(Math.max(view.findIndex((row) => row.key === focused), 0));
  }

  say(nested, others) {
    const parts = this.more ? [`reading ${plural(this.head.total, "session")}…`] : [plural(this.view.length, "session")];
    const unread = this.view.filter((row) => row.unread).length;
    if (!this.more) {
      if (unread) parts.push(`${unread.toLocaleString("en")} unread`);
      if (others) parts.push(`${others.toLocaleString("en")} filtered out`);
      if (nested) parts.push(`${plural(nested, "sub-agent")} hidden`);
    }
    byId("all-read").hidden = this.more || !unread || this.head.read_only;
    for (const failure of this.head.failures) parts.push(`not all could be read: ${failure.message}`);
    if (byId("count").textContent !== parts.join(" · ")) byId("count").textContent = parts.join(" · ");
  }

  nothing() {
    if (!this.rows.length)
      return el("p", { class: "empty" }, ...withCode("No sessions were found. `sessionary doctor` lists the folders that are searched."));
    return el("p", { class: "empty" }, "No sessions match these filters. ", el("button", { onclick: () => { this.filters.clear(); this.filter(); } }, "Show all"));
  }

  draw(at) {
    const row = this.view[at], [sign, words] = HEALTH[row.health] || HEALTH.ok, current = row.key === this.current;
    const cell = (text, unit) => el("span", { class: "cell" }, text, text ? el("span", { class: "hidden" }, ` ${unit}, `) : "");
    return el("div", { role: "listitem" },
      el("a", { href: `#/s/${row.key}`, class: `session${current ? " current" : ""}${row.nested ? " nested" : ""}${row.unread ? " unread" : ""}`, "aria-current": current ? "page" : null, tabindex: "-1", "data-key": row.key },
        el("span", { class: "line" },
          el("span", { class: `health ${isWell(row) ? "well" : row.health}`, title: words, role: "img", "aria-label": words }, sign),
          row.starred ? el("span", { class: "star", title: "starred", role: "img", "aria-label": "starred" }, "★") : null,
          el("span", { class: "title", dir: "auto" }, row.title || row.id),
          row.tags.length ? el("span", { class: "tags", title: row.tags.join(" ") }, row.tags.map((tag) => `#${tag}`).join(" ")) : null,
          row.unread ? el("span", { class: "dot", title: "changed since it was last open", role: "img", "aria-label": "unread" }, "●") : null,
          el("time", { datetime: row.updated, title: row.updated }, ago(row.updated))),
        el("span", { class: "line facts" },
          el("span", { class: "where" }, el("span", { class: "kind" }, row.kind), row.place, row.archived ? " · archived" : ""),
          cell(row.messages.toLocaleString("en"), "messages"), cell(quantity(row.tokens), "tokens"), cell(dollars(row.cost), "cost"))));
  }

  show(key) {
    const before = this.view.findIndex((row) => row.key === this.current), left = this.byKey.get(this.current);
    if (left && left.key !== key) { this.markRead(left); left.opened = false; }
    this.current = key;
    if (this.byKey.has(key)) this.markRead(this.byKey.get(key));
    const at = this.view.findIndex((row) => row.key === key), held = document.activeElement.closest("#list a");
    if (before >= 0) this.virtual.redraw(before);
    if (at >= 0) { this.virtual.redraw(at); this.virtual.scrollTo(at, "near"); }
    if (held && (at >= 0 || before >= 0)) this.focus(at >= 0 ? at : before);
  }

  step(by) {
    const at = this.view.findIndex((row) => row.key === this.current);
    const next = this.view[at < 0 ? 0 : Math.min(Math.max(at + by, 0), this.view.length - 1)];
    if (next) this.open(next.key);
  }

  focus(at) {
    this.virtual.scrollTo(at, "near");
    this.virtual.shown.get(at)?.querySelector("a").focus({ preventScroll: true });
  }

  // Arrows move the focus from row to row; Enter opens, as in every link.
  onKey(event) {
    if (!this.view.length || event.ctrlKey || event.metaKey || event.altKey) return;
    const focused = event.target.dataset.key, last = this.view.length - 1;
    const at = this.view.findIndex((row) => row.key === (focused || this.current));
    const page = Math.max(Math.floor(byId("list").clientHeight / HEIGHT) - 1, 1);
    const next = { ArrowDown: focused ? at + 1 : Math.max(at, 0), ArrowUp: at - 1, Home: 0, End: last, PageDown: at + page, PageUp: at - page }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.focus(Math.min(Math.max(next, 0), last));
  }
}
