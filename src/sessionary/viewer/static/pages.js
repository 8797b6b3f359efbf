// Everything but the list: loaded when the list is there, or at once for a link to something else.
export { KEYS as ACTION_KEYS, actionsOf, undoLatest } from "./actions.js";
export { showCharts } from "./charts.js";
export { chooseOther, showDiff } from "./diff.js";
export { Drawer } from "./drawer.js";
export { hasError, isPrompt } from "./item.js";
export { showOverview } from "./overview.js";
export { Session } from "./session.js";
