// The tab Health: each problem with its bytes, its text and its value, and what a repair would do.
import { get, post } from "./api.js";
import { el, plural, withCode } from "./dom.js";
import { HEALTH } from "./list.js";
import { actionsOf, repairWords } from "./actions.js";

const OPEN = 3, ROW = 8; // places that are shown at once; bytes in a row

export async function drawHealth(session, drawer) {
  const [found, granted] = await Promise.all([get(`${session.base}/health`), actionsOf(session)]);
  const made = [];
  if (!found.problems.length) return [el("p", { class: "well" }, "No problems were found.")];
  const damaged = found.problems.length - found.notes;
  made.push(el("p", {}, damaged ? `${plural(damaged, "problem")}${found.notes ? `, ${plural(found.notes, "note")}` : ""}` : `${plural(found.notes, "note")}, nothing is damaged`));
  let fixes = new Map();
  if (granted.names.includes("repair")) {
    const preview = await post(`${session.base}/actions/repair`, { dry_run: true }).catch((error) => ({ failed: error }));
    fixes = new Map((preview.fixes || []).map((fix) => [fix.line, fix.what]));
    made.push(el("section", { class: "preview", "aria-label": "Preview of the repair" }, el("h3", {}, "What a repair would do"),
      ...(preview.failed ? [el("p", { class: "problem" }, preview.failed.message)] : repairWords(preview)),
      preview.changed ? el("button", { class: "go", onclick: () => drawer.act("repair") }, "Repair…") : null));
  } else if (granted.names.includes("copy") && damaged)
    made.push(el("section", { class: "preview", "aria-label": "Preview of the repair" }, el("h3", {}, "What a repair would do"),
      el("p", {}, "Only its agent may change this session. A repaired copy is written to a new folder, and the session stays as it is."),
      el("button", { class: "go", onclick: () => drawer.act("copy") }, "Write a repaired copy…")));
  found.problems.forEach((one, at) => made.push(drawProblem(one, fixes.get(one.line), at < OPEN, session)));
  return made;
}

function drawProblem(one, fix, open, session) {
  const severity = (HEALTH[one.severity] || HEALTH.ok)[1];
  const place = `${one.path.split("/").pop()}${one.line ? `, line ${one.line.toLocaleString("en")}` : ""}${one.byte === null ? "" : `, byte ${one.byte.toLocaleString("en")}`}`;
  const item = one.line ? session.items.find((other) => other.problem && other.line === one.line) : null;
  return el("section", { class: "found" },
    el("h3", {}, el("span", { class: `health ${one.severity}` }, severity === "ok" ? "note" : severity), ` · ${one.code}`),
    el("p", {}, one.message),
    el("p", { class: "more", title: one.path }, place, item && session.view.includes(item) ? el("button", { class: "small", onclick: () => session.mark(session.view.indexOf(item)) }, "show in the transcript") : null),
    fix ? el("p", { class: "fix" }, `A repair: ${fix}.`) : one.repair ? el("p", { class: "hint" }, ...withCode(one.repair)) : null,
    one.unseen ? el("p", { class: "hint" }, `The place cannot be shown: ${one.unseen}`) : null,
    one.hex ? el("details", { class: "place", open }, el("summary", {}, "Stored bytes"), drawText(one.text), drawHex(one.hex)) : null,
    one.json ? el("details", { class: "place" }, el("summary", {}, "As JSON"), el("pre", {}, one.json)) : one.hex ? el("p", { class: "hint" }, "This line is not valid JSON.") : null);
}

const drawText = ([before, damaged, behind]) => el("pre", { class: "stored", "aria-label": "The line as text" }, before, el("mark", { class: "damage" }, damaged || "‸"), behind);

function drawHex(hex) {
  const [from, to] = hex.mark, rows = [];
  const byte = (at) => Number.parseInt(hex.bytes.slice(2 * at, 2 * at + 2), 16);
  const count = hex.bytes.length / 2;
  for (let row = 0; row < count; row += ROW) {
    const line = el("span", { class: "hex-row" }, el("span", { class: "offset" }, (hex.start + row).toString(16).padStart(8, "0")), "  ");
    const text = el("span", { class: "chars" });
    for (let at = row; at < row + ROW; at++) {
      const value = at < count ? byte(at) : null, damaged = at >= from && at < to;
      line.append(el("span", { class: damaged ? "damage" : null }, value === null ? "  " : value.toString(16).padStart(2, "0")), at % 4 === 3 ? "  " : " ");
      if (value !== null) text.append(el("span", { class: damaged ? "damage" : null }, value >= 32 && value < 127 ? String.fromCharCode(value) : "·"));
    }
    line.append(text, "\n");
    rows.push(line);
  }
  const lead = hex.before ? `… ${hex.before.toLocaleString("en")} bytes of the line before\n` : "", tail = hex.after ? `… ${hex.after.toLocaleString("en")} bytes behind` : "";
  return el("pre", { class: "hex", tabindex: "0", "aria-label": "The bytes in hexadecimal" }, lead, ...rows, tail);
}
