// A session: its transcript, and how to move in it.
import { events, get } from "./api.js";
import { byId, bytes, clock, copy, dollars, el, plural, quantity } from "./dom.js";
import { drawItem, hasError, isPrompt, textOf } from "./item.js";
import { HEALTH, projectOf } from "./list.js";
import { VirtualList } from "./virtual.js";

const AT_END = 60, INLINE = 200;

export class Session {
  constructor(row, list, { at, drawer }) {
    this.row = row;
    this.list = list;
    this.base = `/api/session/${row.key}`;
    this.wanted = at;
    this.drawer = drawer;
    this.items = [];
    this.view = [];
    this.calls = new Map();
    this.skim = false;
    this.branches = false;
    this.following = true;
    this.at = 0;
    this.ended = new AbortController();
  }

  open() {
    this.head = el("div", { class: "session-head" });
    this.body = el("div", { class: "scroll transcript", role: "feed", tabindex: "0", "aria-label": "Transcript" });
    byId("main").replaceChildren(this.head, this.body);
    this.virtual = new VirtualList(this.body, { estimate: (at) => this.guess(at), draw: (at) => this.draw(at) });
    this.virtual.onShow = (first) => { if (!this.virtual.goal) this.at = first; };
    this.body.addEventListener("scroll", () => {
      const rest = this.body.scrollHeight - this.body.scrollTop - this.body.clientHeight;
      this.virtual.atEnd = this.following && this.ready && rest < AT_END;
    }, { passive: true });
    this.drawHead();
    this.stream();
  }

  close() {
    this.ended.abort();
    this.virtual.close();
  }

  async stream() {
    try {
      await events(`${this.base}/stream?follow=1`, this.ended.signal, (name, data) => this.take(name, data));
      this.say("the server has ended", "");
    } catch (error) {
      if (error.name !== "AbortError") this.say(error.message, error.hint);
    }
  }

  say(message, hint) {
    this.following = false;
    byId("state").textContent = `${message}${hint ? `: ${hint}` : ""}`;
    this.drawHead();
  }

  take(name, data) {
    if (name === "items") this.add(data);
    else if (name === "reset") { this.items = []; this.calls.clear(); this.rebuild(); }
    else if (name === "ready") { this.ready = true; this.addAgents(); this.drawHead(); if (!this.items.length) this.body.append(el("p", { class: "empty" }, "This session has no messages.")); }
    else if (name === "row") { Object.assign(this.row, data); this.list.update(data); this.drawHead(); }
    else if (name === "failed") this.say(data.message, data.hint);
  }

  add(batch) {
    for (const item of batch) {
      this.items.push(item);
      this.pair(item);
    }
    this.rebuild();
    if (this.wanted !== undefined && this.goTo(this.wanted)) this.wanted = undefined;
    if (this.ready) this.drawHead();
  }

  // The result of a call is shown with the call, wherever it is stored.
  pair(item) {
    const left = [];
    for (const part of item.parts || []) {
      if (part.kind === "call" && part.id) this.calls.set(part.id, [part, item]);
      const found = part.kind === "result" && part.id ? this.calls.get(part.id) : undefined;
      if (found && !found[0].result) {
        found[0].result = part;
        found[0].resultItem = item;
        item.heldBy = found[1];
        found[1].height = undefined;
        const at = this.view.indexOf(found[1]);
        if (at >= 0) this.virtual.redraw(at);
      } else left.push(part);
    }
    item.parts = left;
  }

  isShown(item) {
    if (item.problem || item.sub) return !this.skim;
    if (item.outside && !this.branches) return false;
    if (!item.parts.length) return false;
    if (!this.skim) return true;
    return isPrompt(item) || item.origin === "compaction" || (item.origin === "agent" && this.isFinal(item));
  }

  // The last words of the agent before the next prompt.
  isFinal(item) {
    return this.finals.has(item);
  }

