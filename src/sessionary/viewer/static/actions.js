// The tab Change: each action with what it would do, its confirmation, and its undo.
import { get, post } from "./api.js";
import { bytes, copy, el, failed, plural, withCode } from "./dom.js";
import { drawExport } from "./export.js";
import { commandLine } from "./resume.js";

const LABELS = {
  repair: ["Repair", "X"], copy: ["Repaired copy", "X"], rewind: ["Rewind", "W"], fork: ["Fork", "F"], rename: ["Rename", "n"], tag: ["Tags", "t"],
  star: ["Star", "s"], export: ["Export", "x"], archive: ["Archive", "A"], trash: ["Move to trash", "D"],
};
let latest = null; // the undo of the last change

export async function actionsOf(session) {
  session.granted ??= await get(`${session.base}/actions`);
  return session.granted;
}

export async function drawActions(session, drawer, name) {
  const { names, otherwise } = await actionsOf(session);
  const place = el("div", { class: "preview" });
  const made = [el("div", { class: "bar", role: "group", "aria-label": "Actions" }, ...names.map((one) => el("button", { title: `${LABELS[one][0]} (${LABELS[one][1]})`, onclick: () => begin(one, session, drawer, place) }, label(one, session)))), place];
  if (names.length < 2) made.push(el("p", { class: "hint" }, ...withCode("This server is read-only: `sessionary serve` without --read-only can change sessions.")));
  else if (!names.includes("fork")) made.push(el("p", { class: "hint" }, ...withCode(others(names, otherwise))));
  if (name && names.includes(name)) begin(name, session, drawer, place);
  return made;
}

const label = (name, session) => (name === "star" && session.row.starred ? "Remove the star" : LABELS[name][0]);
const others = (names, otherwise) => (otherwise ? `${names.includes("repair") ? "A repair merges conflict copies of a file synchroniser. " : ""}\`${commandLine(otherwise)}\` lists the commands that change it otherwise.`
  : "The files of this session belong to its agent and are only read. Names, tags and stars are kept in the data folder of Sessionary.");

// Begins an action from a key or from another tab. A star needs no questions.
export async function run(name, session, drawer) {
  if (!session) return;
  try {
    const { names } = await actionsOf(session);
    if (!names.includes(name)) { session.head.say(`${LABELS[name][0]} is not granted for this session.`); return; }
    if (name === "star") await carryOut("star", session, drawer, session.head.note, { on: !session.row.starred });
    else await drawer.open("actions", name);
  } catch (error) { session.head.say(error.message); }
}

export async function undoLatest(session, drawer) {
  if (!latest) { session?.head.say("Nothing to undo in this page; `sessionary undo --list` lists all changes."); return; }
  await drawer.open("actions");
  await undo(latest, session, drawer, drawer.panel.querySelector(".preview"));
}

function begin(name, session, drawer, place) {
  const turn = (session.marked || session.view[session.at])?.turn || session.row.turns;
  const go = (given) => preview(name, session, drawer, place, given);
  if (name === "rename") return ask(place, "New name", session.row.title || "", (text) => go({ name: text }), "An empty name removes it: the title is then that of the session itself.");
  if (name === "tag") return ask(place, "Tags", (session.row.tags || []).join(" "), (text) => go({ tags: text.split(/[\s,]+/).filter(Boolean) }), "Words with blanks between them.");
  if (name === "rewind") return askTurn(session, place, (text) => go({ turn: wholeNumber(text) }));
  if (name === "fork") return ask(place, "Last turn to copy", String(turn), (text) => go({ turn: wholeNumber(text) }), `A new session with the turns up to it; the session has ${session.row.turns}.`);
  if (name === "star") return carryOut(name, session, drawer, place, { on: !session.row.starred });
  if (name === "export") return drawExport(session, place);
  return go({});
}

// The turns of a brainstorm are its iterations; it goes back to one, and others to the end of one.
async function askTurn(session, place, take) {
  const marked = (session.marked || session.view[session.at])?.turn;
  try {
    const { turns, unit } = await post(`${session.base}/actions/rewind`, { dry_run: true });
    if (unit === "turn") ask(place, "Last turn to keep", String(Math.max((marked || turns) - 1, 0)), take, `Later turns are removed; the session has ${turns}.`);
    else ask(place, `Go back to ${unit}`, String(Math.max(turns - 1, 1)), take, `The session is at ${unit} ${turns}. Later ones stay in its history.`);
  } catch (error) { place.replaceChildren(failed(error)); }
}

const wholeNumber = (text) => (/^\d+$/.test(text.trim()) ? Number(text) : null);

function ask(place, words, value, take, hint) {
  const input = el("input", { value, "aria-label": words, autofocus: true });
  place.replaceChildren(el("form", { onsubmit: (event) => { event.preventDefault(); take(input.value); } },
    el("label", {}, `${words} `, input), " ", el("button", {}, "Preview")), el("p", { class: "hint" }, hint));
  input.focus();
  input.select();
}

async function preview(name, session, drawer, place, given) {
  place.setAttribute("aria-busy", "true");
  try {
    const found = await post(`${session.base}/actions/${name}`, { ...given, dry_run: true });
    const nothing = name === "repair" && !found.changed;
    place.replaceChildren(...WORDS[name](found, given), nothing ? "" : el("p", { class: "bar" },
      el("button", { class: "go", onclick: (event) => { event.target.disabled = true; carryOut(name, session, drawer, place, given); } }, `${LABELS[name][0]} now`),
      el("button", { onclick: () => place.replaceChildren() }, "Cancel")));
    place.querySelector(".go")?.focus();
  } catch (error) { place.replaceChildren(failed(error)); }
  place.removeAttribute("aria-busy");
}

