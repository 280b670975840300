// What a click on a site opens.

const block = (title, ...content) => el("section", {}, el("h3", {}, title), ...content);

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Lines of code; `marked` is the number of the one that counts. */
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

const codeBlock = (text, kind = "") => el("pre", { class: `code ${kind}` }, el("code", {}, text));

/** A section of labels and texts, as the other formats have it. */
const section = ([title, parts]) =>
  block(sentence(title), ...parts.map((part) => typeof part === "string" ? el("p", {}, part) : pairs(part)));

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
  const { fix: advice } = site;
  if (!advice) return null;
  const side = (label, text, kind) => text ? el("div", {}, el("h4", {}, label), codeBlock(text, kind)) : null;
  return block("What to do",
    el("p", { class: "advice" }, sentence(advice.title), " ", el("span", { class: "tag" }, advice.strategy)),
    advice.here
      ? el("div", { class: "here" }, side("Here", advice.here.before, "before"), side("Instead", advice.here.after, "after"))
      : null,
    advice.why ? el("p", {}, advice.why) : null,
    el("div", { class: "sides" }, side("Before", advice.before, "before"), side("After", advice.after, "after")),
    ...advice.alternatives.map((way) => el("p", {}, el("strong", {}, "Or: "), way)),
    advice.caveat ? el("p", { class: "caveat" }, el("strong", {}, "Mind: "), advice.caveat) : null,
    advice.confirm ? el("details", {}, el("summary", {}, "Then confirm"), codeBlock(advice.confirm)) : null);
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

/** The open part of a site. */
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
