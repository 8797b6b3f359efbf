// A row of controls on one line: those without room move, the last first, into a menu behind its last button.
import { el } from "./dom.js";

const GAP = 5, UNKNOWN = 90; // pixels between two controls; the width of one that was never drawn

export class Toolbar {
  constructor(label, items) {
    this.items = items;
    this.widths = new Map();
    this.menu = el("div", { id: "more-controls", class: "menu", popover: "auto", role: "group", "aria-label": "More" });
    this.more = el("button", { class: "more-controls gone", popovertarget: "more-controls", title: "More", "aria-label": "More" }, "⋯");
    this.element = el("div", { class: "bar", role: "toolbar", "aria-label": label }, ...items, this.more, this.menu);
    this.menu.addEventListener("beforetoggle", (event) => { if (event.newState === "open") this.place(); });
    this.menu.addEventListener("click", (event) => { if (event.target.closest("button, a") && !event.target.closest(".jumps")) this.menu.hidePopover(); });
    this.watch = new ResizeObserver(() => this.fit());
    for (const one of [this.element, ...items]) this.watch.observe(one);
  }

  close() { this.watch.disconnect(); }

  place() {
    const { bottom, right } = this.more.getBoundingClientRect();
    this.menu.style.top = `${bottom + 4}px`;
    this.menu.style.right = `${document.documentElement.clientWidth - right}px`;
  }

  // Makes a control visible that may be in the menu.
  reveal(item) { if (this.menu.contains(item)) this.menu.showPopover(); }

  // The first controls that fit stay; nothing moves that is in its place, since that would take the focus from it.
  fit() {
    const room = this.element.clientWidth;
    if (!room) return;
    for (const one of this.items) if (one.parentNode === this.element) this.widths.set(one, one.offsetWidth);
    const shown = (one) => !one.classList.contains("gone"), width = (one) => (shown(one) ? (this.widths.get(one) || UNKNOWN) + GAP : 0);
    let end = this.items.length;
    if (this.items.reduce((sum, one) => sum + width(one), -GAP) > room) {
      let left = room - 40;
      end = this.items.findIndex((one) => (left -= width(one)) < 0);
    }
    for (const one of this.items.slice(0, end)) if (one.parentNode !== this.element) this.element.insertBefore(one, this.more);
    for (const one of this.items.slice(end).reverse()) if (one.parentNode !== this.menu) this.menu.prepend(one);
    this.more.classList.toggle("gone", !this.items.slice(end).some(shown));
    if (end === this.items.length && this.menu.matches(":popover-open")) this.menu.hidePopover();
  }
}
