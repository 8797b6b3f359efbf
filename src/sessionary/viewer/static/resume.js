// The tab Resume: the command that continues a session in its agent.
import { get } from "./api.js";
import { copy, el, withCode } from "./dom.js";

const quote = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
export const commandLine = (words) => words.map(quote).join(" ");

export async function drawResume(session, drawer, copyNow) {
  const found = await get(`${session.base}/resume`);
  const line = (found.folder && found.folder_exists ? `cd ${quote(found.folder)} && ` : "") + commandLine(found.command);
  const button = el("button", { class: "go", onclick: () => copy(line, button) }, "Copy");
  if (copyNow) await copy(line, button).catch(() => {});
  const made = [el("p", {}, ...withCode("This command continues the session in its agent. `sessionary open` runs it.")), el("pre", { class: "command" }, line), el("p", {}, button)];
  if (found.folder && !found.folder_exists) made.push(el("p", { class: "hint" }, `The folder ${found.folder} does not exist.`));
  if (found.problems.length) made.push(el("h3", {}, "The agent may refuse it"), el("ul", {}, ...found.problems.map((one) => el("li", {}, one.message, one.repair ? el("span", { class: "hint" }, one.repair) : null))));
  return made;
}
