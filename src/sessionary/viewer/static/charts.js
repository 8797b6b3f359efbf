// The plots of one session, and the board of a feature.
import { get } from "./api.js";
import { byId, clock, el, failed, plural, setHtml } from "./dom.js";

const STATES = { pending: "Pending", in_progress: "In progress", blocked: "Blocked", completed: "Completed" };

// A plot that the server has drawn. On a narrow screen it scrolls sideways.
export function plot({ title, svg, words }) {
  const picture = el("div", { class: "plot", tabindex: "0", role: "group", "aria-label": title });
  setHtml(picture, svg);
  return el("figure", {}, el("figcaption", {}, title), picture, words ? el("p", { class: "hint" }, words) : null);
}

// A page beside the list: its head, and the scrolled rest, which is filled later.
export function openPage(title, back, ...links) {
  const box = el("div", { class: "scroll overview", tabindex: "0" }, el("p", { class: "empty" }, "reading\u2026"));
  byId("main").replaceChildren(el("div", { class: "session-head" }, el("div", { class: "line" }, el("a", { href: back, class: "back", "aria-label": "Back" }, "\u2039"), el("h2", { dir: "auto" }, title), ...links)), box);
  document.title = `${title} \u00b7 Sessionary`;
  return box;
}

export async function fill(box, path, draw) {
  try { box.replaceChildren(...draw(await get(path))); } catch (error) {
    box.replaceChildren(failed(error));
  }
}

export function showCharts(row) {
  const title = row.title || row.id;
  const box = openPage(title, `#/s/${row.key}`, el("a", { href: `#/s/${row.key}` }, "Session"), el("a", { href: `#/diff/${row.key}` }, "Compare with\u2026"));
  return fill(box, `/api/session/${row.key}/charts`, (found) => [
    ...(found.board ? drawBoard(found.board) : []),
    ...found.plots.map(plot),
    found.board || found.plots.length ? "" : el("p", { class: "empty" }, "No chart: the tool calls of this session have no times."),
  ]);
}

function drawBoard(board) {
  const tasks = board.phases.flatMap((phase) => phase.tasks.map((task) => ({ ...task, phase: phase.name })));
  const states = [...new Set([...Object.keys(STATES), ...tasks.map((task) => task.status)])];
  const facts = [board.status, board.progress === null ? "" : `${board.progress} % done`, board.model ? `model ${board.model}` : "", board.problems ? plural(board.problems, "problem") : ""].filter(Boolean);
  return [
    el("p", { class: "facts" }, facts.join(" \u00b7 ")),
    board.description ? el("p", {}, board.description) : "",
    ...board.locks.map(drawLock),
    el("div", { class: "board plot", tabindex: "0", role: "group", "aria-label": "Plan" }, ...states.map((state) => column(state, tasks.filter((task) => task.status === state), board.active))),
    el("h3", {}, "History"),
    drawHistory(board),
  ];
}

function drawLock(lock) {
  const who = lock.pid ? `process ${lock.pid}` : "another process";
  const since = lock.since ? ` since ${clock(lock.since)}` : "";
  return el("p", { class: lock.running ? "lock" : "problem" }, lock.running ? `Locked by ${who}${since} (${lock.file})` : `A lock was left by ${who}${since} (${lock.file})`);
}

function column(state, tasks, active) {
  return el("section", { class: "column" }, el("h3", {}, `${STATES[state] || state || "No status"} `, el("span", { class: "more" }, String(tasks.length))),
    el("ul", {}, ...tasks.map((task) => el("li", { class: `task ${state}${task.task_id === active ? " active" : ""}` },
      el("b", {}, task.task_id), task.task_id === active ? el("span", { class: "more" }, " active") : "",
      el("p", { dir: "auto" }, task.description),
      el("p", { class: "more" }, [task.phase, task.agent, task.completed_at ? `done ${clock(task.completed_at)}` : task.started_at ? `since ${clock(task.started_at)}` : "", task.artifacts.join(", ")].filter(Boolean).join(" \u00b7 "))))));
}

function drawHistory(board) {
  if (!board.history.length) return el("p", { class: "hint" }, "No entries.");
  const head = ["Time", "Command", "Task", "Agent", "Model", "Took", "Result"];
  const rows = board.history.map((one) => el("tr", { class: one.status === "failure" ? "failed" : "" },
    ...[one.timestamp ? clock(one.timestamp) : "", `${one.command} ${one.arguments}`, one.task_id, one.agent, one.model, one.took, one.error || one.status].map((text) => el("td", { dir: "auto" }, text))));
  return el("div", { class: "plot history", tabindex: "0", role: "group", "aria-label": "History" },
    el("table", {}, el("thead", {}, el("tr", {}, ...head.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, ...rows)),
    board.earlier ? el("p", { class: "hint" }, `${plural(board.earlier, "earlier entry").replace("entrys", "entries")} not shown`) : "");
}
