/** Progressive files: sample tables, and virtual fragments from one sync sample to the next. */
import { emptyTable, holding, joinedSync, push } from "./sync.js";

const MANY = 2 ** 16; // samples of one size from which on their number is held against the file's size
const MOST_FRAGMENTS = 2 ** 17;
const LEAST_FRAGMENTS = 16;
const LONGEST = 2 ** 31;

export const emptyFragments = () => emptyTable("fragments");
export const UNKNOWN = null; // an element of a column that says nothing
export const VIRTUAL = 1;
export const OUTSIDE = 8;

/** The rows of a table: its box must hold as many as it claims. */
function table(stbl, type, width, countAt = 4) {
  const box = stbl.one(type);
  if (!box) return undefined;
  box.version(type === "ctts" ? 1 : 0);
  const start = countAt + 4;
  const rows = box.need(start).u32(countAt);
  if (rows > (box.room - start) / width) box.refuse(`${rows} rows do not fit into the box`);
  return { box, rows, u32: (row, at = 0) => box.u32(start + row * width + at), i32: (row, at) => box.i32(start + row * width + at) };
}

/** Bytes of each sample (`size(n)`, or `each` of all), and how many there are. */
function readSizes(stbl) {
  const [stsz, stz2] = [stbl.one("stsz"), stbl.one("stz2")];
  if (stsz && stz2) stz2.refuse("there are an stsz and an stz2");
  if (stsz) {
    stsz.version(0);
    const [each, count] = [stsz.need(12).u32(4), stsz.u32(8)];
    if (each || !count) return { each, count };
    if (count > (stsz.room - 12) / 4) stsz.refuse(`${count} sizes do not fit into the box`);
    return { each: 0, count, size: (n) => stsz.u32(12 + 4 * n) };
  }
  if (!stz2) return { each: 0, count: 0 };
  stz2.version(0);
  const [field, count] = [stz2.need(12).u8(7), stz2.u32(8)];
  if (![4, 8, 16].includes(field)) stz2.refuse(`sizes of ${field} bits`);
  if (count > ((stz2.room - 12) * 8) / field) stz2.refuse(`${count} sizes do not fit into the box`);
  const size = {
    4: (n) => (stz2.u8(12 + (n >> 1)) >> (n & 1 ? 0 : 4)) & 15,
    8: (n) => stz2.u8(12 + n),
    16: (n) => stz2.u16(12 + 2 * n),
  }[field];
  return { each: 0, count, size };
}

/** Values as runs: `value[i]` for samples before `stop[i]`; neighbours of one value are one run. */
function steps(rows, read, count) {
  const [stop, value] = [[], []];
  let [covered, total] = [0, 0];
  for (let row = 0; row < rows.rows; row++) {
    total += rows.u32(row);
    const until = Math.min(total, count);
    if (until === covered) continue;
    const each = read(row);
    if (value.length && value.at(-1) === each) stop[stop.length - 1] = until;
    else {
      stop.push(until);
      value.push(each);
    }
    covered = until;
  }
  return { stop, value, covered, total };
}

