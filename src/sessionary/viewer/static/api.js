// Requests with the token of this start. It comes with the link, and is kept in this tab only.
const KEY = "sessionary-token";

export function takeToken() {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  if (found) {
    sessionStorage.setItem(KEY, found[1]);
    history.replaceState(null, "", location.pathname + "#/");
  }
  return sessionStorage.getItem(KEY);
}

export class Refused extends Error {
  constructor(status, body) {
    super(body.message || `the server answered ${status}`);
    this.status = status;
    this.hint = body.hint || "";
  }
}

export async function ask(path, options = {}) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(KEY) || ""}` };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { ...options, headers, credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { message: "the server does not answer", hint: "start `sessionary serve` again" });
  }
  if (!answer.ok) throw new Refused(answer.status, await answer.json().catch(() => ({})));
  return answer;
}

export async function get(path, signal) {
  return (await ask(path, { signal })).json();
}

export async function post(path, document) {
  return (await ask(path, { method: "POST", body: JSON.stringify(document) })).json();
}

// Bytes that the page shows from memory: an address in the page could not bear the token.
export async function blob(path) {
  return (await ask(path)).blob();
}

async function pieces(answer, end, take) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const found = (rest + value).split(end);
    rest = found.pop();
    for (const one of found) await take(one);
  }
}

// Server-sent events over fetch, which, unlike EventSource, can bear the token.
export async function events(path, signal, take) {
  return pieces(await ask(path, { signal }), "\n\n", (block) => {
    const at = block.indexOf("\ndata: ");
    take(block.slice("event: ".length, at), JSON.parse(block.slice(at + "\ndata: ".length)));
  });
}

// An answer of several documents, each as soon as it has arrived.
export function lines(answer, take) {
  return pieces(answer, "\n", (line) => take(JSON.parse(line)));
}
