// The packed numbers of src/model/packed.rs and src/timeline/bins.rs.

function bytesOf(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

class Reader {
  constructor(text) {
    this.bytes = bytesOf(text);
    this.at = 0;
  }

  get more() {
    return this.at < this.bytes.length;
  }

  byte() {
    return this.bytes[this.at++];
  }

  /** Seven bits a byte, low ones first. Not with shifts: times have more than 32 bits. */
  next() {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.byte();
      value += (byte & 127) * scale;
      if (!(byte >= 128)) return value;
    }
  }

  signed() {
    const value = this.next();
    return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
  }
}

/** Packed as distances between starts, and lengths. */
function readPairs(text, count) {
  const reader = new Reader(text);
  const start = new Float64Array(count);
  const end = new Float64Array(count);
  let previous = 0;
  for (let i = 0; i < count; i++) {
    previous += reader.next();
    start[i] = previous;
    end[i] = previous + reader.next();
  }
  return { start, end };
}

/** All pairs up to the end. */
function readAllPairs(text) {
  const reader = new Reader(text);
  const list = [];
  for (let previous = 0; reader.more; ) {
    previous += reader.next();
    list.push([previous, previous + reader.next()]);
  }
  return list;
}

/** Levels of busyness, 0 to 255. After 0 and 255 comes the number of repeats. */
function readBins(text, count) {
  const reader = new Reader(text);
  const bins = new Uint8Array(count);
  for (let i = 0; i < count && reader.more; ) {
    const level = reader.byte();
    const more = level === 0 || level === 255 ? reader.next() : 0;
    bins.fill(level, i, i + more + 1);
    i += more + 1;
  }
  return bins;
}