/** The sample tables of a track; undefined where they name no sample. */
export function readSampleTables(stbl, described, fileEnd) {
  const { each, count, size } = readSizes(stbl);
  const [stco, co64] = [table(stbl, "stco", 4), table(stbl, "co64", 8)];
  if (stco && co64) co64.box.refuse("there are an stco and a co64");
  const stsc = table(stbl, "stsc", 12);
  if (!count) return undefined;
  const chunks = stco ?? co64;
  if (!chunks || !stsc?.rows) stbl.refuse(`${count} samples are in no chunk`);
  const chunkOffset = Array.from({ length: chunks.rows }, (_, row) =>
    stco ? stco.u32(row) : co64.box.u64(8 + 8 * row),
  );
  const chunkStart = new Array(chunks.rows);
  let samples = 0;
  for (let row = 0; row < stsc.rows; row++) {
    const [first, entry] = [stsc.u32(row), stsc.u32(row, 8)];
    const next = row + 1 < stsc.rows ? stsc.u32(row + 1) : chunks.rows + 1;
    if ((row === 0 && first !== 1) || (row + 1 < stsc.rows && first >= next)) {
      stsc.box.refuse("the first chunks of stsc do not rise from 1");
    }
    if (described && !(entry >= 1 && entry <= described)) {
      stsc.box.refuse(`stsc names sample entry ${entry} of ${described}`);
    }
    for (let chunk = first - 1; chunk < Math.min(next - 1, chunks.rows); chunk++) {
      chunkStart[chunk] = samples;
      samples += stsc.u32(row, 4);
    }
  }
  if (samples !== count) stsc.box.refuse(`the chunks hold ${samples} samples, and there are ${count}`);
  if (!size && count > Math.max(MANY, Math.floor(fileEnd / each))) {
    stbl.refuse(`${count} samples of ${each} bytes cannot be in the file`);
  }
  const stts = table(stbl, "stts", 8) ?? stbl.refuse("there are no sample durations (stts)");
  const durations = steps(stts, (row) => stts.u32(row, 4), count);
  if (durations.covered < count) stts.box.refuse("stts covers fewer samples than there are");
  if (durations.value.some((value) => value >= LONGEST)) stts.box.refuse("a sample duration of 2^31 or more");
  const ctts = table(stbl, "ctts", 8);
  const offsets = ctts?.rows ? steps(ctts, (row) => ctts.i32(row, 4), count) : undefined;
  if (offsets && offsets.covered < count) {
    offsets.stop.push(count);
    offsets.value.push(0);
  }
  const stss = table(stbl, "stss", 4);
  let sync;
  if (stss) {
    sync = Array.from({ length: stss.rows }, (_, row) => stss.u32(row) - 1);
    if (!sync.every((one, row) => one > (row ? sync[row - 1] : -1) && one < count)) {
      stss.box.refuse("sync sample numbers do not rise inside the track");
    }
    if (sync.length === count) sync = undefined;
  }
  // Bytes of all samples before one, so that each chunk is summed up once.
  let before = (sample) => sample * each;
  if (size) {
    const sums = new Float64Array(count + 1);
    for (let n = 0; n < count; n++) sums[n + 1] = sums[n] + size(n);
    before = (sample) => sums[sample];
  }
  return { count, isSized: Boolean(size), before, durations, offsets, sync, chunkOffset, chunkStart, stbl };
}

/** The runs of one chunk that samples a to b lie in: first sample, stop, place and bytes. */
function* chunksOf({ chunkStart, chunkOffset, before }, a, b) {
  let chunk = holding(chunkStart, a);
  for (let first = a; first < b; chunk++) {
    const stop = Math.min(chunkStart[chunk + 1] ?? Infinity, b);
    if (stop <= first) continue; // a chunk of no samples
    const place = chunkOffset[chunk] + before(first) - before(chunkStart[chunk]);
    yield { first, stop, place, bytes: before(stop) - before(first) };
    first = stop;
  }
}

/** Runs as a cursor: the value of samples that only rise, and where its run ends. */
function cursor({ stop, value }) {
  let run = 0;
  return (sample) => {
    while (stop[run] <= sample) run++;
    return [value[run], stop[run]];
  };
}

/** Decode times of sample numbers in any order (the count itself gives the end). */
function timesOf({ stop, value }) {
  const before = [0];
  stop.forEach((end, run) => before.push(before[run] + (end - (run ? stop[run - 1] : 0)) * value[run]));
  return (sample) => {
    const run = Math.min(holding(stop, sample) + 1, stop.length - 1);
    return before[run] + (sample - (run ? stop[run - 1] : 0)) * value[run];
  };
}

/** Number of the first sample of each virtual fragment. */
function startsOf({ count, isSized, sync, durations }, timescale, fileEnd, sharing) {
  if (sync) return sync[0] === 0 ? sync : [0, ...sync];
  if (!timescale) return [0];
  const room = Math.min(MOST_FRAGMENTS, fileEnd);
  const most = isSized ? count : Math.max(LEAST_FRAGMENTS, Math.floor(room / Math.max(1, sharing)));
  const least = Math.ceil(count / most);
  const every = (step) => Array.from({ length: Math.ceil(count / step) }, (_, n) => n * step);
  const { stop, value } = durations;
  if (value.length === 1 && value[0]) return every(Math.max(least, Math.ceil(timescale / value[0])));
  const ends = [];
  stop.forEach((end, run) => ends.push((ends[run - 1] ?? 0) + (end - (run ? stop[run - 1] : 0)) * value[run]));
  const borders = [0];
  let [run, time] = [0, 0];
  while (borders.length <= most) {
    while (run < ends.length && ends[run] < time + timescale) run++;
    if (run === ends.length) return borders;
    const [begin, before] = run ? [stop[run - 1], ends[run - 1]] : [0, 0];
    const at = begin + Math.ceil((time + timescale - before) / value[run]);
    if (at >= count) return borders;
    time = before + (at - begin) * value[run];
    borders.push(at);
  }
  return every(least);
}

