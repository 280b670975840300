// Ranks: who comes late, and a map of blocked time, a row a site and a column a rank.

function heatRow(row, columns) {
  const cells = row.heat.map((share, i) => svg("rect", { class: `heat ${row.class}`, x: i, y: 0, width: 1, height: 1, "fill-opacity": share.toFixed(3) },
    svg("title", {}, `${columns[i]}: ${row.blocked[i]}`)));
  return svg("svg", { class: "heat", viewBox: `0 0 ${columns.length} 1`, preserveAspectRatio: "none", role: "img",
    "aria-label": `${row.place}: blocked time by rank` }, cells);
}

/** `reveal` opens a site of the table below, where it is listed. */
function showRanks(reveal) {
  const ranks = page.ranks;
  if (!ranks) return;
  byId("ranks").hidden = false;
  const listed = new Set(page.sites.map((site) => site.id));
  const name = (row) => (listed.has(row.id) ? el("button", { type: "button", class: "quiet", onclick: () => reveal(row.id) }, row.id) : row.id);
  const line = (row) => el("tr", { class: row.class },
    el("td", {}, name(row)),
    el("th", { scope: "row" }, classMark(row.class), row.place, row.notes.map(sub)),
    el("td", { class: "num" }, held(row.over[0]), row.over.slice(1).map((text) => sub(held(text)))),
    el("td", { class: "map" }, heatRow(row, ranks.columns)));
  const [first, last] = [ranks.columns[0], ranks.columns[ranks.columns.length - 1]];
  byId("ranks-body").append(
    ...ranks.late.map((words) => el("p", { class: "late" }, held(words))),
    plainTable("ranks", [{}, `Blocked time by rank, from ${first} to ${last}; the darker, the longer`],
      ["site", "where", "blocked", "ranks"], ranks.rows.map(line), (i) => i === 2));
}
