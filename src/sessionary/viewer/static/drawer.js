// The drawer of a session: tabs beside the transcript.
import { byId, el, failed } from "./dom.js";
import { drawActions, run } from "./actions.js";
import { drawBranches } from "./branches.js";
import { drawFiles } from "./files.js";
import { drawHealth } from "./health.js";
import { drawRecords } from "./records.js";
import { drawResume } from "./resume.js";
import { drawUsage } from "./usage.js";

const TABS = {
  health: ["Health", drawHealth], files: ["Files", drawFiles], usage: ["Usage", drawUsage], branches: ["Branches", drawBranches],
  records: ["Raw", drawRecords], actions: ["Change", drawActions], resume: ["Resume", drawResume],
};

export class Drawer {
  // session() is the open session; changed() reads the list again after a change.
  constructor({ session, changed }) {
    this.of = session;
    this.changed = changed;
    this.element = byId("drawer");
    this.tabs = Object.entries(TABS).map(([name, [label]]) => el("button", { role: "tab", id: `tab-${name}`, "aria-controls": "panel", onclick: () => this.open(name) }, label));
    this.panel = el("div", { id: "panel", class: "panel", role: "tabpanel", tabindex: "0" });
    const list = el("div", { role: "tablist", "aria-label": "Details" }, ...this.tabs);
    list.addEventListener("keydown", (event) => this.onTabKey(event));
    this.element.replaceChildren(el("header", {}, list, el("button", { class: "close", "aria-label": "Close (Esc)", title: "Close (Esc)", onclick: () => this.close() }, "×")), this.panel);
  }

  get isOpen() { return !this.element.hidden; }

  onTabKey(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = this.tabs.indexOf(document.activeElement);
    const next = by ? (at + by + this.tabs.length) % this.tabs.length : event.key === "Home" ? 0 : event.key === "End" ? this.tabs.length - 1 : null;
    if (next === null || at < 0) return;
    event.preventDefault();
    this.open(Object.keys(TABS)[next]);
  }

  async open(name, ...given) {
    const session = this.of();
    if (!session) return;
    this.name = name;
    this.element.hidden = false;
    for (const tab of this.tabs) {
      const on = tab.id === `tab-${name}`;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      if (on) tab.focus();
    }
    this.panel.setAttribute("aria-labelledby", `tab-${name}`);
    await this.fill(session, ...given);
  }

  async fill(session, ...given) {
    const token = (this.filling = {}), box = el("div", {}, el("p", { class: "hint" }, "reading…"));
    this.panel.replaceChildren(box);
    const found = await TABS[this.name][1](session, this, ...given).catch((error) => [failed(error)]);
    if (this.filling === token) { box.replaceChildren(...found); this.panel.scrollTop = 0; box.querySelector("[autofocus]")?.focus(); }
  }

  toggle(name) {
    if (this.isOpen && this.name === name) this.close();
    else this.open(name);
  }

  act(name) { return run(name, this.of(), this); }

  close() {
    if (!this.isOpen) return;
    this.element.hidden = true;
    this.filling = null;
    this.panel.replaceChildren();
    this.of()?.focus();
  }
}
