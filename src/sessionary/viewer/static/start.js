// Runs while the other modules are loaded: the theme, the token, and the request that the first screen waits for.
import { ask, takeToken } from "./api.js";

const theme = localStorage["sessionary-theme"];
if (theme) document.documentElement.dataset.theme = theme;
takeToken();

// A screen of rows comes first, with the sessions that the address names: a link to one does not wait for the list.
const MOST = 60;
const wanted = /^#\/(?:s|charts|diff)\/(\w+)(?:\/(\w+))?/.exec(location.hash)?.slice(1).filter(Boolean) ?? [];

async function asked() {
  const answer = await ask(`/api/sessions?first=${wanted}&most=${MOST}`);
  const [head, ...groups] = (await answer.text()).trim().split("\n").map((line) => JSON.parse(line));
  return { head, rows: groups.flat() };
}

export const first = asked();
first.catch(() => {}); // the list reports it
