// Spans and bins onto a canvas.

/**
 * Colours of the style sheet, as they are now.
 * @returns {Record<string, any>}
 */
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(`--${name}`).trim();
  /** @returns {Record<string, string>} */
  const named = (names, suffix = "") => Object.fromEntries(names.map((name) => [name, get(name + suffix)]));
  return {
    ...named(["ink", "muted", "line", "surface", "sunken", "accent", "found", "call", "copy", "memset"]),
    kernels: [0, 1, 2, 3].map((i) => get(`kernel-${i}`)),
    byClass: CLASSES.map((name) => get(`${name}-fill`)),
    classOf: named(CLASSES, "-fill"),
    onClass: named(CLASSES, "-on"),
    font: get("sans"),
  };
}

/** Colour of a span by its name: kernels in shades, so that neighbours can be told apart. */
function nameColours(names, colours) {
  return names.map((name) => {
    if (name.startsWith("memcpy")) return colours.copy;
    if (name.startsWith("memset")) return colours.memset;
    let hash = 0;
    for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
    return colours.kernels[hash & 3];
  });
}

/** Picks the colour in which text on `ground` is read best. Colours are "#rrggbb". */
function readable(ground, colours) {
  const light = (colour) => [0.2126, 0.7152, 0.0722].reduce((sum, part, i) => sum + part * (parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16) / 255) ** 2.2, 0.05);
  const contrast = (colour) => Math.abs(Math.log(light(colour) / light(ground)));
  return colours.reduce((a, b) => (contrast(b) > contrast(a) ? b : a));
}

/** Maps times to pixels of the canvas. */
class Scale {
  constructor(from, to, left, width) {
    this.from = from;
    this.to = to;
    this.left = left;
    this.width = width;
    this.perNs = width / (to - from);
  }

  x(time) {
    return this.left + (time - this.from) * this.perNs;
  }

  time(x) {
    return this.from + (x - this.left) / this.perNs;
  }

  /** The same pixels for a capture whose zero lies `offset` later. */
  shifted(offset) {
    return new Scale(this.from + offset, this.to + offset, this.left, this.width);
  }
}

/** Levels of opacity: fewer make longer runs of one colour. */
const SHADES = 8;

/** Spans narrower than a pixel add up to its shade, from `faintest` on: many look as busy as they were. */
function paintSpans(ctx, spans, scale, y, height, colourOf, faintest = 0.25, from = scale.from, to = scale.to) {
  let pixel = -1;
  let covered = 0;
  let colour = "";
  const flush = () => {
    if (covered <= 0) return;
    ctx.globalAlpha = faintest + (1 - faintest) * Math.min(1, Math.ceil(covered * SHADES) / SHADES);
    ctx.fillRect(pixel, y, 1, height);
    ctx.globalAlpha = 1;
    covered = 0;
  };
  const right = scale.left + scale.width;
  const lowest = Math.max(scale.left, scale.x(from));
  for (let i = Math.max(0, lowerBound(spans.start, from) - 1); i < spans.start.length; i++) {
    if (spans.start[i] >= to) break;
    if (spans.end[i] < from) continue;
    const a = Math.max(lowest, scale.x(spans.start[i]));
    const b = Math.min(right, scale.x(spans.end[i]));
    const wanted = colourOf(i);
    if (wanted === null) continue;
    const here = Math.floor(a);
    if (b - a < 1.2) {
      if (here !== pixel || wanted !== colour) flush();
      if (wanted !== colour) ctx.fillStyle = colour = wanted;
      pixel = here;
      covered += b - a;
      // A span of no length shows, faintly.
      if (covered <= 0) covered = 0.001;
      continue;
    }
    flush();
    if (wanted !== colour) ctx.fillStyle = colour = wanted;
    // A hairline between neighbours, where there is room for it.
    const gap = b - a > 4 ? 0.5 : 0;
    ctx.fillRect(a, y, b - a - gap, height);
  }
  flush();
}

function paintNames(ctx, spans, scale, y, height, textOf, colourOf) {
  const least = 34;
  ctx.textAlign = "left";
  for (let i = Math.max(0, lowerBound(spans.start, scale.from) - 1); i < spans.start.length; i++) {
    if (spans.start[i] >= scale.to) break;
    if ((spans.end[i] - spans.start[i]) * scale.perNs < least) continue;
    const a = Math.max(scale.left, scale.x(spans.start[i]));
    const room = Math.min(scale.left + scale.width, scale.x(spans.end[i])) - a - 8;
    if (room < least - 8) continue;
    ctx.fillStyle = colourOf(i);
    ctx.fillText(fitText(ctx, textOf(i), room), a + 4, y + height / 2 + 0.5);
  }
}

