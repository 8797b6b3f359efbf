// Tokens and cost of all sessions, drawn by the server, and what will be deleted soon.
import { get } from "./api.js";
import { byId, day, dollars, el, plural, quantity, setHtml } from "./dom.js";

export async function showOverview() {
  const box = el("div", { class: "scroll overview", tabindex: "0" }, el("p", { class: "empty" }, "adding up\u2026"));
  byId("main").replaceChildren(el("div", { class: "session-head" }, el("div", { class: "line" }, el("a", { href: "#/", class: "back", "aria-label": "Back to the list" }, "\u2039"), el("h2", {}, "Overview"))), box);
  document.title = "Overview \u00b7 Sessionary";
  try {
    const found = await get("/api/overview");
    const facts = [`${quantity(found.tokens)} tokens`, dollars(found.cost), found.unpriced ? `${quantity(found.unpriced)} tokens without a known price` : "", found.silent ? `${plural(found.silent, "session")} without stated usage` : "", `prices of ${found.prices}`];
    box.replaceChildren(el("p", { class: "facts" }, facts.filter(Boolean).join(" \u00b7 ")), ...leaving(found.leaving), ...found.plots.map(plot));
    if (!found.plots.length) box.append(el("p", { class: "empty" }, "No session states what it used."));
  } catch (error) { box.replaceChildren(el("p", { class: "problem" }, error.message)); }
}

function plot({ title, svg }) {
  const drawn = el("figure", {}, el("figcaption", {}, title)), picture = el("div");
  setHtml(picture, svg);
  drawn.append(picture);
  return drawn;
}

function leaving(rows) {
  if (!rows.length) return [];
  return [el("section", { class: "leaving" }, el("h3", {}, `${plural(rows.length, "session")} will be deleted by their agents within a week`), el("p", { class: "hint" }, "`sessionary archive run` keeps them."),
    el("ul", {}, ...rows.slice(0, 50).map((row) => el("li", {}, el("a", { href: `#/s/${row.key}` }, row.title), new Date(row.when) < Date.now() ? " at the next clean-up of its agent" : ` ${day(row.when)}`))))];
}
