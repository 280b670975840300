// What changed between two captures: the table, and both timelines aligned by iteration.

const STATUSES = ["new", "gone", "changed", "moved", "same"];

const changeSpec = (page, timeline) => {
  const amount = (key, label, title, index) => ({
    key, label, title, number: true, down: true,
    value: (change) => Math.abs(change.amounts[index].difference),
    cell: (change) => held(change.amounts[index].text),
  });
  return {
    items: page.changes,
    columns: [
      {
        key: "id", label: "Change", title: "new, gone, changed, moved, same", value: (change) => Number(change.id.slice(1)),
        cell: (change) => [classMark(change.status), change.status],
      },
      { key: "verdict", label: "Verdict", title: "class and kind", value: (change) => change.verdict, cell: (change) => el("span", { class: `verdict ${change.class}` }, change.verdict) },
      {
        key: "place", label: "Where", title: "file and line", value: (change) => change.place,
        cell: (change) => [el("span", { class: "file" }, change.place), ...change.more.map(sub)],
      },
      amount("waits", "Waits", `waits per ${page.per}, before and after; sorted by difference`, 0),
      amount("blocked", "Blocked", "host time inside the waits; sorted by difference", 1),
      amount("drain", "Idle after", "GPU idle time after the waits; sorted by difference", 2),
      amount("saves", "Saves", "time that fixing it saves; sorted by difference", 3),
    ],
    chips: STATUSES.filter((status) => page.changes.some((change) => change.status === status)),
    chipOf: (change) => change.status,
    words: (change) => [change.status, change.verdict, change.place, ...change.more,
      ...change.sides.flatMap((side) => (side ?? []).map(([, text]) => text))],
    detail: (change) => changeDetail(change, timeline),
    caption: "Sites that differ between the captures; a row opens to its details",
    placeholder: "Filter by file, function, API",
    noun: "change",
  };
};

function changeDetail(change, timeline) {
  const side = (index, title) => {
    const said = change.sides[index];
    const track = timeline?.tracks.find((one) => one.side === index && firstWait(one, change.sites[index]) >= 0);
    const show = track
      ? el("button", {
        type: "button", class: "quiet",
        onclick: () => {
          const { waits } = track.model;
          const wait = firstWait(track, change.sites[index]);
          timeline.jump(track, waits.start[wait], waits.end[wait], waits.drain[wait]);
        },
      }, "Show in the timeline")
      : null;
    return el("div", {}, block(title, said ? pairs(said) : el("p", {}, `There is no such wait ${index ? "any more" : "yet"}.`)), show);
  };
  const [blocked, drain] = change.jitter;
  const noise = [blocked && `blocked time by up to ${blocked}`, drain && `idle time after waits by up to ${drain}`].filter(Boolean);
  return el("div", { class: "detail" },
    el("div", { class: "columns" }, side(0, "Before"), side(1, "After")),
    noise.length ? el("p", { class: "count" }, `Jitter within the captures moves ${noise.join(", ")}.`) : null);
}

/** The first wait of some sites from the aligned iteration on, else their first; -1 for none. */
function firstWait({ model, offset }, ids) {
  const { waits, sites } = model;
  const wanted = sites.map((site) => ids.includes(site.id));
  let first = -1;
  for (let i = 0; i < waits.length; i++) {
    if (!wanted[waits.site[i]]) continue;
    if (waits.start[i] >= offset) return i;
    if (first < 0) first = i;
  }
  return first;
}

/** Lays an iteration of one capture above the same iteration of the other. */
class Alignment {
  constructor(timeline, onChange) {
    this.timeline = timeline;
    this.onChange = onChange;
    this.most = Math.min(...timeline.tracks.map(({ model }) => model.iterations.start.length));
    // The first ones warm up.
    this.number = Math.ceil(this.most / 2);
    this.input = el("input", {
      type: "number", min: 1, max: this.most, value: this.number, "aria-label": "Align at iteration",
      oninput: () => this.to(Number(this.input.value), true),
    });
    timeline.turn = (by) => this.to(this.number + by);
  }

  get node() {
    return this.most < 1 ? null : el("label", { class: "align" }, "Aligned at iteration ", this.input, ` of ${grouped(this.most)}`);
  }

  to(number, typed = false) {
    if (!(number >= 1 && number <= this.most)) return;
    this.number = Math.floor(number);
    if (!typed) this.input.value = this.number;
    const index = this.number - 1;
    this.timeline.align(({ model }) => model.iterations.start[index], `the start of iteration ${grouped(this.number)}`);
    this.onChange();
  }

  /** Shows the aligned iteration and the next. */
  show() {
    if (this.most < 1) return;
    this.to(this.number);
    const index = this.number - 1;
    const longest = Math.max(...this.timeline.tracks.map(({ model }) => model.iterations.end[index] - model.iterations.start[index]));
    this.timeline.show(-0.1 * longest, 2.1 * longest);
  }
}

function runTable(page) {
  const heads = [`per ${page.per}`, "before", "after", "difference"];
  const row = ([name, ...cells]) => el("tr", {}, el("th", { scope: "row" }, name), cells.map((text) => el("td", { class: "num" }, held(text))));
  return plainTable("classes run", [{ class: "unseen" }, "The whole program before and after"], heads, page.run.map(row), (i) => i > 0);
}
