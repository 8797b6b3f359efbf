// Search in all sessions while the user types. Each key ends the search before it, on the server too.
import { events } from "./api.js";
import { ago, byId, bytes, el, plural } from "./dom.js";

const SPEAKERS = { assistant: "Agent", tool: "Tool" }; // as in the transcript

export class Search {
  constructor(list) {
    this.list = list;
    this.input = byId("search");
    this.hits = byId("hits");
    this.input.addEventListener("input", () => this.begin());
    this.input.addEventListener("keydown", (event) => { if (event.key === "ArrowDown") { event.preventDefault(); this.hits.querySelector("a")?.focus(); } });
    this.hits.addEventListener("keydown", (event) => this.onKey(event));
  }

  clear() {
    this.input.value = "";
    this.begin();
  }

  begin() {
    const words = this.input.value.trim();
    this.control?.abort();
    document.body.classList.toggle("searching", Boolean(words));
    this.hits.hidden = !words;
    if (!words) { this.hits.replaceChildren(); this.say(""); return; }
    this.control = new AbortController();
    this.run(words, this.control);
  }

  say(text) {
    byId("state").textContent = text;
    byId("found").textContent = text;
  }

  // The hits of the search before stay until the first one of this search.
  async run(words, control) {
    this.fresh = true;
    this.last = null;
    byId("state").textContent = "searching…";
    try {
      await events(`/api/search?q=${encodeURIComponent(words)}`, control.signal, (name, data) => {
        if (!control.signal.aborted) this.take(name, data);
      });
    } catch (error) {
      if (error.name !== "AbortError") this.fail(error);
    }
  }

  take(name, data) {
    if (this.fresh) { this.hits.replaceChildren(); this.hits.scrollTop = 0; this.fresh = false; }
    if (name === "hit") this.add(data);
    else if (name === "failed") this.fail(data);
    else {
      this.say(`${plural(data.hits, "hit")}${data.complete ? "" : ", stopped"} in ${plural(data.sessions, "session")} (${bytes(data.bytes)})${data.damaged ? `; ${plural(data.damaged, "damaged place")} not searched` : ""}`);
      if (!data.hits) this.hits.append(el("p", { class: "empty" }, "No hits."));
    }
  }

  add(hit) {
    const row = this.list.byKey.get(hit.key);
    if (hit.key !== this.last) {
      this.group = el("div", { role: "list" });
      this.hits.append(el("h2", {}, el("span", { class: "title", dir: "auto" }, row?.title || row?.id || hit.key), row ? el("span", { class: "kind" }, row.kind) : "", el("time", {}, ago(row?.updated))), this.group);
    }
    this.last = hit.key;
    this.group.append(el("div", { role: "listitem" }, el("a", { class: "hit", href: hit.part === "title" ? `#/s/${hit.key}` : `#/s/${hit.key}/${hit.index}` },
      el("span", { class: "kind" }, hit.part === "title" ? "Title" : hit.person ? "User" : hit.tool || SPEAKERS[hit.role] || hit.role || ""),
      ...hit.pieces.map((piece, at) => (at % 2 ? el("mark", {}, piece) : piece)))));
  }

  fail(error) {
    this.hits.replaceChildren(el("p", { class: "problem" }, error.message, error.hint ? el("span", { class: "hint" }, error.hint) : null));
    this.say("");
  }

  onKey(event) {
    const links = [...this.hits.querySelectorAll("a")], at = links.indexOf(event.target);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key];
    if (at < 0 || next === undefined) return;
    event.preventDefault();
    if (next < 0) this.input.focus();
    else links[Math.min(next, links.length - 1)].focus();
  }
}
