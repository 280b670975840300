// One frame of the timeline.

/** Where labels begin, in pixels: beside the triangles of headings. */
const LABEL = 12;

class Picture {
  constructor(timeline) {
    this.timeline = timeline;
    this.ctx = timeline.ctx;
    this.scale = timeline.scale;
    this.colours = timeline.colours;
    this.width = timeline.size.width;
    this.height = timeline.size.height;
  }

  paint() {
    const { ctx, timeline } = this;
    ctx.setTransform(timeline.size.ratio, 0, 0, timeline.size.ratio, 0, 0);
    ctx.fillStyle = this.colours.surface;
    ctx.fillRect(0, 0, this.width, this.height);
    ctx.textBaseline = "middle";
    this.paintOverview();
    this.paintRuler();
    ctx.save();
    ctx.beginPath();
    ctx.rect(timeline.gutter, TOP, this.width - timeline.gutter, this.height - TOP);
    ctx.clip();
    for (const row of timeline.rows) this.paintRow(row);
    this.paintDrains();
    this.paintMatches();
    this.paintSelection();
    ctx.restore();
    this.paintLabels();
  }

  /** The whole capture: waits by class, and a frame around the view. Drawn once, then copied. */
  paintOverview() {
    const { ctx, timeline } = this;
    const left = timeline.gutter;
    const width = this.width - left;
    if (!timeline.overview) timeline.overview = this.overviewImage();
    ctx.drawImage(timeline.overview, left, 0, width, OVERVIEW);
    const whole = timeline.whole;
    const [from, to] = [whole.x(timeline.view.from), whole.x(timeline.view.to)];
    if (to - from > width - 1) return;
    ctx.fillStyle = this.colours.surface;
    ctx.globalAlpha = 0.65;
    ctx.fillRect(left, 0, Math.max(0, from - left), OVERVIEW);
    ctx.fillRect(to, 0, Math.max(0, this.width - to), OVERVIEW);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = this.colours.accent;
    ctx.lineWidth = 1.5;
    ctx.strokeRect(from - 1, 1, Math.max(3, to - from + 2), OVERVIEW - 2);
  }

  overviewImage() {
    const { timeline } = this;
    const { ratio } = timeline.size;
    const image = el("canvas", { width: Math.ceil((this.width - timeline.gutter) * ratio), height: OVERVIEW * ratio });
    const ctx = image.getContext("2d");
    ctx.scale(ratio, ratio);
    ctx.fillStyle = this.colours.sunken;
    ctx.fillRect(0, 0, this.width, OVERVIEW);
    const whole = new Scale(timeline.low, timeline.high, 0, this.width - timeline.gutter);
    // Tracks lie above each other, the threads of a track over one another.
    const tall = OVERVIEW / timeline.tracks.length;
    timeline.tracks.forEach(({ model, offset }, number) => {
      for (const { byClass } of model.lanes.filter((lane) => lane.waited)) {
        paintStacks(ctx, byClass, model.span, whole.shifted(offset), number * tall, tall, this.colours);
      }
    });
    return image;
  }

  paintRuler() {
    const { ctx, timeline, scale } = this;
    ctx.fillStyle = this.colours.surface;
    ctx.fillRect(0, OVERVIEW, this.width, RULER);
    ctx.font = `11px ${this.colours.font}`;
    ctx.textAlign = "left";
    const origin = timeline.origin ?? 0;
    // The export's clock is written in seconds, as everywhere.
    const least = timeline.origin === null ? 1 : 1e9;
    const largest = Math.max(least, Math.abs(origin + scale.from), Math.abs(origin + scale.to));
    // Room for all digits: a microsecond of the tenth second has many.
    const digits = Math.log10(largest * scale.perNs);
    const step = roundStep((40 + 7 * Math.max(4, digits)) / scale.perNs);
    const y = OVERVIEW + RULER / 2 + 1;
    for (let time = Math.ceil((origin + scale.from) / step) * step - origin; time < scale.to; time += step) {
      const x = Math.round(scale.x(time)) + 0.5;
      ctx.strokeStyle = this.colours.line;
      ctx.lineWidth = 1;
      ctx.beginPath();
      ctx.moveTo(x, OVERVIEW + 5);
      ctx.lineTo(x, this.height);
      ctx.stroke();
      ctx.fillStyle = this.colours.muted;
      if (x < this.width - 40) ctx.fillText(tick(origin + time, step, largest), x + 4, y);
    }
  }

