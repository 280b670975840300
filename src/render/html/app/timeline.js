// The timeline: one or more captures above each other on one time axis, each shifted by its own offset.

const HEIGHTS = { title: 26, iterations: 18, group: 26, idle: 18, stream: 22, thread: 38, calls: 18 };
const OVERVIEW = 30;
const RULER = 22;
const TOP = OVERVIEW + RULER;
/** The shortest stretch that is shown, in ns: an API call takes a microsecond. */
const SHORTEST = 200;
/** Spans and waits of a row that are drawn one by one; more are drawn as bins. */
const MANY_SPANS = 6000;
const MANY_WAITS = 2000;
/** With more captures, all but the first start folded. */
const MANY_TRACKS = 4;

class Timeline {
  /**
   * `tracks`: `{ model, offset }`, a time of the capture less the offset is a time of the axis.
   * `host`: where it is built; `onWait(track, site)`: a wait was chosen; `describe(track, site)`: its place in words.
   */
  constructor(host, tracks, { onWait, onMove, describe }) {
    this.tracks = tracks;
    this.onWait = onWait;
    this.onMove = onMove;
    this.describe = describe;
    this.bound();
    this.view = { from: this.low, to: this.high };
    this.zero = "the start";
    this.selected = null;
    this.matches = null;
    /** Goes on to another iteration, if captures are aligned. */
    this.turn = () => {};
    this.build(host);
    this.refreshColours();
    new ResizeObserver(() => this.resize()).observe(this.canvas.parentElement);
    this.resize();
  }

  /** The axis holds all of every capture. */
  bound() {
    this.low = Math.min(...this.tracks.map(({ offset }) => -offset));
    this.high = Math.max(...this.tracks.map(({ model, offset }) => model.span - offset), this.low + SHORTEST);
  }

  /** Shifts each capture so that a time of its own is the axis' zero, which is called `zero`. */
  align(timeOf, zero) {
    for (const track of this.tracks) track.offset = timeOf(track);
    this.bound();
    this.zero = zero;
    this.overview = null;
    this.show(this.target.from, this.target.to);
  }

  build(host) {
    this.canvas = el("canvas", {
      tabindex: 0,
      role: "application",
      "aria-roledescription": "timeline",
      "aria-label": this.spokenSummary(),
      "aria-describedby": "timeline-keys",
    });
    this.ctx = this.canvas.getContext("2d");
    this.tip = el("div", { class: "tip", hidden: true });
    this.status = el("p", { class: "status" });
    this.spoken = el("p", { class: "unseen", role: "status", "aria-live": "polite" });
    /** The `fold` of each heading whose lanes are out of sight. */
    this.folded = new Set();
    this.folds = new Map(this.layOut().filter(({ fold }) => fold).map((row) => [row.fold, this.foldButton(row)]));
    if (this.tracks.length > MANY_TRACKS) this.tracks.slice(1).forEach((track) => this.folded.add(track));
    host.append(el("div", { class: "canvas" }, this.canvas, [...this.folds.values()], this.tip), this.status, this.spoken);
    new Controls(this);
  }

  /** For readers who cannot see the drawing: amounts, and that the table has the findings. */
  spokenSummary() {
    const all = this.tracks.map(({ model }) => {
      const of = (kind) => model.lanes.filter((lane) => lane.kind === kind).length;
      const parts = [counted(of("stream"), "GPU stream"), counted(of("thread"), "host thread")];
      return `${model.label}: ${parts.join(", ")}, ${counted(model.waits.total, "wait")} in ${duration(model.span)}`;
    });
    return `Timeline. ${all.join("; ")}. The table of sites above holds all findings.`;
  }

  refreshColours() {
    this.colours = readColours();
    this.stripes = stripes(this.ctx, this.colours.line);
    const { ink, surface } = this.colours;
    for (const track of this.tracks) {
      track.nameColours = nameColours(track.model.names, this.colours);
      track.onNameColours = track.nameColours.map((colour) => readable(colour, [surface, ink]));
    }
    this.overview = null;
    this.request();
  }

