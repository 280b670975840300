// Elements. Text goes in as text nodes only: nothing of the capture is ever read as markup.

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** @param {...any} children what `append` takes, nothing, or lists of these */
const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const byId = (id) => document.getElementById(id);

const pairs = (list, attributes = { class: "pairs" }) =>
  el("dl", attributes, list.map(([label, text]) => el("div", {}, el("dt", {}, label), el("dd", {}, held(text)))));

/** `caption`: arguments of `el`. `isNumber`: by the index of a column. */
const plainTable = (kind, caption, heads, rows, isNumber = (_index) => false) =>
  el("div", { class: "scroll" }, el("table", { class: `plain ${kind}` }, el("caption", ...caption),
    el("thead", {}, el("tr", {}, heads.map((text, i) => el("th", { scope: "col", class: isNumber(i) ? "num" : "" }, text)))),
    el("tbody", {}, rows)));

/** Gives a table's parts their roles: some browsers see no table where a narrow screen lays rows out as cards. */
function sayRoles(host) {
  const roles = { table: "table", "thead, tbody": "rowgroup", tr: "row", td: "cell", "th[scope=row]": "rowheader", "th[scope=col]": "columnheader" };
  for (const [parts, role] of Object.entries(roles)) host.querySelectorAll(parts).forEach((part) => part.setAttribute("role", role));
}

/** Classes, which name their colours in the style sheet too. */
const CLASSES = ["false", "true", "unknown"];
const VERDICT = { false: "avoidable", true: "needed", unknown: "undecided" };

/** A sign of a class, for eyes that do not tell the colours apart. */
const classMark = (name) => el("span", { class: `mark ${name}`, "aria-hidden": "true" });
