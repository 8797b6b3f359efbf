// A session: its transcript, and how to move in it.
import { get } from "./api.js";
import { addAgents, drawAgent } from "./agents.js";
import { byId, copy, el, quantity } from "./dom.js";
import { Find } from "./find.js";
import { Head } from "./head.js";
import { forgetImages } from "./images.js";
import { drawItem, isPrompt, pair, textOf } from "./item.js";
import { follow } from "./live.js";
import { VirtualList } from "./virtual.js";

export { hasError, isPrompt } from "./item.js";

const AT_END = 60; // pixels from the end within which the page stays at the end

export class Session {
  constructor(row, list, { wanted, drawer }) {
    this.row = row;
    this.list = list;
    this.base = `/api/session/${row.key}`;
    this.wanted = wanted;
    this.drawer = drawer;
    this.items = [];
    this.view = [];
    this.calls = new Map();
    this.skim = false;
    this.branches = false; // all messages of abandoned branches
    this.branch = null; // the one branch that is shown
    this.forks = new Map();
    this.following = true;
    this.at = 0;
    this.ended = new AbortController();
    this.read = new Promise((done) => (this.isRead = done)); // all that is stored has arrived
  }

  open() {
    this.body = el("div", { class: "scroll transcript", role: "feed", tabindex: "0", "aria-label": "Transcript", "aria-busy": "true" });
    this.find = new Find(this);
    this.head = new Head(this);
    byId("main").replaceChildren(this.head.element, this.body);
    this.virtual = new VirtualList(this.body, { estimate: (at) => this.guess(at), draw: (at) => this.draw(at) });
    this.virtual.onShow = (first) => { if (!this.virtual.goal) this.at = first; };
    this.body.addEventListener("scroll", () => {
      const rest = this.body.scrollHeight - this.body.scrollTop - this.body.clientHeight;
      this.virtual.atEnd = this.following && this.ready && rest < AT_END;
    }, { passive: true });
    this.head.draw();
    this.head.say("");
    this.stream();
  }

  close() {
    this.ended.abort();
    this.isRead();
    this.virtual.close();
    this.find.close();
    this.head.toolbar.close();
    forgetImages();
  }

  // -- the stream

  async stream() {
    const live = (this.live = new AbortController());
    this.ended.signal.addEventListener("abort", () => live.abort(), { once: true });
    await follow(`${this.base}/stream?follow=1`, live.signal, {
      take: (name, data) => this.take(name, data),
      begin: () => { this.fresh = []; },
      say: (words) => this.head.say(words),
    });
    if (this.live === live) { this.following = false; this.head.draw(); }
  }

  toggleFollow() {
    this.following = !this.following;
    if (this.following) { this.fresh = []; this.head.say(""); this.stream(); }
    else this.live.abort();
    this.head.draw();
  }

  take(name, data) {
    if (name === "items") this.fresh ? this.fresh.push(...data) : this.add(data);
    else if (name === "reset") { if (this.fresh) this.fresh = []; else this.empty(); }
    else if (name === "ready") this.whole();
    else if (name === "problems") this.changeProblems(data);
    else if (name === "row") { Object.assign(this.row, data); this.list.update(data); this.listed(); this.head.draw(); }
  }

  // What was incomplete when it was read may have been completed, or repaired.
  changeProblems({ gone, added }) {
    const same = (one, other) => one.problem && one.line === other.line && one.text === other.text;
    this.items = this.items.filter((item) => !gone.some((one) => same(item, one)));
    for (const one of added) {
      const at = one.line ? this.items.findLastIndex((item) => item.line && item.line <= one.line) : this.items.length - 1;
      this.items.splice(at + 1, 0, one);
    }
    this.rebuild();
    this.head.draw();
  }

  empty() {
    this.items = [];
    this.calls.clear();
    this.rebuild();
  }

  // All that is stored has arrived. After a lost connection it replaces what was shown, and the place stays.
  whole() {
    this.ready = true;
    this.body.setAttribute("aria-busy", "false");
    if (this.fresh) {
      const items = this.fresh, { at } = this.view[this.at] || {}, atEnd = this.virtual.atEnd;
      this.fresh = null;
      this.marked = undefined;
      this.empty();
      this.add(items);
      if (atEnd) this.ends(true);
      else if (at !== undefined) this.goTo({ at });
    }
    addAgents(this.items, this.row, this.list.rows);
    this.rebuild();
    this.head.draw();
    if (!this.items.length) this.virtual.room.replaceChildren(el("p", { class: "empty" }, "This session has no messages."));
    if (this.items.some((item) => item.outside)) this.readBranches();
    this.isRead();
  }

