// The details of a site.

const block = (title, ...content) => el("section", {}, el("h3", {}, title), ...content);

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** `marked`: number of the waiting line. */
function codeLines(lines, first, marked) {
  const rows = lines.map((text, i) => {
    const number = first + i;
    const mark = number === marked;
    return el("div", { class: mark ? "line marked" : "line" },
      el("span", { class: "number", "aria-hidden": "true" }, String(number)),
      el("code", {}, text || " "),
      mark ? el("span", { class: "unseen" }, " (the waiting line)") : null);
  });
  return el("div", { class: "code" }, rows);
}

const codeBlock = (text) => el("pre", { class: "code" }, el("code", {}, text));

const change = (text) => el("pre", { class: "code" }, text.split("\n").map((line) =>
  el("code", { class: line.startsWith("-") ? "line gone" : "line come" }, line)));

/** The blocks of a document, as the other formats have them. */
const parts = (blocks) => blocks.flatMap((one) => {
  if (one.section) {
    return el("div", { class: one.section.replaceAll(" ", "-") }, el("h4", {}, sentence(one.section)), ...parts(one.parts));
  }
  if (one.facts) return pairs(one.facts);
  if (one.lines) return one.lines.map((line) => el("p", {}, line));
  return one.language === "diff" ? change(one.code) : codeBlock(one.code);
});

const section = (one) => block(sentence(one.section), ...parts(one.parts));

const textsOf = (blocks) => blocks.flatMap((one) =>
  [one.section ?? "", one.code ?? "", ...(one.lines ?? []), ...(one.facts ?? []).flat(), ...textsOf(one.parts ?? [])]);

function stack(site) {
  if (!site.stack.length && !site.native.length) return null;
  const frame = (one) => el("li", { class: one.user ? "yours" : "" },
    el("span", { class: "function" }, one.function),
    one.user ? el("span", { class: "tag" }, "your code") : null,
    el("span", { class: "file" }, one.file),
    one.source && !site.snippet ? el("code", { class: "source" }, one.source) : null);
  const left = site.frames_left_out;
  const frames = site.stack.map(frame);
  if (left) frames.splice(site.stack.length >> 1, 0, el("li", { class: "gap" }, `${counted(left, "frame")} left out`));
  const native = site.native.length
    ? el("details", {}, el("summary", {}, counted(site.native.length, "native frame")),
      el("ol", { class: "stack native" }, site.native.map((name) => el("li", {}, name))))
    : null;
  return block("Stack, most recent call last", el("ol", { class: "stack" }, frames), native);
}

function source(site) {
  if (!site.snippet) return null;
  return block("Source", codeLines(site.snippet.lines, site.snippet.first_line, site.line));
}

function fix(site) {
  return site.fix && block(sentence(site.fix.section), el("div", { class: "fix" }, ...parts(site.fix.parts)));
}

function examples(site, timeline) {
  if (!site.examples.length) return null;
  const shown = timeline?.tracks[site.profile];
  const one = (example) => {
    const time = shown
      ? el("button", {
        type: "button",
        class: "jump",
        title: "show in the timeline",
        onclick: () => {
          const { clock } = shown.model;
          timeline.jump(shown, example.start_ns - clock, example.end_ns - clock, example.drain_ns);
        },
      }, example.at)
      : example.at;
    return el("tr", {}, el("td", {}, time), el("td", {}, held(example.blocked)), el("td", {}, held(example.drain)),
      el("td", { class: "awaited" }, example.awaited));
  };
  return block("Examples",
    plainTable("", [{ class: "unseen" }, "Waits of this site"], ["at", "blocked", "idle after", "awaited"], site.examples.map(one)));
}

function detail(site, timeline) {
  const drawn = timeline?.tracks[site.profile]?.model.sites.find((one) => one.id === site.id);
  const charts = el("div", { class: "charts" },
    site.histogram.length ? histogram(site.histogram) : null,
    drawn ? sparkline(drawn.series) : null);
  return el("div", { class: "detail" },
    el("div", { class: "columns" },
      el("div", {}, source(site), ...site.reasons.map(section), stack(site)),
      el("div", {}, fix(site), examples(site, timeline))),
    el("div", { class: "columns" },
      el("div", {}, site.about.map(section)),
      el("div", {}, charts)));
}