  findFinals() {
    this.finals = new Set();
    let last = null;
    for (const item of this.items) {
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
    const from = this.items.indexOf(item);
    for (let at = from; at >= 0; at--) {
      const found = this.view.indexOf(this.items[at]);
      if (found >= 0) return found;
    }
    return 0;
  }

  addAgents() {
    const agents = this.list.rows.filter((row) => row.nested && row.parent === this.row.id && row.key !== this.row.key);
    if (!agents.length) return;
    agents.sort((a, b) => ((a.created || "") < (b.created || "") ? -1 : 1));
    for (const row of agents) {
      let at = this.items.length;
      if (row.created) while (at > 0 && (this.items[at - 1].sub ? this.items[at - 1].sub.created : this.items[at - 1].time || "") > row.created) at--;
      this.items.splice(at, 0, { sub: row, parts: [] });
    }
    this.rebuild();
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
    const made = item.sub ? this.drawAgent(item) : drawItem(item, at, { link: (one) => this.link(one), before: this.view[at - 1], base: this.base });
    if (item === this.marked) made.classList.add("marked");
    return made;
  }

  drawAgent(item) {
    const row = item.sub, body = el("div", { class: "body" });
    const box = el("details", { class: "agent-session" }, el("summary", {}, el("b", {}, "Sub-agent "), row.title || row.id, el("span", { class: "more" }, [plural(row.messages, "message"), row.tokens ? `${quantity(row.tokens)} tok` : "", (HEALTH[row.health] || HEALTH.ok)[1]].filter(Boolean).join(" · "))), body);
    box.open = Boolean(item.open);
    const fill = async () => {
      if (body.firstChild) return;
      const base = `/api/session/${row.key}`, calls = new Map(), found = [];
      body.append(el("p", {}, el("a", { href: `#/s/${row.key}` }, "open it by itself")));
      await events(`${base}/stream`, this.ended.signal, (name, data) => { if (name === "items") found.push(...data); }).catch((error) => body.append(error.message));
      for (const one of found) this.pair.call({ calls, view: [], virtual: null }, one);
      const shown = found.filter((one) => one.problem || (one.parts.length && !one.outside));
      shown.slice(0, INLINE).forEach((one, at) => body.append(drawItem(one, at, { link: () => `#/s/${row.key}/${one.index}`, before: shown[at - 1], base })));
      if (shown.length > INLINE) body.append(el("p", {}, `… ${plural(shown.length - INLINE, "more message")}`));
    };
    if (box.open) fill();
    box.addEventListener("toggle", () => { item.open = box.open; if (box.open) fill(); });
    return el("div", { class: "sub", role: "article" }, box);
  }

  link(item) {
    return `#/s/${this.row.key}/${item.index}`;
  }

  drawHead() {
    const row = this.row, [sign, words] = HEALTH[row.health] || HEALTH.ok;
    const facts = [row.kind, row.models.join(", "), projectOf(row), row.branch ? `⎇ ${row.branch}` : "", plural(row.messages, "message"), plural(row.turns, "turn"),
      row.tokens ? `${quantity(row.tokens)} tokens` : "", dollars(row.cost), bytes(row.size), row.created ? clock(row.created) : ""].filter(Boolean);
    const errors = this.items.filter(hasError).length, outside = this.items.filter((item) => item.outside).length;
    const button = (label, title, pressed, act) => el("button", { title, "aria-pressed": pressed === null ? null : String(pressed), onclick: act }, label);
    const back = el("a", { href: "#/", class: "back", "aria-label": "Back to the list" }, "‹");
    const state = !this.ready ? "reading…" : this.following ? "following" : "";
    this.head.replaceChildren(
      el("div", { class: "line" }, back, el("h2", { dir: "auto" }, row.title || row.id), el("span", { class: "live" }, state)),
      el("p", { class: "facts" }, facts.join(" · ")),
      el("div", { class: "bar", role: "toolbar", "aria-label": "Session" },
        el("button", { class: `health ${row.health === "ok" || row.health === "note" ? "well" : row.health}`, title: "Health (d)", onclick: () => this.drawer("health") }, `${sign} ${words}`),
        button("Skim", "Prompts and final answers only (l)", this.skim, () => this.toggle("skim")),
        outside ? button(`Branches ${outside}`, "Messages on branches that were left (b)", this.branches, () => this.toggle("branches")) : null,
        button("Prompt ▲", "Previous prompt (K)", null, () => this.jump(isPrompt, -1)), button("▼", "Next prompt (J)", null, () => this.jump(isPrompt, 1)),
        errors ? button(`Errors ${errors} ▲`, "Previous error (E)", null, () => this.jump(hasError, -1)) : null, errors ? button("▼", "Next error (e)", null, () => this.jump(hasError, 1)) : null,
        this.findBox(),
        el("a", { href: `#/charts/${row.key}`, title: "Times of tools, and what its kind has" }, "Charts"),
        el("a", { href: `#/diff/${row.key}`, title: "Side by side with another session" }, "Compare with…"),
        button("Resume…", "Copy the command that continues it (R)", null, (event) => this.resume(event.target))));
  }

  findBox() {
    if (!this.find) {
      this.find = el("input", { type: "search", class: "find", placeholder: "Find here  f", "aria-label": "Find in this session" });
      this.find.addEventListener("keydown", (event) => {
        if (event.key === "Enter") { event.preventDefault(); this.jump((item) => this.finds(item), event.shiftKey ? -1 : 1, true); }
        else if (event.key === "Escape") this.body.focus();
      });
    }
    return this.find;
  }

  finds(item) {
    const wanted = this.find.value.toLowerCase();
    const texts = (item.parts || []).flatMap((part) => [part.text, part.telling, part.result?.text, part.result?.tail]);
    return Boolean(wanted) && [item.problem ? item.text : "", ...texts].some((text) => text && text.toLowerCase().includes(wanted));
  }

  async resume(button) {
    try {
      const found = await get(`${this.base}/resume`);
      const quote = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
      const line = (found.folder && found.folder_exists ? `cd ${quote(found.folder)} && ` : "") + found.command.map(quote).join(" ");
      this.drawer("resume", { line, problems: found.problems });
      await copy(line, button);
    } catch (error) { this.drawer("resume", { error }); }
  }

  toggle(name) {
    this[name] = !this[name];
    this.rebuild();
    this.drawHead();
  }

  mark(at, place = "start") {
    const before = this.view.indexOf(this.marked);
    this.marked = this.view[at];
    this.at = at;
    if (before >= 0) this.virtual.shown.get(before)?.classList.remove("marked");
    this.virtual.atEnd = false;
    this.virtual.scrollTo(at, place);
    this.virtual.shown.get(at)?.classList.add("marked");
  }

  step(by) {
    this.mark(Math.min(Math.max((this.marked ? this.view.indexOf(this.marked) : this.at - by) + by, 0), this.view.length - 1));
  }

  jump(test, by, around = false) {
    const start = this.marked && this.view.includes(this.marked) ? this.view.indexOf(this.marked) : this.at - (by > 0 ? 1 : 0);
    for (let step = 1; step <= this.view.length; step++) {
      let at = start + step * by;
      if (around) at = ((at % this.view.length) + this.view.length) % this.view.length;
      if (at < 0 || at >= this.view.length) return;
      if (test(this.view[at])) { this.mark(at); return; }
    }
  }

  ends(last) {
    this.mark(last ? this.view.length - 1 : 0, last ? "end" : "start");
    if (last) this.virtual.atEnd = this.following;
  }

  goTo(index) {
    const item = this.items.find((one) => one.index === index && !one.outside && !one.inherited && !one.problem && !one.sub);
    if (!item) return false;
    this.mark(this.nearest(item.heldBy || item));
    return true;
  }

  copyMarked() {
    const item = this.marked || this.view[this.at];
    if (item?.parts) copy(textOf(item), null);
  }
}
