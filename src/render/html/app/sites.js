// The sites of a report as a table.

const sub = (text) => (text ? el("span", { class: "sub" }, text) : null);

const todo = (text) => (text ? el("span", { class: "todo" }, "→ ", text) : null);

function siteColumns(sites) {
  const number = (key, label, title, value, cell) => ({ key, label, title, value, cell, number: true, down: true });
  const columns = [
    { key: "id", label: "Site", title: "in the order of the first wait", value: (site) => Number(site.id.slice(1)) || 0, cell: (site) => site.id },
    {
      key: "verdict", label: "Verdict", title: "class, kind, how sure",
      value: (site) => ["false", "unknown", "true"].indexOf(site.class) * 2 - site.sort.confidence,
      cell: (site) => [
        el("span", { class: `verdict ${site.class}` }, classMark(site.class), VERDICT[site.class], " ", el("span", { class: "sure" }, site.confidence)),
        sub(site.kind),
      ],
    },
    {
      key: "place", label: "Where", title: "file and line",
      value: ({ place: [file, name] }) => {
        const [, path, line] = /^(.*?)(?::(\d+))?$/.exec(file);
        return `${path}\u0000${(line ?? "").padStart(9, "0")}\u0000${name}`;
      },
      cell: sitePlace,
    },
    number("waits", "Waits", "number of waits; below, per iteration", (site) => site.sort.waits,
      ({ cells }) => [cells.waits, sub(cells.per_iteration && `${cells.per_iteration} / iter`)]),
    number("saves", "Saves", "time by which an iteration would be shorter; without a loop, the run", (site) => site.sort.saves_ns, ({ cells }) => cells.saves ?? ""),
    number("blocked", "Blocked", "CPU time inside the waits; below, share of the thread's time", (site) => site.sort.blocked_ns,
      ({ cells }) => [cells.blocked[0], sub(cells.blocked[1])]),
    number("p99", "p99", "99 of 100 waits are no longer", (site) => site.sort.p99_ns, ({ cells }) => cells.p99),
    number("drain", "Idle after", "GPU idle time after the waits; below, share of the GPU's time", (site) => site.sort.drain_ns,
      ({ cells }) => [cells.drain[0], sub(cells.drain[1])]),
  ];
  return columns.filter(({ key }) => key !== "saves" || sites.some((site) => site.cells.saves));
}

function sitePlace(site) {
  const [file, name, mark, inner] = site.place;
  return [
    file ? el("span", { class: "file" }, file) : null, file ? " " : null, el("span", { class: "name" }, name),
    mark ? el("span", { class: "tag" }, mark) : null,
    inner ? el("span", { class: "sub file" }, `in ${inner}`) : null,
    sub([site.call, ...site.who].join(", ")),
    todo(site.advice),
  ];
}

const siteSpec = (sites, timeline) => ({
  items: sites,
  columns: siteColumns(sites),
  chips: ["false", "unknown", "true"],
  chipOf: (site) => site.class,
  words: (site) => [site.id, VERDICT[site.class], site.kind, site.call, site.api, site.advice, ...site.place, ...site.who,
    ...textsOf(site.reasons), ...site.stack.flatMap((frame) => [frame.file, frame.function])],
  detail: (site) => detail(site, timeline),
  caption: "Call sites that wait for the GPU; a row opens to its details",
  placeholder: "Filter by file, function, API, advice",
  noun: "site",
});