/** Fragment and sync table of a progressive track; `sharing`: tracks of the file with tables. */
export function virtualFragments(tables, timescale, fileEnd, sharing) {
  const { count, durations, offsets, sync } = tables;
  const starts = startsOf(tables, timescale, fileEnd, sharing);
  const fragments = emptyFragments();
  const durationAt = cursor(durations);
  const offsetAt = offsets ? cursor(offsets) : () => [0, Infinity];
  let dts = 0;
  starts.forEach((start, row) => {
    const stop = starts[row + 1] ?? count;
    let [dataStart, dataStop, ctsMin, ctsEnd] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const { place, bytes } of chunksOf(tables, start, stop)) {
      dataStart = Math.min(dataStart, place);
      dataStop = Math.max(dataStop, place + bytes);
    }
    const begun = dts;
    for (let sample = start; sample < stop; ) {
      const [[duration, stopA], [offset, stopB]] = [durationAt(sample), offsetAt(sample)];
      const next = Math.min(stop, stopA, stopB);
      ctsMin = Math.min(ctsMin, dts + offset);
      dts += (next - sample) * duration;
      ctsEnd = Math.max(ctsEnd, dts + offset);
      sample = next;
    }
    const flags = VIRTUAL | (dataStop > fileEnd ? OUTSIDE : 0);
    const firstSync = sync && row === 0 && sync[0] !== 0 ? -1 : 0;
    push(
      fragments, dataStart, dataStop - dataStart, UNKNOWN, dataStart, dataStop, begun, dts - begun, ctsMin, ctsEnd,
      start, stop - start, firstSync, flags,
    );
  });
  return { fragments, sync: syncOf(tables, fragments) };
}

function syncOf({ count, durations, offsets, sync }, fragments) {
  const dtsOf = timesOf(durations);
  let numbers = sync;
  if (!numbers) {
    const edges = [...durations.stop.slice(0, -1), ...(offsets?.stop.slice(0, -1) ?? [])];
    numbers = [...new Set([0, ...edges])].sort((a, b) => a - b);
  }
  const dts = numbers.map(dtsOf);
  const offsetAt = offsets ? cursor(offsets) : () => [0];
  const durationAt = cursor(durations);
  const counts = numbers.map((one, row) => (sync ? 1 : (numbers[row + 1] ?? count) - one));
  const table = {
    cts: numbers.map((one, row) => dts[row] + offsetAt(one)[0]),
    dts,
    step: numbers.map((one, row) => (counts[row] > 1 ? durationAt(one)[0] : 0)),
    count: counts,
    sample: numbers,
    sample_step: numbers.map(() => 1),
    fragment: numbers.map((one) => holding(fragments.sample_start, one)),
  };
  return joinedSync([table], fragments.sample_start);
}

/** Samples a to b, one after the other: `write(offset, size, dts, cts, duration, sync)`. */
export function eachSample(tables, a, b, write) {
  const { durations, offsets, sync, before } = tables;
  const durationAt = cursor(durations);
  const offsetAt = offsets ? cursor(offsets) : () => [0];
  let dts = timesOf(durations)(a);
  let mark = sync ? holding(sync, a - 1) + 1 : 0;
  for (const { first, stop, place } of chunksOf(tables, a, b)) {
    let at = place;
    for (let sample = first; sample < stop; sample++) {
      const [bytes, duration] = [before(sample + 1) - before(sample), durationAt(sample)[0]];
      const isSync = !sync || sync[mark] === sample;
      if (sync && isSync) mark++;
      write(at, bytes, dts, dts + offsetAt(sample)[0], duration, isSync);
      at += bytes;
      dts += duration;
    }
  }
}
