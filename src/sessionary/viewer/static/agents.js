// Sub-agents, folded into the place of the transcript where they began.
import { events } from "./api.js";
import { el, plural, quantity } from "./dom.js";
import { drawItem, pair } from "./item.js";
import { HEALTH } from "./list.js";

const INLINE = 200; // messages of a sub-agent that are shown inside its parent

const timeOf = (item) => (item.sub ? item.sub.created : item.time) || "";

// Adds the sub-agents of a session that are not among its items yet; true if there are any.
export function addAgents(items, row, rows) {
  const known = new Set(items.filter((item) => item.sub).map((item) => item.sub.key));
  const found = rows.filter((one) => one.nested && one.parent === row.id && one.kind === row.kind && one.key !== row.key && !known.has(one.key));
  found.sort((a, b) => ((a.created || "") < (b.created || "") ? -1 : 1));
  for (const one of found) {
    let at = items.length;
    if (one.created) while (at > 0 && timeOf(items[at - 1]) > one.created) at--;
    items.splice(at, 0, { sub: one, parts: [] });
  }
  return found.length > 0;
}

export function drawAgent(item, signal) {
  const row = item.sub, body = el("div", { class: "body" });
  const facts = [plural(row.messages, "message"), row.tokens ? `${quantity(row.tokens)} tok` : "", (HEALTH[row.health] || HEALTH.ok)[1]].filter(Boolean);
  const box = el("details", { class: "agent-session" }, el("summary", {}, el("b", {}, "Sub-agent "), row.title || row.id, el("span", { class: "more" }, facts.join(" · "))), body);
  box.open = Boolean(item.open);
  const fill = async () => {
    if (body.firstChild) return;
    const base = `/api/session/${row.key}`, calls = new Map();
    body.append(el("p", {}, el("a", { href: `#/s/${row.key}` }, "Open it by itself")));
    if (!item.found) {
      item.found = [];
      await events(`${base}/stream`, signal, (name, data) => { if (name === "items") item.found.push(...data); }).catch((error) => body.append(error.message));
      for (const one of item.found) pair(one, calls);
    }
    const shown = item.found.filter((one) => one.problem || (one.parts.length && !one.outside));
    shown.slice(0, INLINE).forEach((one, at) => body.append(drawItem(one, { link: () => `#/s/${row.key}/${one.index}`, before: shown[at - 1], base })));
    if (shown.length > INLINE) body.append(el("p", {}, `… ${plural(shown.length - INLINE, "more message")}`));
  };
  if (box.open) fill();
  box.addEventListener("toggle", () => { item.open = box.open; if (box.open) fill(); });
  return el("div", { class: "sub", role: "article" }, box);
}