  paintRow(row) {
    const { ctx, colours } = this;
    const scale = this.scale.shifted(row.track.offset);
    if (row.type === "iterations") this.paintIterations(row, scale);
    for (const lane of row.inside ?? []) this.paintFolded(row, lane, scale);
    if (!row.lane) return;
    const y = row.y + 2;
    const height = row.height - 4;
    if (row.type === "idle") this.paintWaits(row.lane.drains, row, scale, y, height);
    else if (row.type === "stream") this.paintLane(row, scale, y, height, (i) => row.track.nameColours[row.lane.name[i]], colours.kernels[0]);
    else {
      this.paintLane(row, scale, row.type === "calls" ? y + 3 : y, 8, () => colours.call, colours.call);
      if (row.type === "thread") this.paintWaits(row.lane.waits, row, scale, y + 10, height - 10);
    }
    ctx.fillStyle = colours.line;
    ctx.globalAlpha = 0.6;
    ctx.fillRect(this.timeline.gutter, row.y + row.height - 0.5, this.width, 0.5);
    ctx.globalAlpha = 1;
  }

  /** Draws folded lanes over one another: waits of threads, and how busy streams were. */
  paintFolded(row, lane, scale) {
    const { span } = row.track.model;
    const [y, height] = [row.y + 5, row.height - 8];
    if (lane.kind === "stream") paintBins(this.ctx, lane.busy, span, scale, y, height, this.colours.kernels[0]);
    if (lane.waited) paintStacks(this.ctx, lane.byClass, span, scale, y, height, this.colours);
  }

  /** Spans where they are kept and few enough, else how busy the lane was. */
  paintLane(row, scale, y, height, colourOf, colour) {
    const { ctx } = this;
    const { lane } = row;
    const { model } = row.track;
    const perBin = (model.span / model.bins) * scale.perNs;
    const few = lowerBound(lane.start, scale.to) - lowerBound(lane.start, scale.from) < MANY_SPANS;
    if (perBin < 1 && !(few && isWhole(model, Math.max(0, scale.from), Math.min(model.span, scale.to)))) {
      return paintBins(ctx, lane.busy, model.span, scale, y, height, colour);
    }
    let reached = Math.max(0, scale.from);
    for (const [from, to] of [...model.windows, [model.span, model.span]]) {
      if (to < scale.from) continue;
      if (from > reached) this.paintOutline(lane, model, scale, y, height, colour, reached, Math.min(from, scale.to));
      if (from > scale.to) break;
      paintSpans(ctx, lane, scale, y, height, colourOf, 0.25, Math.max(from, scale.from), Math.min(to, scale.to));
      reached = to;
    }
    if (row.type !== "stream") return undefined;
    ctx.font = `11px ${this.colours.font}`;
    return paintNames(ctx, lane, scale, y, height, (i) => model.names[lane.name[i]], (i) => row.track.onNameColours[lane.name[i]]);
  }

  /** Stripes, so that busyness is not taken for spans. */
  paintOutline(lane, model, scale, y, height, colour, from, to) {
    const { ctx } = this;
    paintBins(ctx, lane.busy, model.span, scale, y, height, colour, from, to);
    ctx.fillStyle = this.timeline.stripes;
    const left = Math.max(this.timeline.gutter, scale.x(from));
    ctx.fillRect(left, y, scale.x(to) - left, height);
  }

  /** Waits or drains by class: one by one, or as stacked bars. */
  paintWaits(spans, row, scale, y, height) {
    const { model } = row.track;
    const { waits } = model;
    const shown = lowerBound(spans.start, scale.to) - lowerBound(spans.start, scale.from);
    const inside = waits.length === waits.total ||
      isWhole(model, Math.max(0, scale.from), Math.min(model.span, scale.to));
    if (shown > MANY_WAITS || !inside) {
      return paintStacks(this.ctx, row.lane.byClass, model.span, scale, y, height, this.colours);
    }
    const of = (i) => model.sites[waits.site[spans.index[i]]].class;
    // Later classes lie above: avoidable waits must not hide.
    for (const name of ["true", "unknown", "false"]) {
      paintSpans(this.ctx, spans, scale, y, height, (i) => (of(i) === name ? this.colours.classOf[name] : null), 0.55);
    }
    this.ctx.font = `11px ${this.colours.font}`;
    const site = (i) => model.sites[waits.site[spans.index[i]]];
    return paintNames(this.ctx, spans, scale, y, height, (i) => site(i).id ?? "", (i) => this.colours.onClass[site(i).class]);
  }

