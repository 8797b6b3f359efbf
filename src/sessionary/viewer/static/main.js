// The page: addresses, keys, search, and what is open.
import { byId, el, failed, plural, withCode } from "./dom.js";
import { SessionList } from "./list.js";
import { Search } from "./search.js";
import { first } from "./start.js";

const SOON = 100; // milliseconds from the whole list, and the session, to the loading of what else may be opened
const SESSION = ["session", "agents", "find", "head", "images", "item", "live", "toolbar"]; // all are asked for at once

let list, search, sessions, pages, opening, loading, session = null;

const KEYS = [
  ["j k", "next, previous message"], ["J K or } {", "next, previous prompt"], ["e E", "next, previous error"], ["g G", "first, last message"],
  ["[ ]", "previous, next session"], ["/", "search in all sessions"], ["f", "find in this session; Enter: next match"], ["l", "skim: prompts and final answers"],
  ["b", "messages of left branches"], ["Enter", "open or fold the marked message"], ["w", "follow, or pause"], ["d", "health"], ["i", "files, usage, branches, records"],
  ["a", "what can be changed"], ["X W F", "repair, rewind, fork"], ["n t s", "name, tags, star"], ["x A D", "export, archive, trash"], ["U", "undo the last change"], ["y", "copy the message"], ["R", "copy the command that continues the session"], ["o", "overview: tokens, cost, what will be deleted"], ["r", "reload the list"], ["Esc", "close; back to the list"], ["?", "this help"],
];

const ACTION_KEYS = { X: ["repair", "copy"], W: ["rewind"], F: ["fork"], n: ["rename"], t: ["tag"], s: ["star"], x: ["export"], A: ["archive"], D: ["trash"] };

const loadSessions = () => (opening ||= Promise.all(SESSION.map((name) => import(`./${name}.js`))).then(([found]) => (sessions = found)));
const loadPages = () => (loading ||= import("./pages.js").then((found) => (pages = { ...found, drawer: new found.Drawer({ session: () => session, changed }) })));

// The drawer of the open session, which is loaded behind it.
const inDrawer = (name) => async (...given) => (await loadPages()).drawer[name](...given);
const drawer = {
  get isOpen() { return Boolean(pages?.drawer.isOpen); },
  close() { pages?.drawer.close(); },
  open: inDrawer("open"), toggle: inDrawer("toggle"), act: inDrawer("act"),
};