const WORDS = {
  repair: (found) => repairWords(found),
  copy: (found) => [el("p", {}, "A repaired copy would be written to this new folder. The session itself is only read."), el("pre", {}, found.folder)],
  rewind: (found) => [el("p", {}, found.messages_dropped ? `${plural(found.messages_dropped, "message")} would be removed, ${found.messages_kept.toLocaleString("en")} stay.`
    : found.turn < found.turns ? `It would go back from ${found.unit} ${found.turns} to ${found.turn}. What was said since stays in its history.` : "No message would be removed.")],
  fork: (found) => [el("p", {}, `A new session would be created with ${plural(found.turn, "turn")} and ${plural(found.messages, "message")}; this one stays as it is.${found.open ? ` ${plural(found.open, "tool call")} without a result would get one that says so.` : ""}`)],
  rename: (found, given) => [el("p", {}, `The name would change from “${found.before ?? "(none)"}” to “${given.name || "(none)"}”.`)],
  tag: (found, given) => [el("p", {}, `The tags would change from ${words(found.before)} to ${words(given.tags)}.`)],
  archive: (found) => [el("p", {}, found.archived ? "It is already archived; new content would be added." : "A byte-exact copy would be kept in the archive, also when its agent deletes the session."), el("pre", {}, found.folder)],
  trash: (found) => [el("p", {}, `${plural(found.messages, "message")}, ${bytes(found.size)} would move to the trash.`)],
};
const DONE = {
  repair: (found) => (found.remaining.length ? `Repaired; ${plural(found.remaining.length, "problem")} remain.` : "Repaired."),
  copy: (found) => `The copy is written: ${plural(found.mends.length, "change")}, ${found.remaining.length ? `${plural(found.remaining.length, "problem")} remain` : "nothing is damaged in it"}${found.lost ? `, ${bytes(found.lost)} could not be recovered` : ""}.`,
  rewind: (found) => (found.messages_dropped ? `Rewound: ${plural(found.messages_dropped, "message")} removed.` : `It is at ${found.unit} ${found.turn} now.`),
  fork: (found) => `The fork has ${plural(found.messages, "message")}.`,
  rename: (found) => `Renamed. It was “${found.before ?? "(none)"}”.`,
  tag: () => "The tags are changed.",
  star: (found) => (found.before ? "The star is removed." : "It has a star."),
  archive: (found) => `Archived${found.size === undefined ? "" : `: ${bytes(found.size)}`}.`,
  trash: () => "Moved to the trash.",
};

const words = (tags) => (tags.length ? tags.map((tag) => `#${tag}`).join(" ") : "none");

export const diffLines = (text) => el("pre", { class: "diff" }, ...text.split("\n").map((line) => el("span", { class: line[0] === "+" ? "add" : line[0] === "-" ? "del" : "same" }, `${line.slice(0, 300)}${line.length > 300 ? "…" : ""}\n`)));

export function repairWords(found) {
  if (!found.changed && !(found.copies || []).length) return [el("p", {}, found.remaining.length ? "It cannot be repaired." : "Nothing to repair.")];
  const fixes = [...(found.fixes || []).map((fix) => `line ${fix.line}: ${fix.what}`), ...(found.mends || []).map((one) => `message ${one.index}: ${one.what}`), ...(found.copies || []).map((one) => `${one.name}: ${one.done}`)];
  return [
    found.messages_after === undefined ? null : el("p", {}, `${plural(found.messages_after, "message")} after the repair; ${found.messages_before} can be read now.${found.set_aside ? " What it removes is quarantined beside the session." : ""}`),
    el("ul", {}, ...fixes.map((text) => el("li", {}, text))),
    found.diff ? diffLines(found.diff) : null,
    found.remaining.length ? el("p", { class: "hint" }, `${plural(found.remaining.length, "problem")} would remain.`) : null,
  ].filter(Boolean);
}

async function carryOut(name, session, drawer, place, given) {
  try {
    const found = await post(`${session.base}/actions/${name}`, { ...given, dry_run: false });
    const notice = el("p", { role: "status", class: "done" }, `${DONE[name](found)} `);
    if (found.undo) {
      latest = { number: found.undo, label: LABELS[name][0] };
      const change = latest;
      notice.append(el("button", { onclick: (event) => { event.target.disabled = true; undo(change, session, drawer, place); } }, "Undo"));
    } else if (["repair", "rewind", "fork"].includes(name)) notice.append(el("span", { class: "hint" }, "This kind of session keeps no undo; what was removed stays in its file or beside it."));
    if (found.key) notice.append(" ", el("a", { href: `#/s/${found.key}` }, "Open it"));
    const more = found.command ? [el("p", { class: "hint" }, "This command shows it:"), el("pre", { class: "command" }, commandLine(found.command)), copyButton(commandLine(found.command))] : [];
    if (found.mends && found.path) more.unshift(el("ul", {}, ...found.mends.slice(0, 200).map((one) => el("li", {}, `${one.line ? `line ${one.line}: ` : ""}${one.what}`))));
    show(place, session, [notice, ...more]);
    await drawer.changed(session);
  } catch (error) { show(place, session, [failed(error)]); }
}

function show(place, session, made) {
  if (place === session.head.note) session.head.say("");
  place.classList.remove("gone");
  place.replaceChildren(...made);
  place.querySelector("button")?.focus();
}

const copyButton = (text) => el("button", { onclick: (event) => copy(text, event.target) }, "Copy");

async function undo(change, session, drawer, place) {
  try {
    await post(`/api/undo/${change.number}`, {});
    if (latest === change) latest = null;
    show(place, session, [el("p", { role: "status", class: "done" }, `${change.label}: undone.`)]);
    await drawer.changed(session);
  } catch (error) { show(place, session, [failed(error)]); }
}
