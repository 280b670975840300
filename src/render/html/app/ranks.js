// Ranks: who comes late, and the sites of all ranks. A map shows blocked time, one column per rank.

function heatRow(row, columns) {
  const cells = row.heat.map((share, i) => svg("rect", { class: `heat ${row.class}`, x: i, y: 0, width: 1, height: 1, "fill-opacity": share.toFixed(3) },
    svg("title", {}, `${columns[i]}: ${row.blocked[i]}`)));
  return svg("svg", { class: "heat", viewBox: `0 0 ${columns.length} 1`, preserveAspectRatio: "none", role: "img",
    "aria-label": `Blocked time: ${columns.map((column, i) => `${column} ${row.blocked[i]}`).join(", ")}` }, cells);
}

/** `reveal` opens a site of the table below, where it is listed. */
function showRanks(reveal) {
  const ranks = page.ranks;
  if (!ranks) return;
  byId("ranks").hidden = false;
  byId("sites").textContent = "Sites of each rank";
  const listed = new Set(page.sites.map((site) => site.id));
  const name = (row) => (listed.has(row.id) ? el("button", { type: "button", class: "quiet", onclick: () => reveal(row.id) }, row.id) : row.id);
  const line = (row) => el("tr", {},
    el("td", {}, name(row)),
    el("td", {}, el("span", { class: `verdict ${row.class}` }, classMark(row.class), VERDICT[row.class])),
    el("th", { scope: "row" }, row.place, row.notes.map((text) => sub(held(text)))),
    el("td", { class: "num" }, held(row.over[0]), row.over.slice(1).map((text) => sub(held(text)))),
    el("td", { class: "map" }, heatRow(row, ranks.columns)));
  const [first, last] = [ranks.columns[0], ranks.columns[ranks.columns.length - 1]];
  const table = plainTable("ranks", [{}, `Each row is a site of all ranks. The map shows blocked time from ${first} to ${last}: a stronger colour is a longer time.`],
    ["site", "verdict", "where", "blocked", "map"], ranks.rows.map(line), (i) => i === 3);
  sayRoles(table);
  byId("ranks-body").append(...ranks.late.map((words) => el("p", { class: "late" }, held(words))), table);
}
