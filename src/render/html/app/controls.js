// Input to the timeline: wheel, pointers, keys.

/** Movement in pixels from which a press is a drag. */
const STILL = 4;

class Controls {
  constructor(timeline) {
    this.timeline = timeline;
    this.pointers = new Map();
    const { canvas } = timeline;
    const on = (name, handler, options) => canvas.addEventListener(name, handler, options);
    on("wheel", (event) => this.wheel(event), { passive: false });
    on("pointerdown", (event) => this.down(event));
    on("pointermove", (event) => this.move(event));
    on("pointerup", (event) => this.up(event));
    on("pointercancel", (event) => this.pointers.delete(event.pointerId));
    on("pointerleave", () => this.hideTip());
    on("dblclick", (event) => this.zoomTo(this.place(event)));
    on("keydown", (event) => this.key(event));
  }

  place(event) {
    const box = this.timeline.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** The page scrolls until the timeline is chosen: a wheel on its way down the page must not get caught. */
  wheel(event) {
    const { timeline } = this;
    const chosen = document.activeElement === timeline.canvas || event.ctrlKey || event.metaKey;
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!chosen && !sideways) return;
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    if (sideways && !event.ctrlKey) {
      const by = (event.deltaX || event.deltaY) * lines;
      timeline.pan(by / (timeline.size.width - timeline.gutter), false);
    } else {
      const factor = Math.exp(clamp(event.deltaY * lines, -240, 240) * 0.004);
      timeline.zoom(factor, timeline.scale.time(Math.max(timeline.gutter, this.place(event).x)), false);
    }
    this.hideTip();
  }

  down(event) {
    if (event.button > 0) return;
    const { timeline } = this;
    const at = this.place(event);
    timeline.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, at);
    this.press = { at, view: timeline.target, moved: false, overview: at.y < OVERVIEW };
    this.spread = this.distance();
    if (this.press.overview) this.centre(at);
  }

  distance() {
    const [a, b] = [...this.pointers.values()];
    return a && b ? Math.max(20, Math.abs(a.x - b.x)) : 0;
  }

  centre(at) {
    const { timeline } = this;
    const half = (timeline.target.to - timeline.target.from) / 2;
    const middle = timeline.whole.time(at.x);
    timeline.show(middle - half, middle + half);
  }

  move(event) {
    const { timeline } = this;
    const at = this.place(event);
    if (!this.pointers.has(event.pointerId)) return this.hover(at);
    this.pointers.set(event.pointerId, at);
    if (this.pointers.size === 2) return this.pinch();
    if (this.press.overview) return this.centre(at);
    if (Math.abs(at.x - this.press.at.x) > STILL) this.press.moved = true;
    if (!this.press.moved) return undefined;
    this.hideTip();
    const { from, to } = this.press.view;
    const by = ((this.press.at.x - at.x) * (to - from)) / (timeline.size.width - timeline.gutter);
    const shift = clamp(by, timeline.low - from, timeline.high - to);
    return timeline.show(from + shift, to + shift);
  }

  pinch() {
    const { timeline } = this;
    const [a, b] = [...this.pointers.values()];
    const now = this.distance();
    timeline.zoom(this.spread / now, timeline.scale.time((a.x + b.x) / 2), false);
    this.spread = now;
    this.press.moved = true;
  }

  up(event) {
    const { timeline } = this;
    this.pointers.delete(event.pointerId);
    if (!this.press || this.press.moved || this.press.overview) return;
    const hit = this.hit(this.press.at);
    if (hit?.wait === undefined) return timeline.select(null, null);
    timeline.select(hit.row.track, hit.wait);
    timeline.onWait(hit.row.track, hit.row.track.model.sites[hit.row.track.model.waits.site[hit.wait]]);
  }

  /**
   * Finds the wait, the span or the iteration under a point, with lines that describe it.
   * @returns {{ row: any, from: number, to: number, lines: string[], wait?: number } | null}
   */
  hit({ x, y }) {
    const { timeline } = this;
    const row = timeline.rows.find((one) => y >= one.y && y < one.y + one.height);
    if (!row || x < timeline.gutter) return null;
    const scale = timeline.scale.shifted(row.track.offset);
    const { model } = row.track;
    const time = scale.time(x);
    const slack = 4 / scale.perNs;
    const stretch = (spans, i) => ({ row, from: spans.start[i] - row.track.offset, to: spans.end[i] - row.track.offset });
    if (row.type === "iterations") {
      const i = spanAt(model.iterations, time, 0);
      if (i < 0) return null;
      const { start, end, name } = model.iterations;
      const which = `iteration ${grouped(i + 1)} of ${grouped(start.length)}`;
      return { ...stretch(model.iterations, i), lines: [which, `${name}, ${duration(end[i] - start[i])}, from ${timeline.at(row.track, start[i])}`] };
    }
    if (!row.lane) return null;
    const onWaits = row.type === "idle" || (row.type === "thread" && y >= row.y + 11);
    const spans = row.type === "idle" ? row.lane.drains : onWaits ? row.lane.waits : row.lane;
    const i = spanAt(spans, time, slack);
    if (i < 0) return null;
    const seen = stretch(spans, i);
    if (onWaits) return { ...seen, wait: spans.index[i], lines: timeline.waitLines(row.track, spans.index[i]) };
    const from = timeline.at(row.track, spans.start[i]);
    return { ...seen, lines: [model.names[spans.name[i]], `${duration(spans.end[i] - spans.start[i])}, from ${from}`] };
  }

  hover(at) {
    const hit = this.hit(at);
    if (!hit) return this.hideTip();
    const { tip, size } = this.timeline;
    tip.replaceChildren(...hit.lines.map((line, i) => el(i ? "span" : "strong", {}, line)));
    tip.hidden = false;
    tip.style.left = `${clamp(at.x + 14, 0, Math.max(0, size.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${at.y + 18}px`;
    return undefined;
  }

  hideTip() {
    this.timeline.tip.hidden = true;
  }

  zoomTo(at) {
    const hit = this.hit(at);
    if (!hit) return;
    const around = (hit.to - hit.from) * 0.6;
    this.timeline.show(hit.from - around, hit.to + around, true);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { timeline } = this;
    const open = () => {
      const chosen = timeline.selected;
      if (chosen) timeline.onWait(chosen.track, chosen.track.model.sites[chosen.track.model.waits.site[chosen.wait]]);
    };
    const actions = {
      w: () => timeline.zoom(0.6), "+": () => timeline.zoom(0.6), "=": () => timeline.zoom(0.6),
      s: () => timeline.zoom(1 / 0.6), "-": () => timeline.zoom(1 / 0.6),
      a: () => timeline.pan(-0.25), ArrowLeft: () => timeline.pan(-0.25),
      d: () => timeline.pan(0.25), ArrowRight: () => timeline.pan(0.25),
      Home: () => timeline.fit(), 0: () => timeline.fit(),
      n: () => timeline.walk(1), p: () => timeline.walk(-1),
      "[": () => timeline.turn(-1), "]": () => timeline.turn(1),
      Enter: open, Escape: () => timeline.select(null, null),
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }
}