// The modules that the address needs, while they are not loaded.
function missing() {
  if (/^#\/s\//.test(location.hash)) return sessions ? null : loadSessions();
  return !pages && /^#\/(charts|diff|overview)\b/.test(location.hash) ? loadPages() : null;
}

function route() {
  const needed = missing();
  if (needed) { needed.then(route, (error) => byId("main").replaceChildren(failed(error))); return; }
  const found = /^#\/s\/(\w+)(?:\/(m?)(\d+))?$/.exec(location.hash);
  const row = found && list.byKey.get(found[1]);
  const wanted = found?.[3] === undefined ? undefined : { [found[2] ? "at" : "index"]: Number(found[3]) };
  if (row && session?.row.key === row.key) { if (wanted && !session.goTo(wanted)) session.wanted = wanted; return; }
  session?.close();
  session = null;
  drawer.close();
  document.body.classList.toggle("reading", Boolean(found));
  if (showPage()) return;
  if (!row) {
    byId("main").replaceChildren(found ? el("p", { class: "empty" }, "No session has this address; it was moved or deleted.") : welcome());
    list.show(null);
    return;
  }
  document.title = `${row.title || row.id} · Sessionary`;
  session = new sessions.Session(row, list, { wanted, drawer });
  session.open();
  list.show(row.key);
}

// The pages that do not show one session: overview, the plots of a session, two sessions side by side.
function showPage() {
  const found = /^#\/(overview|charts|diff)(?:\/(\w+))?(?:\/(\w+))?$/.exec(location.hash);
  const [name, row, other] = found ? [found[1], list.byKey.get(found[2]), list.byKey.get(found[3])] : [];
  if (!found || (name !== "overview" && !row)) return false;
  document.body.classList.add("reading");
  list.show(row ? row.key : null);
  if (name === "overview") pages.showOverview();
  else if (name === "charts") pages.showCharts(row);
  else if (other) pages.showDiff(row, other);
  else pages.chooseOther(row, list);
  return true;
}

function welcome() {
  document.title = "Sessionary";
  const damaged = list.rows.filter((row) => !["ok", "note"].includes(row.health)).length;
  return el("div", { class: "empty" },
    el("p", {}, list.rows.length ? "Choose a session, or press / to search in all of them. ? shows the keys." : "Sessions are shown here once an agent has stored one; r looks again."),
    damaged ? el("p", {}, el("button", { onclick: () => { list.filters.chosen = { health: "damaged" }; list.filter(); } }, `${plural(damaged, "session")} damaged: show`)) : null);
}

// After a change the list is read again; the notice with its undo stays in sight.
async function changed(of) {
  of.granted = undefined;
  await list.refresh();
  const row = list.byKey.get(of.row.key);
  if (session !== of) return;
  if (row) { session.row = row; session.head.draw(); }
  else session.head.say("The list does not have this session any more.");
}

async function actByKey(names) {
  const of = session;
  try {
    const { names: granted } = await (await loadPages()).actionsOf(of);
    await drawer.act(names.find((name) => granted.includes(name)) || names[0]);
  } catch (error) { of.head.say(error.message); }
}

function showKeys() {
  const dialog = byId("dialog");
  dialog.replaceChildren(el("h2", { id: "dialog-title" }, "Keys"), el("dl", {}, ...KEYS.flatMap(([keys, words]) => [el("dt", {}, keys), el("dd", {}, words)])), el("button", { onclick: () => dialog.close() }, "Close"));
  dialog.showModal();
}

function act(key) {
  const inSession = session && {
    j: () => session.step(1), k: () => session.step(-1), J: () => session.jump(sessions.isPrompt, 1), K: () => session.jump(sessions.isPrompt, -1),
    e: () => session.jump(sessions.hasError, 1), E: () => session.jump(sessions.hasError, -1), g: () => session.ends(false), G: () => session.ends(true),
    f: () => { session.head.toolbar.reveal(session.find.element); session.find.input.focus(); session.find.input.select(); }, l: () => session.toggle("skim"), b: () => session.toggle("branches"), d: () => drawer.toggle("health"), i: () => drawer.toggle("files"), a: () => drawer.toggle("actions"), U: () => loadPages().then(() => pages.undoLatest(session, pages.drawer)),
    w: () => session.toggleFollow(), y: () => session.copyMarked(), R: () => drawer.open("resume", true), Enter: () => session.openMarked(),
  };
  const anywhere = { "[": () => list.step(-1), "]": () => list.step(1), "/": () => byId("search").select() ?? byId("search").focus(), r: () => list.refresh(), o: () => (location.hash = "#/overview"), "?": showKeys };
  if (session) {
    for (const [name, names] of Object.entries(ACTION_KEYS)) inSession[name] = () => actByKey(names);
    inSession["}"] = inSession.J;
    inSession["{"] = inSession.K;
  } else Object.assign(anywhere, { j: () => list.step(1), k: () => list.step(-1) });
  const found = anywhere[key] || inSession?.[key];
  found?.();
  return Boolean(found);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("dialog").open) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "Escape") {
    if (document.querySelector(":popover-open")) return; // the browser closes that
    if (event.target.id === "search") { search.clear(); event.target.blur(); }
    else if (drawer.isOpen) drawer.close();
    else if (!typing) location.hash = "#/";
    return;
  }
  if (event.key === "Enter" && (!session?.body.contains(event.target) || event.target.closest("button, a, summary"))) return;
  if (!typing && act(event.key)) event.preventDefault();
}

function theme() {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = localStorage["sessionary-theme"] = dark ? "light" : "dark";
}

function askForLink(error) {
  const input = el("input", { type: "password", "aria-label": "Link", placeholder: "http://127.0.0.1:…/#token=…" });
  byId("main").replaceChildren(el("form", { class: "empty", onsubmit: (event) => {
    event.preventDefault();
    const token = input.value.trim().split("token=").pop();
    location.hash = `#token=${token}`;
    location.reload();
  } }, failed(error), el("p", {}, ...withCode("`sessionary serve --no-open` prints a link. Paste it here:")), input, " ", el("button", {}, "Open")));
  document.body.classList.add("reading");
}

// What names other sessions is complete once all rows are here: sub-agents, the choice of one to compare with.
async function listed() {
  setTimeout(() => list.refresh().catch(() => {}), 1000);
  if (session) { session.listed(); list.show(session.row.key); await session.read; }
  else if (/^(#\/?|#\/diff\/\w+)?$/.test(location.hash)) route();
  setTimeout(() => Promise.all([loadSessions(), loadPages()]).catch(() => {}), SOON);
}

async function begin() {
  window.addEventListener("hashchange", () => { if (location.hash.startsWith("#token=")) location.reload(); });
  missing()?.catch(() => {}); // while the list is read
  list = new SessionList((key) => (location.hash = `#/s/${key}`), first);
  byId("theme").addEventListener("click", theme);
  byId("help").addEventListener("click", showKeys);
  try { await list.load(); } catch (error) { askForLink(error); return; }
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", route);
  window.addEventListener("focus", () => list.refresh().catch(() => {}));
  search = new Search(list);
  route();
  document.body.classList.add("ready");
  list.whole.then(listed, (error) => (byId("state").textContent = `not all sessions were read: ${error.message}`));
}

begin();
