// A capture as typed arrays. Times are ns from the drawing's start.

/** Index of the first element of an ascending array that is at least `value`. */
function lowerBound(array, value) {
  let low = 0;
  let high = array.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (array[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Levels of bins, each with half as many: means of two, rounded up so that nothing busy fades out. */
function pyramid(finest) {
  const levels = [finest];
  for (let last = finest; last.length > 64; last = levels[levels.length - 1]) {
    const next = new Uint8Array(last.length / 2);
    for (let i = 0; i < next.length; i++) next[i] = (last[2 * i] + last[2 * i + 1] + 1) >> 1;
    levels.push(next);
  }
  return levels;
}

function readLane(data, bins) {
  const reader = new Reader(data.spans);
  const lane = {
    kind: data.kind,
    group: data.group,
    label: data.label,
    start: new Float64Array(data.kept),
    end: new Float64Array(data.kept),
    name: new Uint16Array(data.kept),
    busy: pyramid(readBins(data.busy, bins)),
    byClass: data.kind === "stream" ? null : data.by_class.map((packed) => pyramid(readBins(packed, bins))),
    waits: [],
    drains: [],
  };
  // Bins tell whether a thread ever waits, even if its waits are not kept.
  lane.waited = lane.kind === "thread" && lane.byClass.some((levels) => levels[levels.length - 1].some((level) => level > 0));
  let previous = 0;
  for (let i = 0; i < data.kept; i++) {
    previous += reader.next();
    lane.start[i] = previous;
    lane.end[i] = previous + reader.next();
    lane.name[i] = reader.next();
  }
  return lane;
}

/** Waits as columns. `lane`, `awaited` and `idle` are -1 for none; `elsewhere`: awaited work of other streams. */
function readWaits(data) {
  const reader = new Reader(data.packed);
  const column = () => new Float64Array(data.kept);
  const waits = {
    total: data.total,
    length: data.kept,
    start: column(),
    end: column(),
    call: column(),
    copyBlocked: column(),
    drain: column(),
    awaitedEnd: column(),
    site: new Int32Array(data.kept),
    lane: new Int32Array(data.kept),
    awaited: new Int32Array(data.kept),
    idle: new Int32Array(data.kept),
    elsewhere: new Map(),
  };
  let previous = 0;
  for (let i = 0; i < data.kept; i++) {
    previous += reader.next();
    waits.start[i] = previous;
    waits.end[i] = previous + reader.next();
    waits.call[i] = previous + reader.next();
    waits.copyBlocked[i] = reader.next();
    waits.site[i] = reader.next();
    waits.lane[i] = reader.next() - 1;
    waits.drain[i] = reader.next();
    waits.awaited[i] = reader.next() - 1;
    waits.idle[i] = -1;
    if (waits.awaited[i] < 0) continue;
    waits.awaitedEnd[i] = previous + reader.signed();
    waits.idle[i] = reader.next() - 1;
    const parts = Array.from({ length: reader.next() }, () => {
      const lane = reader.next() - 1;
      const from = previous + reader.next();
      return [lane, from, from + reader.next()];
    });
    if (parts.length) waits.elsewhere.set(i, parts);
  }
  return waits;
}

/** Work that a wait waited for: `[lane, from, to]`. Streams work in order: all that was left of the stream counts. */
function awaitedParts(waits, i) {
  if (waits.awaited[i] < 0) return [];
  return [[waits.awaited[i], waits.start[i], waits.awaitedEnd[i]], ...(waits.elsewhere.get(i) ?? [])];
}

/** `[wait, start, end]` in start order as columns, like a lane's spans. */
function segments(list) {
  list.sort((a, b) => a[1] - b[1]);
  const column = (which) => Float64Array.from(list, (one) => one[which]);
  return { index: Int32Array.from(list, (one) => one[0]), start: column(1), end: column(2) };
}

function readTimeline(data) {
  const model = {
    label: data.label,
    clock: data.start_ns,
    span: data.span_ns,
    names: data.names,
    sites: data.sites,
    lanes: data.lanes.map((lane) => readLane(lane, data.bins)),
    leftOut: data.lanes_left_out,
    waits: readWaits(data.waits),
    iterations: data.iterations
      ? { name: data.iterations.name, ...readPairs(data.iterations.packed, data.iterations.count) }
      : { name: "", start: [], end: [] },
    windows: readAllPairs(data.windows),
    bins: data.bins,
  };
  const { waits, lanes } = model;
  for (let i = 0; i < waits.length; i++) {
    const own = lanes[waits.lane[i]]?.waits;
    if (waits.copyBlocked[i] > 0) own?.push([i, waits.start[i], waits.start[i] + waits.copyBlocked[i]]);
    own?.push([i, waits.call[i], waits.end[i]]);
    const ended = waits.awaitedEnd[i];
    if (waits.drain[i] > 0) lanes[waits.idle[i]]?.drains.push([i, ended, ended + waits.drain[i]]);
  }
  for (const lane of lanes) {
    lane.waits = segments(lane.waits);
    lane.drains = segments(lane.drains);
  }
  return model;
}

/** The index of the span of an array that holds `time`, or comes within `slack` of it; -1 for none. Spans do not overlap. */
function spanAt(spans, time, slack) {
  const after = lowerBound(spans.start, time + slack);
  let best = -1;
  let nearest = slack;
  for (let i = Math.max(0, after - 8); i < after; i++) {
    const away = time < spans.start[i] ? spans.start[i] - time : Math.max(0, time - spans.end[i]);
    if (away <= nearest) {
      nearest = away;
      best = i;
    }
  }
  return best;
}

/** Whether a model holds every span between two times. */
const isWhole = (model, from, to) => model.windows.some(([start, end]) => start <= from && to <= end);
