// The export of a session: it is made, what it lacks is listed, and then it is saved.
import { events, get } from "./api.js";
import { bytes, el, failed, plural } from "./dom.js";

const WORDS = { md: "Markdown", html: "HTML page", json: "JSON document", jsonl: "JSON Lines", atif: "ATIF trajectory", sts: "STS trace", otel: "OpenTelemetry" };

export async function drawExport(session, place) {
  const { formats } = await get(`${session.base}/actions`);
  const form = el("select", { "aria-label": "Format", autofocus: true }, ...formats.map((one) => el("option", { value: one.name }, `${WORDS[one.name] || one.name} (${one.suffix})`)));
  const box = (text) => { const input = el("input", { type: "checkbox" }); return [input, el("label", { class: "check" }, input, text)]; };
  const [redact, redactLine] = box("Mask secrets, home folders and user names"), [branches, branchesLine] = box("Include abandoned branches");
  const result = el("div", {});
  const make = async (event) => {
    event.preventDefault();
    result.replaceChildren(el("p", { role: "status" }, "exporting…"));
    const query = `format=${form.value}&redact=${Number(redact.checked)}&branches=${Number(branches.checked)}`, pieces = [];
    try {
      await events(`${session.base}/export?${query}`, session.ended.signal, (name, data) => {
        if (name === "piece") pieces.push(data);
        else if (name === "failed") result.replaceChildren(failed(data));
        else if (name === "done") result.replaceChildren(...drawDone(data, new Blob(pieces, { type: "application/octet-stream" })));
      });
      result.querySelector(".go")?.focus();
    } catch (error) { if (error.name !== "AbortError") result.replaceChildren(failed(error)); }
  };
  place.replaceChildren(el("form", { class: "export", onsubmit: make }, form, redactLine, branchesLine, el("button", {}, "Export")), result);
  form.focus();
}

function drawDone(found, file) {
  const masked = Object.entries(found.masked).map(([rule, count]) => `${count.toLocaleString("en")} × ${rule}`);
  return [
    el("p", { role: "status" }, `${plural(found.messages, "message")}, ${bytes(file.size)}.`),
    found.losses.length ? el("div", {}, el("h3", {}, "Not exported"), el("ul", {}, ...found.losses.map((one) => el("li", {}, one)))) : el("p", {}, "Nothing is left out."),
    masked.length ? el("p", {}, `Masked: ${masked.join(", ")}`) : null,
    el("p", {}, el("button", { class: "go", onclick: () => save(file, found.name) }, `Save ${found.name}`)),
  ].filter(Boolean);
}

function save(file, name) {
  const url = URL.createObjectURL(file);
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
