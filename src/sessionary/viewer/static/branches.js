// The tab Branches: what was left in this session, as a tree, and the sessions that were forked from it.
import { get } from "./api.js";
import { clock, el, plural } from "./dom.js";

export async function drawBranches(session, drawer) {
  const tree = await get(`${session.base}/branches`), made = [];
  const below = new Map();
  for (const one of tree.slice(1)) below.set(one.parent, [...(below.get(one.parent) || []), one]);
  const chosen = session.branch?.number ?? 0;
  const choose = (branch) => { session.showBranch(branch.number ? branch : null); drawer.open("branches"); };
  if (tree.length > 1) made.push(el("ul", { class: "tree", "aria-label": "Branches" }, draw(tree[0], below, chosen, choose)));
  else made.push(el("p", { class: "hint" }, "This session has no abandoned branches."));
  return [...made, ...relatives(session)];
}

function draw(branch, below, chosen, choose) {
  const on = branch.number === chosen;
  const words = branch.number ? branch.title || `branch ${branch.number}` : "The conversation";
  const facts = [plural(branch.messages, "message"), branch.number ? `left ${branch.turn ? `in turn ${branch.turn}` : "at the beginning"}` : "", branch.time && branch.number ? clock(branch.time) : ""].filter(Boolean).join(" · ");
  const children = below.get(branch.number) || [];
  return el("li", {},
    el("button", { class: "branch", "aria-pressed": String(on), onclick: () => choose(branch) }, `${branch.number ? "↳ " : ""}${words}`), el("span", { class: "more" }, facts),
    children.length ? el("ul", {}, ...children.map((one) => draw(one, below, chosen, choose))) : null);
}

// Forks are sessions of their own.
function relatives(session) {
  const { row, list } = session, made = [];
  const link = (one) => el("li", {}, el("a", { href: `#/s/${one.key}` }, one.title || one.id), el("span", { class: "more" }, ` ${plural(one.turns, "turn")}`));
  const parent = row.parent && list.rows.find((one) => one.id === row.parent && one.kind === row.kind);
  if (parent) made.push(el("h3", {}, row.nested ? "Started by" : "Forked from"), el("ul", {}, link(parent)));
  const children = list.rows.filter((one) => one.parent === row.id && one.kind === row.kind && one.key !== row.key);
  const forks = children.filter((one) => !one.nested), agents = children.filter((one) => one.nested);
  if (forks.length) made.push(el("h3", {}, "Forks"), el("ul", {}, ...forks.map(link)));
  if (agents.length) made.push(el("h3", {}, "Sub-agents"), el("ul", {}, ...agents.map(link)));
  return made;
}