  paintIterations(row, scale) {
    const { ctx, colours } = this;
    const { start, end } = row.track.model.iterations;
    const mean = (end[end.length - 1] - start[0]) / start.length;
    const y = row.y + 2;
    const height = row.height - 4;
    if (mean * scale.perNs < 3) {
      // Too many to tell apart: the stretch that they fill.
      ctx.fillStyle = colours.sunken;
      const [a, b] = [Math.max(scale.left, scale.x(start[0])), Math.min(this.width, scale.x(end[end.length - 1]))];
      return ctx.fillRect(a, y, Math.max(1, b - a), height);
    }
    ctx.font = `10px ${colours.font}`;
    ctx.textAlign = "left";
    for (let i = Math.max(0, lowerBound(start, scale.from) - 1); i < start.length && start[i] < scale.to; i++) {
      const a = Math.max(scale.left, scale.x(start[i]));
      const b = Math.min(this.width, scale.x(end[i]));
      if (b <= a) continue;
      ctx.fillStyle = colours.sunken;
      ctx.fillRect(a, y, Math.max(1, b - a - 1), height);
      ctx.fillStyle = colours.muted;
      const text = String(i + 1);
      if (b - a > text.length * 7 + 8) ctx.fillText(text, a + 4, y + height / 2 + 0.5);
    }
    return undefined;
  }

  /** Idle time after waits, over the streams of its device. */
  paintDrains() {
    const { ctx, timeline } = this;
    for (const row of timeline.rows.filter((one) => one.type === "idle")) {
      const scale = this.scale.shifted(row.track.offset);
      const { waits, sites } = row.track.model;
      const { drains } = row.lane;
      const bottom = timeline.rows.filter((one) => one.track === row.track && one.lane?.group === row.lane.group);
      const last = bottom[bottom.length - 1];
      const first = Math.max(0, lowerBound(drains.start, scale.from) - 1);
      const end = lowerBound(drains.start, scale.to);
      if (end - first > 400) continue;
      ctx.globalAlpha = 0.13;
      for (let i = first; i < end; i++) {
        const [a, b] = [scale.x(drains.start[i]), scale.x(drains.end[i])];
        if (b - a < 2) continue;
        ctx.fillStyle = this.colours.classOf[sites[waits.site[drains.index[i]]].class];
        ctx.fillRect(a, row.y + row.height, b - a, last.y + last.height - row.y - row.height);
      }
      ctx.globalAlpha = 1;
    }
  }

  /** Marks matches of the search: names at a row's top, sites at its bottom. */
  paintMatches() {
    const { matches } = this.timeline;
    if (!matches) return;
    this.ctx.fillStyle = this.colours.found;
    for (const row of this.timeline.rows) {
      if (!row.lane) continue;
      const scale = this.scale.shifted(row.track.offset);
      const found = matches.get(row.track);
      const { waits } = row.track.model;
      const ofSite = (i) => found.sites[waits.site[row.lane.waits.index[i]]];
      paintMarks(this.ctx, row.lane, scale, row.y, 3, (i) => found.names[row.lane.name[i]]);
      paintMarks(this.ctx, row.lane.waits, scale, row.y + row.height - 4, 3, ofSite);
    }
  }

