// A list of which only what is on the screen, and a little around it, is in the page.
import { el } from "./dom.js";

const AROUND = 600; // pixels above and below the screen

export class VirtualList {
  // estimate(index) is the height of an item that was never shown; draw(index) makes its element.
  constructor(scroller, { estimate, draw, fixed = false }) {
    this.scroller = scroller;
    this.estimate = estimate;
    this.draw = draw;
    this.fixed = fixed;
    this.count = 0;
    this.heights = [];
    this.tops = new Float64Array(1);
    this.shown = new Map();
    this.room = el("div", { class: "room", role: "presentation" });
    scroller.replaceChildren(this.room);
    this.observer = new ResizeObserver((entries) => this.measured(entries));
    this.onScroll = () => this.plan();
    scroller.addEventListener("scroll", this.onScroll, { passive: true });
    this.sizes = new ResizeObserver(() => this.plan());
    this.sizes.observe(scroller);
  }

  close() {
    this.scroller.removeEventListener("scroll", this.onScroll);
    this.observer.disconnect();
    this.sizes.disconnect();
  }

  reset(count) {
    for (const element of this.shown.values()) { this.observer.unobserve(element); element.remove(); }
    this.shown.clear();
    this.heights = [];
    this.resize(count);
  }

  resize(count) {
    for (let at = this.heights.length; at < count; at++) this.heights.push(this.estimate(at));
    this.heights.length = count;
    this.count = count;
    this.layOut();
    this.plan();
  }

  layOut(from = 0) {
    if (this.tops.length < this.count + 1) {
      const grown = new Float64Array(Math.max(this.count + 1, this.tops.length * 2));
      grown.set(this.tops);
      this.tops = grown;
    }
    for (let at = from; at < this.count; at++) this.tops[at + 1] = this.tops[at] + this.heights[at];
    this.room.style.height = `${this.tops[this.count]}px`;
  }

  plan() {
    if (this.planned) return;
    this.planned = true;
    requestAnimationFrame(() => { this.planned = false; this.show(); });
  }

  indexAt(y) {
    let low = 0, high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle + 1] <= y) low = middle + 1;
      else high = middle;
    }
    return Math.min(low, Math.max(this.count - 1, 0));
  }

  show() {
    const top = this.scroller.scrollTop, height = this.scroller.clientHeight;
    if (!height) return;
    const first = this.indexAt(top - AROUND), last = this.count ? this.indexAt(top + height + AROUND) : -1;
    for (const [at, element] of this.shown)
      if (at < first || at > last) {
        if (element.contains(document.activeElement)) continue;
        this.observer.unobserve(element);
        element.remove();
        this.shown.delete(at);
      }
    for (let at = first; at <= last; at++) {
      if (this.shown.has(at)) continue;
      const element = this.draw(at);
      element.classList.add("row");
      element.dataset.at = at;
      element.setAttribute("aria-setsize", this.count);
      element.setAttribute("aria-posinset", at + 1);
      element.style.transform = `translateY(${this.tops[at]}px)`;
      this.shown.set(at, element);
      const next = [...this.room.children].find((other) => Number(other.dataset.at) > at);
      this.room.insertBefore(element, next || null);
      if (!this.fixed) this.observer.observe(element);
    }
    this.onShow?.(this.indexAt(top + 1), this.indexAt(top + height - 1));
  }

  // What is above the first visible item may change its height: the text on the screen stays where it is.
  measured(entries) {
    const top = this.scroller.scrollTop, anchor = this.indexAt(top);
    const offset = top - this.tops[anchor];
    let least = this.count;
    for (const entry of entries) {
      const at = Number(entry.target.dataset.at);
      if (this.shown.get(at) !== entry.target) continue;
      const height = entry.borderBoxSize[0].blockSize;
      if (height && Math.abs(height - this.heights[at]) > 0.5) {
        this.heights[at] = height;
        least = Math.min(least, at);
      }
    }
    if (least === this.count) return;
    this.layOut(least);
    for (const [at, element] of this.shown) element.style.transform = `translateY(${this.tops[at]}px)`;
    if (this.goal) this.scrollTo(this.goal.at, this.goal.place);
    else if (this.atEnd) this.scroller.scrollTop = this.tops[this.count];
    else if (least < anchor || (least === anchor && offset > this.heights[anchor])) this.scroller.scrollTop = this.tops[anchor] + offset;
    this.plan();
  }

  // Heights above and around the item become known while it is shown, so its place is held for a moment.
  scrollTo(at, place = "start") {
    if (at < 0 || at >= this.count) return;
    this.goal = { at, place };
    clearTimeout(this.goalEnds);
    this.goalEnds = setTimeout(() => (this.goal = null), 400);
    const room = this.scroller.clientHeight, top = this.tops[at], bottom = this.tops[at + 1];
    const now = this.scroller.scrollTop;
    let wanted = top;
    if (place === "end") wanted = bottom - room;
    else if (place === "near") wanted = top < now ? top : bottom > now + room ? Math.min(top, bottom - room) : now;
    if (Math.abs(wanted - now) > 0.5) this.scroller.scrollTop = wanted;
    this.show();
  }

  redraw(at) {
    const element = this.shown.get(at);
    if (!element) return;
    const focused = element === document.activeElement;
    this.observer.unobserve(element);
    element.remove();
    this.shown.delete(at);
    if (focused) { this.show(); this.shown.get(at)?.focus({ preventScroll: true }); }
    else this.plan();
  }
}