  resize() {
    const frame = this.canvas.parentElement;
    const { paddingLeft, paddingRight } = getComputedStyle(frame);
    // A wider canvas is squeezed into the frame: the pointer then hits something else.
    const width = Math.max(200, Math.floor(frame.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight)));
    this.gutter = width < 600 ? 120 : 148;
    this.rows = this.layOut();
    this.placeFolds();
    const last = this.rows[this.rows.length - 1];
    const height = last.y + last.height + 6;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.size = { width, height, ratio };
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.overview = null;
    this.request();
  }

  layOut() {
    const rows = [];
    let y = TOP;
    const add = (type, track, more) => {
      rows.push({ type, track, y, height: HEIGHTS[type], ...more });
      y += HEIGHTS[type];
    };
    const heading = (type, track, label, fold, lanes) => {
      const folded = this.folded.has(fold);
      add(type, track, { label, fold, inside: folded ? lanes : [] });
      return folded;
    };
    this.tracks.forEach((track, number) => {
      const { label, lanes, iterations } = track.model;
      const threads = lanes.filter(({ kind }) => kind === "thread");
      if (this.tracks.length > 1 && heading("title", track, label, track, threads)) return;
      if (iterations.start.length) add("iterations", track, { label: "iterations" });
      let group = null;
      let folded = false;
      lanes.forEach((lane, index) => {
        if (lane.group !== group) {
          group = lane.group;
          folded = heading("group", track, group, `${number} ${group}`, lanes.filter((one) => one.group === group));
        }
        const type = lane.kind === "thread" && !lane.waited ? "calls" : lane.kind;
        if (!folded) add(type, track, { lane, index, label: lane.label });
      });
    });
    if (!rows.length) add("group", this.tracks[0], { label: "no calls" });
    return rows;
  }

  /** A button over a heading that the canvas draws. The button folds the lanes below and unfolds them. */
  foldButton({ type, track, fold, label }) {
    const name = type === "group" && this.tracks.length > 1 ? `${track.model.label}, ${label}` : label;
    return el("button", { type: "button", class: "fold", "aria-label": name, onclick: () => this.fold(fold, !this.folded.has(fold)) });
  }

  placeFolds() {
    const rows = new Map(this.rows.map((row) => [row.fold, row]));
    for (const [fold, button] of this.folds) {
      const row = rows.get(fold);
      button.hidden = !row;
      if (!row) continue;
      button.setAttribute("aria-expanded", String(!this.folded.has(fold)));
      Object.assign(button.style, { top: `${this.canvas.offsetTop + row.y}px`, width: `${this.gutter}px`, height: `${row.height}px` });
    }
  }

  fold(fold, wanted) {
    this.folded[wanted ? "add" : "delete"](fold);
    this.resize();
  }

  /** Brings lanes of a capture, by index, into sight. */
  unfold(track, lanes) {
    const groups = lanes.map((index) => `${this.tracks.indexOf(track)} ${track.model.lanes[index]?.group}`);
    for (const fold of [track, ...groups]) if (this.folded.has(fold)) this.fold(fold, false);
  }

  get scale() {
    return new Scale(this.view.from, this.view.to, this.gutter, this.size.width - this.gutter);
  }

  get whole() {
    return new Scale(this.low, this.high, this.gutter, this.size.width - this.gutter);
  }

  /** Draws before the next frame, once. */
  request() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.step();
      this.draw();
    });
  }

  draw() {
    const begun = performance.now();
    new Picture(this).paint();
    this.canvas.dataset.drawMs = (performance.now() - begun).toFixed(2);
    this.canvas.dataset.from = Math.round(this.view.from);
    this.canvas.dataset.to = Math.round(this.view.to);
    this.say();
  }

  /** Moves the view on towards its goal. */
  step() {
    if (!this.goal) return;
    const part = clamp((performance.now() - this.goal.begun) / 180, 0, 1);
    const eased = 1 - (1 - part) ** 3;
    const { start, end } = this.goal;
    this.view = {
      from: start.from + (end.from - start.from) * eased,
      to: start.to + (end.to - start.to) * eased,
    };
    if (part < 1) setTimeout(() => this.request());
    else {
      this.view = end;
      this.goal = null;
    }
  }

  /** Shows a stretch, kept within the axis. */
  show(from, to, smooth = false) {
    const all = this.high - this.low;
    const length = clamp(to - from, Math.min(SHORTEST, all), all);
    const start = clamp((from + to) / 2 - length / 2, this.low, this.high - length);
    const end = { from: start, to: start + length };
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (smooth && !still) this.goal = { start: this.view, end, begun: performance.now() };
    else {
      this.goal = null;
      this.view = end;
    }
    this.request();
    this.onMove(end);
  }

  /** Where the view is, or is going. */
  get target() {
    return this.goal ? this.goal.end : this.view;
  }

  zoom(factor, around = (this.target.from + this.target.to) / 2, smooth = true) {
    const { from, to } = this.target;
    this.show(around - (around - from) * factor, around + (to - around) * factor, smooth);
  }

  pan(part, smooth = true) {
    const { from, to } = this.target;
    const by = (to - from) * part;
    // At an end the view keeps its length.
    const shift = clamp(by, this.low - from, this.high - to);
    this.show(from + shift, to + shift, smooth);
  }

  fit() {
    this.show(this.low, this.high, true);
  }

  /** Selects a wait and shows its surroundings, with the beginning of its drain, which may be many times longer. */
  jump(track, start, end, drain) {
    const { offset, model } = track;
    const length = end - start;
    const after = Math.min(drain, 4 * length);
    const around = Math.max((length + after) * 0.7, 20000);
    this.show(start - offset - around, end + after - offset + around, true);
    const wait = lowerBound(model.waits.start, start - 0.5);
    if (model.waits.start[wait] === start) this.select(track, wait);
    byId("timeline").scrollIntoView({ block: "start", behavior: "auto" });
    this.canvas.focus({ preventScroll: true });
  }

  select(track, wait) {
    this.selected = wait === null ? null : { track, wait };
    if (wait !== null) this.unfold(track, [track.model.waits.lane[wait], track.model.waits.awaited[wait]]);
    this.canvas.dataset.selected = wait === null ? "" : (track.model.sites[track.model.waits.site[wait]].id ?? "");
    this.spoken.textContent = wait === null ? "" : this.waitLines(track, wait).join(". ");
    this.request();
  }

  /** Selects the next wait in time, or the one before, and brings it into view. */
  walk(direction) {
    const track = this.selected?.track ?? this.tracks[0];
    const { waits } = track.model;
    if (!waits.length) return;
    const centre = (this.target.from + this.target.to) / 2 + track.offset;
    const from = this.selected ? this.selected.wait + direction : lowerBound(waits.start, centre) - (direction < 0 ? 1 : 0);
    const wait = clamp(from, 0, waits.length - 1);
    this.select(track, wait);
    const [start, end] = [waits.start[wait] - track.offset, waits.end[wait] - track.offset];
    const { from: left, to: right } = this.target;
    if (start < left || end > right) this.show(start - (right - left) / 2, start + (right - left) / 2, true);
  }

  /** The export's time at the zero of the axis; `null` where several captures share an axis. */
  get origin() {
    const [{ model, offset }] = this.tracks;
    return this.tracks.length > 1 ? null : model.clock + offset;
  }

  /** A time of the axis in words, to the nanosecond. */
  since(time) {
    if (this.origin !== null) return timestamp(this.origin + time);
    if (Math.round(time) === 0) return this.zero;
    return `${tick(Math.abs(time), 1, Math.abs(time))} ${time < 0 ? "before" : "after"} ${this.zero}`;
  }

  /** A time of a capture in words: as on the axis, and on the export's clock where that differs. */
  at(track, time) {
    const own = this.origin === null ? ` (${timestamp(track.model.clock + time)} in the export)` : "";
    return this.since(time - track.offset) + own;
  }

  waitLines(track, i) {
    const { waits, sites, lanes } = track.model;
    const site = sites[waits.site[i]];
    const lines = [
      `${site.id ?? "a site not listed"}, ${VERDICT[site.class]}: ${this.describe(track, site) || "wait"}`,
      `blocked ${duration(waits.end[i] - waits.call[i] + waits.copyBlocked[i])}, from ${this.at(track, waits.start[i])}`,
    ];
    const stream = lanes[waits.awaited[i]];
    if (stream) {
      const op = spanAt(stream, waits.awaitedEnd[i] - 1, 1);
      const name = op >= 0 ? `${track.model.names[stream.name[op]]} on ` : "";
      lines.push(`awaited ${name}${stream.label}`);
    }
    const others = new Set(awaitedParts(waits, i).map(([lane]) => lanes[lane]?.label).filter((label) => label !== stream?.label));
    if (others.size) lines.push(`behind ${[...others].join(", ")} too`);
    if (waits.drain[i] > 0) lines.push(`then the GPU was idle for ${duration(waits.drain[i])}`);
    return lines;
  }

  /** The line below the drawing. */
  say() {
    const { from, to } = this.view;
    const parts = [`${duration(to - from)} shown, from ${this.since(from)}`];
    const merged = this.tracks.some(({ model, offset }) =>
      !isWhole(model, clamp(from + offset, 0, model.span), clamp(to + offset, 0, model.span)));
    if (merged) parts.push("striped: kept in outline only; examples and their surroundings are kept span by span");
    const out = this.tracks.reduce((sum, { model }) => sum + model.leftOut, 0);
    if (out) parts.push(`${counted(out, "row")} with least activity not drawn`);
    const text = parts.join(" · ");
    if (this.status.textContent !== text) this.status.textContent = text;
  }
}
