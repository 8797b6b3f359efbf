// The drawer, and the pages that do not show one session: loaded when the list is there, or at once for a link to one.
export { actionsOf, undoLatest } from "./actions.js";
export { showCharts } from "./charts.js";
export { chooseOther, showDiff } from "./diff.js";
export { Drawer } from "./drawer.js";
export { showOverview } from "./overview.js";