  // All sessions are known, those of sub-agents too.
  listed() {
    if (this.ready && addAgents(this.items, this.row, this.list.rows)) this.rebuild();
  }

  add(batch) {
    for (const item of batch) {
      this.items.push(item);
      const holder = pair(item, this.calls);
      if (holder) { holder.height = undefined; this.redraw(holder); }
    }
    this.rebuild();
    if (this.wanted && this.goTo(this.wanted)) this.wanted = undefined;
    if (this.ready) this.head.draw();
  }

  // -- what is shown

  isShown(item) {
    if (item.problem || item.sub) return !this.skim && !(this.branch && item.sub);
    if (this.branch ? !this.inBranch(item) : item.outside && !this.branches) return false;
    if (!item.parts.length) return false;
    return !this.skim || isPrompt(item) || item.origin === "compaction" || this.finals.has(item);
  }

  inBranch(item) {
    return this.branch.shown.some(([first, last]) => item.at >= first && item.at <= last);
  }

  // The last words of the agent before each next prompt.
  findFinals() {
    this.finals = new Set();
    let last = null;
    for (const item of this.items) {
      if (this.branch ? !item.problem && !item.sub && !this.inBranch(item) : item.outside && !this.branches) continue;
      if (isPrompt(item)) { if (last) this.finals.add(last); last = null; }
      else if (item.origin === "agent" && textOf(item)) last = item;
    }
    if (last) this.finals.add(last);
  }

  rebuild() {
    if (this.skim) this.findFinals();
    const view = this.items.filter((item) => this.isShown(item));
    const grows = view.length >= this.view.length && this.view.every((item, at) => item === view[at]);
    const anchor = this.view[this.at];
    this.view = view;
    if (grows) this.virtual.resize(view.length);
    else {
      this.virtual.reset(view.length);
      const at = this.nearest(anchor);
      if (at > 0) this.virtual.scrollTo(at);
    }
    if (this.virtual.atEnd) this.body.scrollTop = this.body.scrollHeight;
  }

  nearest(item) {
    const places = new Map(this.view.map((one, at) => [one, at]));
    for (let at = this.items.indexOf(item); at >= 0; at--) {
      const found = places.get(this.items[at]);
      if (found !== undefined) return found;
    }
    return 0;
  }

  guess(at) {
    const item = this.view[at];
    if (item.height) return item.height;
    if (item.problem) return 36;
    if (item.sub) return 44;
    let height = 52;
    for (const part of item.parts) height += part.kind === "text" ? Math.ceil(part.text.length / 90) * 23 + 12 : 34;
    return Math.min(height, 20000);
  }

  draw(at) {
    const item = this.view[at];
    const made = item.sub ? drawAgent(item, this.ended.signal)
      : drawItem(item, { link: (one) => this.link(one), before: this.view[at - 1], base: this.base, forks: this.drawForks(item), tokens: item.origin === "compaction" ? this.compacted(item) : "" });
    if (item === this.marked) made.classList.add("marked");
    made.tabIndex = -1;
    return made;
  }

  redraw(item) {
    const at = this.view.indexOf(item);
    if (at >= 0) this.virtual.redraw(at);
  }

  // The size of the context before and after a compaction, as far as the messages state it.
  compacted(item) {
    const at = this.items.indexOf(item), stated = (one) => one.tokens && !one.outside;
    const before = this.items.slice(0, at).findLast(stated), after = this.items.slice(at).find(stated);
    return before && after ? `: ${quantity(before.tokens.in)} → ${quantity(after.tokens.in)} tokens` : "";
  }

  // -- branches

  async readBranches() {
    try { this.tree = await get(`${this.base}/branches`); } catch { return; }
    this.forks = new Map();
    for (const branch of this.tree.slice(1)) this.forks.set(branch.after, [...(this.forks.get(branch.after) || []), branch]);
    for (const item of this.view) if (this.forks.has(item.at)) this.redraw(item);
  }

