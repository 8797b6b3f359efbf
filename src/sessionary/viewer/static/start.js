// Runs while the other modules are loaded: the theme, the token, and the request that the first screen waits for.
import { ask, takeToken } from "./api.js";

const theme = localStorage["sessionary-theme"];
if (theme) document.documentElement.dataset.theme = theme;
takeToken();

// The sessions that the address names come first, so that a link to one does not wait for the list.
const wanted = /^#\/(?:s|charts|diff)\/(\w+)(?:\/(\w+))?/.exec(location.hash)?.slice(1).filter(Boolean) ?? [];
export const rows = ask(`/api/sessions?first=${wanted}`);
rows.catch(() => {}); // the list reports it
