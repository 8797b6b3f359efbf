// The tab Usage: tokens and cost by model and by day.
import { get } from "./api.js";
import { dollars, el, plural, quantity } from "./dom.js";

const COLUMNS = [["input", "input"], ["cache_read", "cache read"], ["cache_write", "cache write"], ["output", "output"]];

export async function drawUsage(session) {
  const found = await get(`${session.base}/usage`);
  if (!found.states_usage && !found.family) return [el("p", { class: "hint" }, "The messages of this session record no usage.")];
  const made = [table("Model", [...found.models.map((one) => [one.model, one]), ...(found.models.length > 1 ? [["total", found.total]] : [])])];
  if (found.family) made.push(el("p", {}, `With ${plural(found.agents, "sub-agent")}: ${quantity(tokensOf(found.family))} tokens${found.family.cost === null ? "" : `, ${dollars(found.family.cost)}`}.`));
  if (found.days.length > 1) made.push(el("h3", {}, "By day"), table("Day", found.days.map((one) => [one.day || "no time", one])));
  const stated = found.total.stated_cost;
  made.push(el("p", { class: "hint" }, `Costs at list prices of ${found.prices}.${stated === null ? "" : ` The agent states ${dollars(stated)}.`}${found.total.unpriced ? ` ${quantity(found.total.unpriced)} tokens are of models without a known price.` : ""}`));
  return made;
}

const tokensOf = (one) => COLUMNS.reduce((sum, [name]) => sum + one[name], 0);

function table(head, rows) {
  return el("div", { class: "table", tabindex: "0", role: "region", "aria-label": `Usage by ${head.toLowerCase()}` }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, head), el("th", { scope: "col", class: "number" }, "cost"), ...COLUMNS.map(([, label]) => el("th", { scope: "col", class: "number" }, label)))),
    el("tbody", {}, ...rows.map(([name, one]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "number" }, one.cost === null ? "–" : dollars(one.cost)), ...COLUMNS.map(([key]) => el("td", { class: "number", title: one[key].toLocaleString("en") }, quantity(one[key]))))))));
}
