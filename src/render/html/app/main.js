// The page: head, timeline, sites, limits, and what the address keeps of them.

const page = JSON.parse(byId("data").textContent);

const isDiff = page.kind === "diff";

function showHead() {
  byId("version").textContent = page.version;
  byId("what").textContent = held(page.what);
  byId("headline").textContent = held(page.headline);
  byId("lines").append(...page.lines.filter(([, text]) => text.trim()).map(([label, text]) =>
    el("li", {}, label ? el("span", { class: "label" }, label) : null, held(text.trim()))));
  byId("facts").replaceWith(pairs(page.facts, { class: "pairs", id: "facts" }));
  if (isDiff) return byId("classes").append(runTable(page));
  if (page.gpu_time.length) byId("gpu-time").append(gpuTime(page.gpu_time));
  if (page.sites.length) byId("classes").append(classTable());
  return undefined;
}

function gpuTime(parts) {
  let x = 0;
  const rects = parts.map(({ kind, share }) => {
    const rect = svg("rect", { class: kind, x: x * 100, y: 0, width: share * 100, height: 10 });
    x += share;
    return rect;
  });
  const key = parts.map(({ kind, words }) => el("li", {}, el("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), held(words)));
  return el("div", { class: "gpu" }, el("h2", { class: "minor" }, "GPU time"),
    svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" }, rects), el("ul", { class: "key" }, key));
}

function classTable() {
  const saved = page.classes.some((one) => one.recoverable !== null);
  const heads = ["class", "sites", "waits", "blocked", "idle after", ...(saved ? ["recoverable"] : [])];
  const row = (one) => el("tr", { class: one.class },
    el("th", { scope: "row" }, classMark(one.class), VERDICT[one.class]),
    [one.sites, one.waits, one.blocked, one.drain, ...(saved ? [one.recoverable ?? ""] : [])].map((text) => el("td", { class: "num" }, text)));
  return plainTable("classes by-class", [{ class: "unseen" }, "Waits by class"], heads, page.classes.map(row), (i) => i > 0);
}

function showGraph() {
  if (!page.graph) return;
  const { columns, rows } = page.graph;
  byId("graph").hidden = false;
  byId("graph-body").append(plainTable("graph", [{ class: "unseen" }, byId("graph-title").textContent], columns, rows.map((row) =>
    el("tr", {}, row.map((cell, i) => i ? el("td", { class: i === 1 ? "num" : "" }, cell) : el("th", { scope: "row" }, cell)))), (i) => i === 1));
}

function showLimits() {
  byId("limits").hidden = !page.warnings.length;
  if (isDiff) byId("limits-title").textContent = "What limits this comparison";
  byId("warnings").append(...page.warnings.map(({ code, message, fix: command }) =>
    el("li", {}, el("p", {}, message, " ", el("span", { class: "tag" }, code)), command ? codeBlock(command) : null)));
  byId("notes").append(...page.notes.map((note) => el("p", {}, note)));
}

const KEYS = [["w s or + −", "zoom"], ["a d or ← →", "move"], ["Home", "whole capture"], ["n p", "next wait, wait before"], ...(isDiff ? [["[ ]", "iteration before, next iteration"]] : []), ["Enter", "open its site"], ["Esc", "let go"], ["wheel", "zoom, once the timeline has been clicked; with Ctrl always"], ["drag", "move"], ["double-click", "zoom to a span"], ["click a heading", "fold its lanes, unfold them"]];

function legend() {
  const key = (kind, text) => el("li", {}, el("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), text);
  return el("ul", { class: "key" }, key("false", "avoidable wait"), key("unknown", "undecided wait"), key("true", "needed wait"),
    key("kernel", "kernel"), key("copy", "copy"), key("memset", "memset"), key("call", "CUDA call"), key("striped", "outline only"), key("awaited", "what the chosen wait waited for"));
}

/** The toolbar above a timeline, and the legend below. */
function dress(host, timeline) {
  const button = (label, sign, action) => el("button", { type: "button", class: "quiet", "aria-label": label, title: label, onclick: action }, sign);
  host.prepend(el("div", { class: "tools" }, new Search(timeline).node, alignment?.node,
    el("div", { class: "buttons" }, button("zoom in", "+", () => timeline.zoom(0.5)), button("zoom out", "−", () => timeline.zoom(2)), button("fit the whole capture", "fit", () => timeline.fit()))));
  host.append(legend(), el("details", { class: "keys" }, el("summary", {}, "Keys and wheel"), pairs(KEYS, { class: "pairs", id: "timeline-keys" })));
}

/** Finds the table's row for a site of a drawing: its id and its place. */
function rowFinder() {
  const known = new Map();
  const key = (side, id) => `${side} ${id}`;
  if (isDiff) for (const change of page.changes) change.sites.forEach((ids, side) => ids.forEach((id) => known.set(key(side, id), [change.id, change.place])));
  else for (const { id, place } of page.sites) known.set(key(0, id), [id, [place[0], place[1]].filter(Boolean).join(" ")]);
  return (track, site) => known.get(key(track.side, site.id)) ?? [null, ""];
}

/** Captures of several ranks lie above each other, each from its own start. */
function showTimeline() {
  if (!page.timelines.length) return null;
  byId("timeline").hidden = false;
  const find = rowFinder();
  const tracks = page.timelines.map((data) => ({ model: readTimeline(data), side: data.side, offset: 0 }));
  return new Timeline(byId("timeline-body"), tracks, {
    onWait: (track, site) => table.reveal(find(track, site)[0]),
    onMove: () => remember(),
    describe: (track, site) => find(track, site)[1],
  });
}

/** Light, dark, or what the system says. */
function showTheme() {
  const button = byId("theme");
  const root = document.documentElement;
  const stored = () => {
    try {
      return localStorage.getItem("sync-report-theme");
    } catch {
      return null;
    }
  };
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const label = () => {
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", dark() ? "light colours" : "dark colours");
    timeline?.refreshColours();
  };
  if (["light", "dark"].includes(stored())) root.dataset.theme = stored();
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try {
      localStorage.setItem("sync-report-theme", root.dataset.theme);
    } catch {
      // Pages from a file may have no storage: then the choice lasts as long as the page.
    }
    label();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  // On paper everything is dark on light.
  let before;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    label();
    // Printing waits for no frame.
    timeline?.draw();
  });
  addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    label();
  });
  label();
}

/** Open sites and the timeline's view are in the address, so that a link shows them. */
let waiting = null;
function remember() {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    const state = new URLSearchParams();
    if (table.open.length) state.set("open", table.open.join(","));
    if (timeline) {
      const { from, to } = timeline.target;
      if (alignment?.most) state.set("iteration", String(alignment.number));
      if (to - from < timeline.high - timeline.low) state.set("view", `${Math.round(from)}-${Math.round(to)}`);
    }
    try {
      history.replaceState(null, "", `#${state}`);
    } catch {
      // Browsers refuse too many changes at once: the next one is kept.
    }
  }, 150);
}

function recall() {
  const state = new URLSearchParams(location.hash.slice(1));
  const [, from, to] = /^(-?\d+)-(-?\d+)$/.exec(state.get("view") ?? "") ?? [];
  const open = (state.get("open") ?? "").split(",").filter(Boolean);
  if (state.has("iteration")) alignment?.to(Number(state.get("iteration")));
  if (timeline && from !== undefined) timeline.show(Number(from), Number(to));
  open.forEach((id) => table.toggle({ id }, true));
  if (open.length) byId(`site-${open[0]}`)?.scrollIntoView({ block: "start" });
}

showHead();
const timeline = showTimeline();
const alignment = isDiff && timeline ? new Alignment(timeline, remember) : null;
if (timeline) dress(byId("timeline-body"), timeline);
const spec = isDiff ? changeSpec(page, timeline) : siteSpec(page.sites, timeline);
const table = new Table(byId("sites-body"), spec, remember);
if (page.nothing) byId("sites-body").replaceChildren(el("p", {}, page.nothing));
alignment?.show();
showRanks((id) => table.reveal(id));
showGraph();
showLimits();
showTheme();
recall();
addEventListener("hashchange", recall);
document.documentElement.dataset.ready = "yes";