/** A mark for each span that passes the test, wide enough to be seen; marks that touch are one. */
function paintMarks(ctx, spans, scale, y, height, test) {
  let [left, right] = [0, -1];
  const flush = () => right > left && ctx.fillRect(left, y, right - left, height);
  for (let i = Math.max(0, lowerBound(spans.start, scale.from) - 1); i < spans.start.length; i++) {
    if (spans.start[i] >= scale.to) break;
    if (!test(i)) continue;
    const a = Math.max(scale.left - 2, Math.floor(scale.x(spans.start[i])));
    const b = Math.min(scale.left + scale.width, Math.max(a + 2, Math.ceil(scale.x(spans.end[i]))));
    if (a <= right) right = Math.max(right, b);
    else {
      flush();
      [left, right] = [a, b];
    }
  }
  flush();
}

/** The level of a pyramid whose bins are at most a pixel wide, or its finest. */
function levelFor(levels, perBin) {
  let level = 0;
  while (level + 1 < levels.length && perBin * 2 ** (level + 1) <= 1) level++;
  return level;
}

/** The busiest of a level's bins under a pixel. */
function busiest(bins, perBin, from, to) {
  const last = Math.min(bins.length - 1, Math.max(Math.floor(from / perBin), Math.ceil(to / perBin) - 1));
  let most = 0;
  for (let i = Math.max(0, Math.floor(from / perBin)); i <= last; i++) most = Math.max(most, bins[i]);
  return most;
}

/** Calls `draw(x, level)` for every pixel of `from..to`. */
function eachPixel(levels, span, scale, from, to, draw) {
  const finest = span / levels[0].length;
  const level = levelFor(levels, finest * scale.perNs);
  const perBin = finest * 2 ** level;
  const first = Math.floor(clamp(scale.x(from), scale.left, scale.left + scale.width));
  const last = Math.ceil(clamp(scale.x(to), scale.left, scale.left + scale.width));
  for (let x = first; x < last; x++) draw(x, busiest(levels[level], perBin, scale.time(x), scale.time(x + 1)));
}

function paintBins(ctx, levels, span, scale, y, height, colour, from = 0, to = span) {
  ctx.fillStyle = colour;
  let start = 0;
  let shade = 0;
  const flush = (x) => {
    if (shade > 0) {
      ctx.globalAlpha = 0.15 + (0.85 * shade) / SHADES;
      ctx.fillRect(start, y, x - start, height);
    }
    start = x;
  };
  let end = 0;
  eachPixel(levels, span, scale, Math.max(0, from), Math.min(span, to), (x, level) => {
    const next = Math.ceil((level * SHADES) / 255);
    if (next !== shade || x !== end) {
      flush(end);
      start = x;
      shade = next;
    }
    end = x + 1;
  });
  flush(end);
  ctx.globalAlpha = 1;
}

/** Time by class as stacked bars: avoidable at the bottom, then undecided, then needed; any time has some pixels. */
function paintStacks(ctx, byClass, span, scale, y, height, colours) {
  const left = Math.floor(scale.left);
  const base = new Float32Array(Math.ceil(scale.width) + 2);
  for (const which of [0, 2, 1]) {
    ctx.fillStyle = colours.byClass[which];
    // Neighbours of one height are one rectangle: heights are of half pixels.
    let run = null;
    const flush = () => run && ctx.fillRect(run.x, run.top, run.end - run.x, run.tall);
    eachPixel(byClass[which], span, scale, 0, span, (x, level) => {
      if (level === 0) return;
      const tall = Math.min(Math.max(2.5, Math.round((level / 127.5) * height) / 2), height - base[x - left]);
      if (tall <= 0) return;
      const top = y + height - base[x - left] - tall;
      base[x - left] += tall;
      if (run && run.end === x && run.top === top && run.tall === tall) run.end = x + 1;
      else {
        flush();
        run = { x, end: x + 1, top, tall };
      }
    });
    flush();
  }
}

/** Diagonal stripes: only an outline is known. */
function stripes(ctx, colour) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const brush = tile.getContext("2d");
  brush.strokeStyle = colour;
  brush.lineWidth = 1.6;
  brush.beginPath();
  for (const shift of [-6, 0, 6]) {
    brush.moveTo(shift - 1, 7);
    brush.lineTo(shift + 7, -1);
  }
  brush.stroke();
  return ctx.createPattern(tile, "repeat");
}

function fitText(ctx, text, width) {
  if (ctx.measureText(text).width <= width) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (ctx.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 0 ? `${text.slice(0, low)}…` : "";
}
