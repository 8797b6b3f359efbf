// Images of messages: fetched when they come near the screen, with the token in a header, and shown from memory.
import { blob } from "./api.js";
import { el } from "./dom.js";

const urls = new Map(); // of the open session

export function drawImages(part, item, base) {
  return el("div", { class: "images" }, ...part.images.map((number, at) => drawOne(`${base}/message/${item.at}/image/${number}`, at, part.images.length)));
}

function drawOne(path, at, count) {
  const box = el("button", { class: "image", "aria-expanded": "false", title: "Larger or smaller" }, "image…");
  box.addEventListener("click", () => box.setAttribute("aria-expanded", String(box.getAttribute("aria-expanded") !== "true")));
  const show = (url) => box.replaceChildren(el("img", { src: url, alt: `Image ${at + 1} of ${count}` }));
  if (urls.has(path)) show(urls.get(path));
  else blob(path).then((found) => { urls.set(path, URL.createObjectURL(found)); show(urls.get(path)); })
    .catch((error) => { box.replaceChildren(`[image: ${error.message}]`); box.disabled = true; });
  return box;
}

export function forgetImages() {
  for (const url of urls.values()) URL.revokeObjectURL(url);
  urls.clear();
}
