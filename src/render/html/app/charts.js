// Small drawings of a site: waits by length, blocked time over the run.

const WIDTH = 360;

function histogram(buckets) {
  const most = Math.max(...buckets.map(([, waits]) => waits), 1);
  const height = 96;
  const bar = Math.min(WIDTH / buckets.length, 64);
  const bars = buckets.map(([bound, waits], i) => {
    const tall = waits ? Math.max(2, (waits / most) * (height - 18)) : 0;
    const label = `up to ${duration(bound)}: ${counted(waits, "wait")}`;
    return svg("g", {},
      svg("title", {}, label),
      svg("rect", { class: "hit", x: i * bar, y: 0, width: bar, height }),
      svg("rect", { class: "bar", x: i * bar + 1, y: height - tall, width: Math.max(1, bar - 2), height: tall, rx: 1.5 }),
      waits && bar > 24 ? svg("text", { x: (i + 0.5) * bar, y: height - tall - 5, "text-anchor": "middle" }, grouped(waits)) : null);
  });
  const words = buckets.filter(([, waits]) => waits).map(([bound, waits]) => `${grouped(waits)} up to ${duration(bound)}`);
  const every = Math.ceil(64 / bar);
  const ticks = buckets.map(([bound], i) => i % every ? null
    : svg("text", { x: (i + 0.5) * bar, y: height + 14, "text-anchor": "middle", class: "tick" }, `≤ ${duration(bound)}`));
  return el("figure", {},
    el("figcaption", {}, "Waits by blocked time"),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${height + 20}`, role: "img", "aria-label": `Waits by blocked time: ${words.join(", ")}` },
      svg("line", { x1: 0, x2: bar * buckets.length, y1: height + 0.5, y2: height + 0.5, class: "axis" }), bars, ticks));
}

/** Blocked time from the first iteration to the last, or from the start of the capture to its end. */
function sparkline(series) {
  const points = series.blocked_ns;
  const most = Math.max(...points, 1);
  const height = 56;
  const step = WIDTH / Math.max(1, points.length);
  const what = series.iterations_each
    ? series.iterations_each === 1 ? "Blocked time of each iteration" : `Blocked time, mean of ${series.iterations_each} iterations`
    : "Blocked time over the capture";
  const bars = points.map((ns, i) => {
    const tall = ns > 0 ? Math.max(1, (ns / most) * height) : 0;
    const first = i * series.iterations_each + 1;
    const last = Math.min(series.iterations, first + series.iterations_each - 1);
    const place = series.iterations_each ? `iteration ${grouped(first)}${last > first ? ` to ${grouped(last)}` : ""}: ` : "";
    return svg("g", {},
      svg("title", {}, `${place}${duration(ns)}`),
      svg("rect", { class: "hit", x: i * step, y: 0, width: step, height }),
      svg("rect", { class: "bar", x: i * step, y: height - tall, width: Math.max(0.6, step - (step > 3 ? 1 : 0)), height: tall }));
  });
  const sorted = [...points].sort((a, b) => a - b);
  const label = `${what}: least ${duration(sorted[0] ?? 0)}, median ${duration(sorted[sorted.length >> 1] ?? 0)}, most ${duration(most)}`;
  return el("figure", {},
    el("figcaption", {}, `${what}, at most ${duration(most)}`),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${height + 2}`, role: "img", "aria-label": label },
      svg("line", { x1: 0, x2: WIDTH, y1: height + 0.5, y2: height + 0.5, class: "axis" }), bars));
}
