// Elements, times and numbers. Stored text enters the page as text; HTML only through `setHtml`, cleaned by the server.
const policy = window.trustedTypes
  ? trustedTypes.createPolicy("sessionary", { createHTML: (text) => text })
  : { createHTML: (text) => text };

export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class") made.className = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function setHtml(element, cleaned) {
  element.innerHTML = policy.createHTML(cleaned);
}

// The text as nodes; what stands between backticks, such as a command, becomes code.
export const withCode = (text) => text.split("`").map((part, number) => (number % 2 ? el("code", {}, part) : part));

export const failed = (error) => el("p", { class: "problem", role: "alert" }, error.message, error.hint ? el("span", { class: "hint" }, ...withCode(error.hint)) : null);

export const byId = (id) => document.getElementById(id);

export function ago(text) {
  if (!text) return "";
  const seconds = (Date.now() - new Date(text)) / 1000;
  if (seconds < 0) return day(text);
  for (const [size, unit] of [[31557600, "y"], [2629800, "mo"], [604800, "w"], [86400, "d"], [3600, "h"], [60, "min"]])
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit} ago`;
  return "now";
}

const two = (number) => String(number).padStart(2, "0");

export function day(text) {
  const at = new Date(text);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

export function clock(text) {
  const at = new Date(text);
  return `${day(text)} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

export function quantity(number) {
  if (number === null || number === undefined) return "";
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (number >= size) return `${(number / size).toFixed(number < 10 * size ? 1 : 0)}${unit}`;
  return String(number);
}

export const bytes = (number) => { const text = quantity(number); return /\d$/.test(text) ? `${text} B` : `${text.slice(0, -1)} ${text.slice(-1)}B`; };
export const dollars = (cost) => (cost === null || cost === undefined ? "" : cost && cost < 0.01 ? "<$0.01" : `$${cost.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`);
export const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

export async function copy(text, button) {
  await navigator.clipboard.writeText(text);
  if (button) {
    const before = button.textContent;
    button.textContent = "copied";
    setTimeout(() => (button.textContent = before), 1200);
  }
}