  drawForks(item) {
    const shown = new Set(); // the branch that is shown, and those that lead to it
    for (let one = this.branch; one?.number; one = this.tree[one.parent]) shown.add(one.number);
    const some = (this.forks.get(item.at) || []).filter((branch) => !shown.has(branch.number));
    if (!some.length || item.problem) return null;
    return el("div", { class: "forks" }, ...some.map((branch) => el("button", { title: "Show the messages of this branch", onclick: () => this.showBranch(branch) }, `↳ ${branch.title || `branch ${branch.number}`} (${branch.messages})`)));
  }

  showBranch(branch) {
    const from = branch || this.branch;
    this.branch = branch?.number ? branch : null;
    this.skim = false;
    this.virtual.atEnd = false;
    this.marked = undefined;
    this.rebuild();
    this.virtual.reset(this.view.length);
    const first = this.branch ? this.view.findIndex((item) => item.outside) : -1;
    const at = first >= 0 ? first : this.nearest(this.items.find((item) => item.at === from?.after));
    if (this.view.length) this.mark(at);
    this.head.draw();
  }

  // -- moving

  link(item) {
    return `#/s/${this.row.key}/${item.outside || item.inherited ? `m${item.at}` : item.index}`;
  }

  toggle(name) {
    this[name] = !this[name];
    if (name === "branches") this.branch = null;
    this.rebuild();
    this.head.draw();
  }

  focus() {
    (this.virtual.shown.get(this.view.indexOf(this.marked)) || this.body).focus({ preventScroll: true });
  }

  mark(at, { place = "start", focus = true } = {}) {
    const before = this.view.indexOf(this.marked);
    this.marked = this.view[at];
    this.at = at;
    if (before >= 0) this.virtual.shown.get(before)?.classList.remove("marked");
    this.virtual.atEnd = false;
    this.virtual.scrollTo(at, place);
    this.virtual.shown.get(at)?.classList.add("marked");
    if (focus && !byId("drawer").contains(document.activeElement)) this.focus();
  }

  step(by) {
    if (!this.view.length) return;
    const from = this.marked && this.view.includes(this.marked) ? this.view.indexOf(this.marked) : this.at - by;
    this.mark(Math.min(Math.max(from + by, 0), this.view.length - 1));
  }

  jump(test, by, { around = false, focus = true } = {}) {
    const start = this.marked && this.view.includes(this.marked) ? this.view.indexOf(this.marked) : this.at - (by > 0 ? 1 : 0);
    for (let step = 1; step <= this.view.length; step++) {
      let at = start + step * by;
      if (around) at = ((at % this.view.length) + this.view.length) % this.view.length;
      if (at < 0 || at >= this.view.length) return;
      if (test(this.view[at])) { this.mark(at, { focus }); return; }
    }
  }

  ends(last) {
    if (!this.view.length) return;
    this.mark(last ? this.view.length - 1 : 0, { place: last ? "end" : "start" });
    if (last) this.virtual.atEnd = this.following;
  }

  // A message by its index in the conversation, or by its number among all messages; false if it has not arrived.
  goTo({ index, at }) {
    const item = this.items.find((one) => !one.problem && !one.sub && (at === undefined ? one.index === index && !one.outside && !one.inherited : one.at === at));
    if (!item) return false;
    const holder = item.heldBy && !item.parts.length ? item.heldBy : item;
    if (!this.isShown(holder)) { // it is on a branch, or skimmed over
      this.skim = false;
      this.branch = null;
      if (holder.outside) this.branches = true;
      this.rebuild();
      this.head.draw();
    }
    this.mark(this.nearest(holder));
    return true;
  }

  // Opens what is folded in the marked message, or folds all of it.
  openMarked() {
    const folds = [...(this.virtual.shown.get(this.view.indexOf(this.marked))?.querySelectorAll("details") || [])];
    const open = folds.some((one) => !one.open);
    for (const one of folds) one.open = open;
  }

  copyMarked() {
    const item = this.marked || this.view[this.at];
    if (item?.parts) copy(textOf(item), null).then(() => this.head.say("Copied.")).catch(() => this.head.say("The browser did not allow copying."));
  }
}
