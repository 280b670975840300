// Numbers as the other formats print them: src/text/mod.rs says the same in Rust.

const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

const counted = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;

const rounded = (numerator, denominator) => Math.floor(numerator / denominator + 0.5);

/** `value / unit` with three significant digits, unless that rounds up to `end`. */
function threeDigits(value, unit, end) {
  for (const [decimals, limit] of [[2, 1000], [1, 1000], [0, end]]) {
    const scale = 10 ** decimals;
    const scaled = rounded(value * scale, unit);
    if (scaled < limit && scaled < end * scale) return (scaled / scale).toFixed(decimals);
  }
  return null;
}

/** "412 ns", "3.21 µs", "12.4 ms", "1.83 s", "2 min 03 s", "1 h 05 min". */
function duration(ns) {
  const sign = ns < 0 ? "-" : "";
  const size = Math.abs(Math.round(ns));
  if (size < 1000) return `${sign}${size} ns`;
  for (const [unit, name] of [[1e3, "µs"], [1e6, "ms"], [1e9, "s"]]) {
    const number = threeDigits(size, unit, name === "s" ? 60 : 1000);
    if (number !== null) return `${sign}${number} ${name}`;
  }
  const two = (number) => String(number).padStart(2, "0");
  const seconds = rounded(size, 1e9);
  if (seconds < 3600) return `${sign}${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  const minutes = rounded(size, 60e9);
  return `${sign}${grouped(Math.floor(minutes / 60))} h ${two(minutes % 60)} min`;
}

/** A time as the nsys GUI shows it: seconds with all nanoseconds. */
function timestamp(ns) {
  const size = Math.abs(Math.round(ns));
  const fraction = String(size % 1e9).padStart(9, "0");
  return `${ns < 0 ? "-" : ""}${Math.floor(size / 1e9)}.${fraction} s`;
}

/** A step of 1, 2 or 5 times a power of ten that is at least `least`. */
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= least * 0.999999);
}

/** Keeps numbers on a line with their units. */
const held = (text) => text.replace(/(\d) (?=(ns|µs|ms|s|min|h|%)\b|%)/g, "$1\u00a0");

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
