// When each picture of a segment is shown, from its fragments' own boxes (ISO/IEC 14496-12, 8.8).

function* boxes(view, start, end) {
  for (let at = start; at + 8 <= end;) {
    let size = view.getUint32(at);
    let head = 8;
    if (size === 1 && at + 16 <= end) {
      size = Number(view.getBigUint64(at + 8));
      head = 16;
    } else if (size === 0) size = end - at;
    if (size < head || at + size > end) return;
    const type = String.fromCharCode(...new Uint8Array(view.buffer, view.byteOffset + at + 4, 4));
    yield { type, start: at + head, end: at + size };
    at += size;
  }
}

function* inside(view, path, start = 0, end = view.byteLength) {
  const [first, ...rest] = path;
  for (const box of boxes(view, start, end)) {
    if (box.type !== first) continue;
    if (rest.length) yield* inside(view, rest, box.start, box.end);
    else yield box;
  }
}

// The duration that samples have where their fragment tells none, of each track (trex).
export function defaultsOf(bytes) {
  const view = new DataView(bytes);
  const found = new Map();
  for (const { start, end } of inside(view, ["moov", "mvex", "trex"])) {
    if (start + 16 <= end) found.set(view.getUint32(start + 4), view.getUint32(start + 12));
  }
  return found;
}

// Seconds of the presentation, in its order; none where the boxes cannot be read.
export function timesOf(bytes, lane, n) {
  try {
    const found = ticksOf(new DataView(bytes), lane);
    if (!found.length) return found;
    const ticks = Float64Array.from(found).sort();
    // the index tells where the first one is on the presentation's own line of time
    return Array.from(ticks, (tick) => lane.starts[n] + (tick - ticks[0]) / lane.told.timescale);
  } catch (error) {
    if (error instanceof RangeError) return [];
    throw error;
  }
}

function ticksOf(view, lane) {
  const tracks = new Map();
  for (const moof of inside(view, ["moof"])) {
    for (const traf of inside(view, ["traf"], moof.start, moof.end)) {
      const [header] = inside(view, ["tfhd"], traf.start, traf.end);
      const [base] = inside(view, ["tfdt"], traf.start, traf.end);
      if (!header || !base) continue;
      const id = view.getUint32(header.start + 4);
      const own = durationOf(view, header.start) ?? lane.defaults?.get(id) ?? 0;
      let time = view.getUint8(base.start) ? Number(view.getBigUint64(base.start + 4))
        : view.getUint32(base.start + 4);
      const ticks = tracks.get(id) ?? [];
      tracks.set(id, ticks);
      for (const run of inside(view, ["trun"], traf.start, traf.end)) {
        time = runOf(view, run, own, time, ticks);
      }
    }
  }
  return tracks.get(lane.id) ?? [...tracks.values()][0] ?? [];
}

function durationOf(view, start) {
  const flags = view.getUint32(start) & 0xffffff;
  const at = start + 8 + (flags & 1 ? 8 : 0) + (flags & 2 ? 4 : 0);
  return flags & 8 ? view.getUint32(at) : undefined;
}

function runOf(view, { start, end }, own, time, ticks) {
  const version = view.getUint8(start);
  const flags = view.getUint32(start) & 0xffffff;
  const samples = view.getUint32(start + 4);
  let at = start + 8 + (flags & 1 ? 4 : 0) + (flags & 4 ? 4 : 0);
  const wide = [0x100, 0x200, 0x400, 0x800].filter((one) => flags & one).length * 4;
  for (let n = 0; n < samples; n++, at += wide) {
    // a count that is more than its box holds is no picture's
    if (at + wide > end) break;
    const last = at + wide - 4;
    const shift = !(flags & 0x800) ? 0 : version ? view.getInt32(last) : view.getUint32(last);
    ticks.push(time + shift);
    time += flags & 0x100 ? view.getUint32(at) : own;
    if (!wide && n > 1e5) break;
  }
  return time;
}