  /** The selected wait, and a line from the awaited work to the wait's end. */
  paintSelection() {
    const { selected, rows } = this.timeline;
    if (!selected) return;
    const { ctx } = this;
    const { track, wait } = selected;
    const scale = this.scale.shifted(track.offset);
    const { waits } = track.model;
    const rowOf = (index) => rows.find((row) => row.track === track && row.lane && row.index === index);
    const own = rowOf(waits.lane[wait]);
    if (!own) return;
    const [a, b] = [scale.x(waits.call[wait]), scale.x(waits.end[wait])];
    ctx.strokeStyle = this.colours.ink;
    // From the copy that the wait completes.
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.moveTo(scale.x(waits.start[wait]), own.y + own.height - 1);
    ctx.lineTo(b, own.y + own.height - 1);
    ctx.stroke();
    ctx.lineWidth = 2;
    ctx.strokeRect(a - 1, own.y + 11, Math.max(3, b - a + 2), own.height - 13);
    this.paintAwaited(rowOf, awaitedParts(waits, wait), scale);
    const stream = rowOf(waits.awaited[wait]);
    if (!stream) return;
    const x = scale.x(waits.awaitedEnd[wait]);
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.moveTo(x, stream.y + stream.height / 2);
    ctx.lineTo(x, own.y - 3);
    ctx.lineTo(b, own.y + 11);
    ctx.stroke();
    ctx.beginPath();
    ctx.arc(x, stream.y + stream.height / 2, 3, 0, 2 * Math.PI);
    ctx.fillStyle = this.colours.ink;
    ctx.fill();
  }

  /** Marks above and below each operation that a wait waited for. */
  paintAwaited(rowOf, parts, scale) {
    this.ctx.fillStyle = this.colours.accent;
    for (const [index, from, to] of parts) {
      const row = rowOf(index);
      const awaited = (i) => row.lane.start[i] < to && row.lane.end[i] > from;
      for (const y of row ? [row.y, row.y + row.height - 3] : []) paintMarks(this.ctx, row.lane, scale, y, 3, awaited);
    }
  }

  paintLabels() {
    const { ctx, timeline, colours } = this;
    const { gutter } = timeline;
    ctx.fillStyle = colours.surface;
    ctx.fillRect(0, 0, gutter, this.height);
    ctx.fillStyle = colours.line;
    ctx.fillRect(gutter - 1, OVERVIEW, 1, this.height);
    ctx.fillStyle = colours.muted;
    ctx.textAlign = "left";
    ctx.font = `11px ${colours.font}`;
    ctx.fillText(fitText(ctx, "whole capture", gutter - 8), 0, OVERVIEW / 2);
    for (const row of timeline.rows) {
      const head = row.type === "group" || row.type === "title";
      ctx.font = `${row.type === "title" ? "700 13px" : head ? "600 12px" : "12px"} ${colours.font}`;
      ctx.fillStyle = head ? colours.ink : colours.muted;
      // Headings have the row for themselves, unless folded lanes are drawn in it.
      const room = (head && !row.inside?.length ? this.width : gutter) - LABEL - 8;
      const y = head ? row.y + row.height - 9 : row.y + row.height / 2;
      const text = fitText(ctx, row.label, room);
      const beyond = LABEL + ctx.measureText(text).width + 6 - gutter;
      if (beyond > 0) {
        ctx.fillStyle = colours.surface;
        ctx.fillRect(gutter - 1, row.y + 2, beyond, row.height - 3);
        ctx.fillStyle = colours.ink;
      }
      ctx.fillText(text, LABEL, y);
      if (row.fold) this.paintTwist(timeline.folded.has(row.fold), y);
    }
  }

  /** Points right where lanes are folded away, else down. */
  paintTwist(folded, y) {
    const { ctx } = this;
    ctx.fillStyle = this.colours.muted;
    ctx.beginPath();
    for (const [along, across] of [[-3, -4], [3, 0], [-3, 4]]) ctx.lineTo(4 + (folded ? along : across), y + (folded ? across : along));
    ctx.fill();
  }
}

/** Units of the ruler, in ns. */
const TICKS = [{ unit: 1e9, name: "s" }, { unit: 1e6, name: "ms" }, { unit: 1e3, name: "µs" }];

/** A time of the ruler: in the unit of the largest one shown, with as many digits as the step needs. */
function tick(time, step, largest) {
  const { unit, name } = TICKS.find((one) => largest >= one.unit) ?? { unit: 1, name: "ns" };
  const digits = clamp(Math.ceil(Math.log10(unit / step) - 1e-6), 0, 9);
  return `${(time / unit).toFixed(digits)} ${name}`;
}
