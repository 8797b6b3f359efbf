// The head of a session: its title and facts, and the toolbar. Made once, so that the keyboard stays where it is.
import { bytes, clock, dollars, el, plural, quantity } from "./dom.js";
import { hasError, isPrompt } from "./item.js";
import { HEALTH, projectOf } from "./list.js";
import { Toolbar } from "./toolbar.js";

const show = (element, shown) => element.classList.toggle("gone", !shown);

export class Head {
  constructor(session) {
    this.session = session;
    const button = (label, title, act) => el("button", { title, onclick: act }, label);
    this.title = el("h2", { dir: "auto" });
    this.live = el("span", { class: "live", role: "status" });
    this.facts = el("p", { class: "facts" });
    this.tags = el("p", { class: "tags" });
    this.note = el("p", { class: "notice", role: "status" });
    this.health = button("", "Health (d)", () => session.drawer.open("health"));
    this.star = button("☆", "Star (s)", () => session.drawer.act("star"));
    this.skim = button("Skim", "Prompts and final answers only (l)", () => session.toggle("skim"));
    this.branches = button("", "Messages on abandoned branches (b)", () => session.toggle("branches"));
    this.following = button("Follow", "Show what the agent adds (w)", () => session.toggleFollow());
    this.errors = el("span", { class: "jumps", role: "group", "aria-label": "Errors" });
    this.errorCount = button("", "Previous error (E)", () => session.jump(hasError, -1));
    this.errors.append(this.errorCount, button("▼", "Next error (e)", () => session.jump(hasError, 1)));
    this.branch = el("div", { class: "branch-line", role: "status" });
    const prompts = el("span", { class: "jumps", role: "group", "aria-label": "Prompts" },
      button("Prompt ▲", "Previous prompt (K)", () => session.jump(isPrompt, -1)), button("▼", "Next prompt (J)", () => session.jump(isPrompt, 1)));
    this.toolbar = new Toolbar("Session", [
      this.health, prompts, this.errors, session.find.element, this.skim, this.branches, this.following,
      button("Details", "Files, usage, branches, records (i)", () => session.drawer.open("files")),
      button("Change…", "Repair, rewind, fork, rename, export… (a)", () => session.drawer.open("actions")),
      button("Resume…", "Copy the command that continues it (R)", () => session.drawer.open("resume")),
      el("a", { href: `#/charts/${session.row.key}`, title: "Tool times, and the charts of its kind" }, "Charts"),
      el("a", { href: `#/diff/${session.row.key}`, title: "Side by side with another session" }, "Compare with…")]);
    this.element = el("div", { class: "session-head" },
      el("div", { class: "line" }, el("a", { href: "#/", class: "back", "aria-label": "Back to the list" }, "‹"), this.star, this.title, this.live),
      this.facts, this.tags,
      this.toolbar.element, this.branch, this.note);
  }

  draw() {
    const { session } = this, { row } = session, [sign, words] = HEALTH[row.health] || HEALTH.ok;
    this.title.textContent = row.title || row.id;
    this.facts.textContent = [row.kind, row.models.join(", "), projectOf(row), row.branch ? `⎇ ${row.branch}` : "", plural(row.messages, "message"), plural(row.turns, "turn"),
      row.tokens ? `${quantity(row.tokens)} tokens` : "", dollars(row.cost), bytes(row.size), row.created ? clock(row.created) : ""].filter(Boolean).join(" · ");
    const tags = row.tags || [];
    this.tags.replaceChildren(...tags.map((tag) => el("span", { class: "tag" }, `#${tag}`)));
    show(this.tags, tags.length);
    this.health.className = `health ${row.health === "ok" || row.health === "note" ? "well" : row.health}`;
    this.health.textContent = `${sign} ${words}`;
    this.star.textContent = row.starred ? "★" : "☆";
    this.star.setAttribute("aria-pressed", String(Boolean(row.starred)));
    this.star.setAttribute("aria-label", "Star");
    this.skim.setAttribute("aria-pressed", String(session.skim));
    const outside = session.items.filter((item) => item.outside).length, errors = session.items.filter(hasError).length;
    show(this.branches, outside);
    this.branches.textContent = `Abandoned branches ${outside}`;
    this.branches.setAttribute("aria-pressed", String(session.branches));
    show(this.errors, errors);
    this.errorCount.textContent = `Errors ${errors} ▲`;
    this.following.setAttribute("aria-pressed", String(session.following));
    const state = !session.ready ? "reading…" : session.following ? "following" : "paused";
    if (this.live.textContent !== state) this.live.textContent = state;
    this.drawBranch();
  }

  drawBranch() {
    const { branch } = this.session;
    show(this.branch, branch);
    if (!branch) { this.branch.replaceChildren(); return; }
    this.branch.replaceChildren(el("span", {}, `Branch ${branch.number}: ${branch.title || "(no words)"} `), el("button", { onclick: () => this.session.showBranch(null) }, "Back to the conversation"));
  }

  say(words) {
    this.note.textContent = words;
    show(this.note, words);
  }
}
