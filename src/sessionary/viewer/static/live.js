// The stream of a session: it is opened again when the connection is lost, and the page says so.
import { events } from "./api.js";

const FIRST = 500, LONGEST = 5000, SHOWN = 4000; // milliseconds: pauses between two attempts; how long "connected again" stays

const pause = (time, signal) => new Promise((done) => {
  const timer = setTimeout(done, time);
  signal.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
});

// take(name, data) gets the events; begin() is called before each further attempt; say(words) shows the state.
export async function follow(path, signal, { take, begin, say }) {
  let wait = FIRST, lost = false, over = false;
  while (!signal.aborted && !over) {
    try {
      await events(path, signal, (name, data) => {
        wait = FIRST;
        if (lost) { lost = false; say("Connected again."); setTimeout(() => { if (!lost && !over) say(""); }, SHOWN); }
        if (name === "failed") { over = true; say([data.message, data.hint].filter(Boolean).join(": ")); }
        else take(name, data);
      });
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === 401) return say("The server was restarted: open its new link.");
      if (error.status) return say([error.message, error.hint].filter(Boolean).join(": "));
    }
    if (over || signal.aborted) return;
    lost = true;
    say("The connection is lost. Trying again…");
    await pause(wait, signal);
    wait = Math.min(wait * 2, LONGEST);
    if (!signal.aborted) begin();
  }
}
