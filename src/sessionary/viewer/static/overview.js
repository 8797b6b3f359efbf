// All sessions as plots, drawn by the server: the year, tokens and cost, projects, and what will be deleted soon.
import { fill, openPage, plot } from "./charts.js";
import { day, dollars, el, plural, quantity, setHtml, withCode } from "./dom.js";

const FEW = 5; // sessions that are named before the others are folded

export function showOverview() {
  const box = openPage("Overview", "#/");
  return fill(box, "/api/overview", (found) => {
    const facts = [`${quantity(found.tokens)} tokens`, dollars(found.cost), found.unpriced ? `${quantity(found.unpriced)} tokens without a known price` : "", found.silent ? `${plural(found.silent, "session")} without stated usage` : "", `prices of ${found.prices}`];
    return [
      el("p", { class: "facts" }, facts.filter(Boolean).join(" \u00b7 ")), ...leaving(found.leaving), ...year(found.year), ...found.plots.map(bars),
      found.plots.length ? "" : el("p", { class: "hint" }, "No session records its usage."),
      ...projects(found),
    ];
  });
}

// The list beside it shows what was pressed.
const pick = (chosen) => document.dispatchEvent(new CustomEvent("choose", { detail: chosen }));

// The bars of a plot by model or project choose the sessions of one.
function bars(found) {
  const made = plot(found), name = { project: "project", model: "model" }[found.title.split(" ").pop()];
  const choose = (event) => { const bar = event.target.closest("[data-name]"); if (name && bar) pick({ [name]: bar.dataset.name }); };
  made.addEventListener("click", choose);
  made.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(event); } });
  return made;
}

// One map of the year at a time; the buttons choose it.
function year(maps) {
  if (!maps.length) return [];
  const picture = el("div", { class: "plot days", tabindex: "0", role: "group", "aria-label": "The last year; arrow keys choose a day, Enter lists its sessions", onclick: (event) => choose(event.target), onkeydown: (event) => onKey(event) });
  const said = el("p", { class: "hint", role: "status" }, "A press on a day lists its sessions.");
  let shown = null;
  const choose = (square) => square?.dataset.day && pick({ day: { date: square.dataset.day, used: shown.title === "Tokens" } });
  const onKey = (event) => {
    const by = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -7, ArrowRight: 7 }[event.key], days = [...picture.querySelectorAll("[data-day]")];
    const at = days.findIndex((one) => one.classList.contains("chosen"));
    if (event.key === "Enter" && at >= 0) choose(days[at]);
    if (!by) return;
    event.preventDefault();
    days[at]?.classList.remove("chosen");
    const next = days[at < 0 ? days.length - 1 : Math.min(Math.max(at + by, 0), days.length - 1)];
    next.classList.add("chosen");
    said.textContent = next.textContent;
  };
  const buttons = maps.map((one) => el("button", { onclick: () => show(one) }, one.title));
  const show = (chosen) => {
    setHtml(picture, chosen.svg);
    shown = chosen;
    requestAnimationFrame(() => (picture.scrollLeft = picture.scrollWidth)); // where it is wider than the screen, the last days
    maps.forEach((one, at) => buttons[at].setAttribute("aria-pressed", String(one === chosen)));
  };
  show(maps[0]);
  return [el("figure", {}, el("figcaption", {}, maps.length > 1 ? "The last year " : `${maps[0].title} in the last year`, ...(maps.length > 1 ? buttons : [])), picture, said)];
}

function projects({ work, brainstorms, features }) {
  const link = (one) => el("a", { href: `#/charts/${one.key}`, dir: "auto" }, one.title);
  return [
    work ? plot({ title: "Work sessions", svg: work }) : "",
    features.length ? el("section", {}, el("h3", {}, "Features"), el("ul", { class: "features" }, ...features.map((one) => el("li", {}, link(one),
      el("span", { class: "more" }, ` ${[one.status, one.progress === null ? "no tasks" : `${one.progress} % done`, one.locks ? "locked" : ""].filter(Boolean).join(" \u00b7 ")} `), one.progress === null ? "" : el("progress", { max: "100", value: String(one.progress), "aria-label": `Done of ${one.title}` }))))) : "",
    ...brainstorms.filter((one) => one.svg).map((one) => {
      const made = plot({ title: "", svg: one.svg });
      made.querySelector("figcaption").append("EMS of ", link(one));
      made.querySelector(".plot").setAttribute("aria-label", `EMS of ${one.title}`);
      return made;
    }),
  ];
}

const goneSoon = (rows) => el("ul", {}, ...rows.map((row) => el("li", {}, el("a", { href: `#/s/${row.key}` }, row.title), new Date(row.when) < Date.now() ? " at the next clean-up of its agent" : ` ${day(row.when)}`)));

function leaving(rows) {
  if (!rows.length) return [];
  return [el("section", { class: "leaving" }, el("h3", {}, `${plural(rows.length, "session")} will be deleted by their agents within a week`), el("p", { class: "hint" }, ...withCode("`sessionary archive run` keeps them.")),
    goneSoon(rows.slice(0, FEW)), rows.length > FEW ? el("details", {}, el("summary", {}, `${plural(rows.length - FEW, "more session")}`), goneSoon(rows.slice(FEW, 200))) : "")];
}
