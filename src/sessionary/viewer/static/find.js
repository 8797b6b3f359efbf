// Find in a session: how many messages match, moving between them, and the matches on the screen marked.
import { el } from "./dom.js";

const PAUSE = 120, MOST = 500; // milliseconds after a key; marks on the screen

const textsOf = (item) => [item.problem ? item.text : "", item.sub?.title,
  ...(item.parts || []).flatMap((part) => [part.text, part.telling, part.name, part.result?.text, part.result?.tail])];
const holds = (text, wanted) => Boolean(text) && text.toLowerCase().includes(wanted);

export class Find {
  constructor(session) {
    this.session = session;
    this.input = el("input", { type: "search", class: "find", placeholder: "Find here  f", "aria-label": "Find in this session" });
    this.count = el("span", { class: "found-count", role: "status" });
    this.input.addEventListener("input", () => { clearTimeout(this.timer); this.timer = setTimeout(() => this.changed(), PAUSE); });
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { event.preventDefault(); clearTimeout(this.timer); this.go(event.shiftKey ? -1 : 1); }
      else if (event.key === "Escape") { event.stopPropagation(); this.input.value = ""; this.changed(); session.focus(); }
    });
    this.element = el("span", { class: "find-box" }, this.input, this.count);
    this.changes = new MutationObserver(() => this.plan()); // rows come and go, and text becomes Markdown
    this.changes.observe(session.body, { childList: true, subtree: true });
  }

  close() {
    this.changes.disconnect();
    window.CSS.highlights?.delete("find");
  }

  plan() {
    if (!this.wanted || this.planned) return;
    this.planned = true;
    requestAnimationFrame(() => { this.planned = false; this.mark(); });
  }

  get wanted() { return this.input.value.trim().toLowerCase(); }

  finds(item) {
    return Boolean(this.wanted) && textsOf(item).some((text) => holds(text, this.wanted));
  }

  changed() {
    if (this.wanted && !(this.session.marked && this.finds(this.session.marked))) this.go(1);
    else this.tell();
  }

  go(by) {
    this.session.jump((item) => this.finds(item), by, { around: true, focus: false });
    const item = this.session.marked;
    if (item && this.finds(item)) {
      for (const part of item.parts || []) // what holds the words is opened
        if (part.kind !== "text" && [part.text, part.result?.text, part.result?.tail].some((text) => holds(text, this.wanted))) part.open = true;
      this.session.redraw(item);
    }
    this.tell();
  }

  tell() {
    const all = this.wanted ? this.session.view.filter((item) => this.finds(item)) : [];
    const at = all.indexOf(this.session.marked);
    this.count.textContent = !this.wanted ? "" : !all.length ? "none" : at < 0 ? `${all.length}` : `${at + 1} of ${all.length}`;
    this.mark();
  }

  // Marks what is on the screen; the page itself is not changed.
  mark() {
    if (!window.Highlight) return;
    CSS.highlights.delete("find");
    const wanted = this.wanted, ranges = [];
    if (!wanted) return;
    const walker = document.createTreeWalker(this.session.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node && ranges.length < MOST; node = walker.nextNode()) {
      const text = node.data.toLowerCase();
      if (text.length !== node.data.length) continue;
      for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + wanted.length);
        ranges.push(range);
      }
    }
    CSS.highlights.set("find", new Highlight(...ranges));
  }
}
