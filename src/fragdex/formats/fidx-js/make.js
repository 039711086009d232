/**
 * Makes the index of an MP4 where there is no server: in a page, a worker, at the edge, in node.
 *
 *     import { makeIndex } from "./make.js";
 *     import { FrameIndex } from "./fidx.js";
 *     const index = new FrameIndex(await makeIndex(file));
 *
 * The tables are those of `fragdex.index(FILE, exact=True)`. What this module does not decide as the
 * library does, it refuses: IndexingError says what and where. No dependency, no build step.
 */
import { IndexingError } from "./boxes.js";
import { TABLES, crc32 } from "./fidx.js";
import { Fragments, STRUCTURE, layOut, place, placeByRule, trackTables } from "./fragments.js";
import { fragmentGroups, movieGroups } from "./groups.js";
import { readMoov } from "./moov.js";
import { UNKNOWN, VIRTUAL, eachSample, emptyFragments, readSampleTables, virtualFragments } from "./progressive.js";
import { endOf, scan } from "./scan.js";
import { openSource } from "./sources.js";
import { emptySync, emptyTable, joinedSync, push } from "./sync.js";

export { IndexingError } from "./boxes.js";
export { openSource } from "./sources.js";

const [BETWEEN, BESIDE] = [128, 256];
const MOST_SAMPLES = 2 ** 22; // of a track: a day of pictures
const MOST_KEPT = 2 ** 28; // bytes of moofs that wait for their moov
const MOST_LOOKED_AT = 1024;
const ALWAYS = ["ftyp", "moov", "moof", "mdat", "mfra"];

/**
 * The index of a file, as the bytes of a `.fidx`.
 *
 * `what`: an ArrayBuffer, Uint8Array, Blob, File or URL. `options`: `samples`: the kinds of tracks
 * that have a table of samples, which `FrameIndex.frames` needs (["video"], unless it is given; true: all,
 * false: none); `init`: the initialization segment of a file that is only segments; `headers`, `signal` and `fetch` for a URL; `onProgress(position, size)`.
 *
 * @returns {Promise<ArrayBuffer>} which a worker can transfer
 */
export async function makeIndex(what, options = {}) {
  const { samples = ["video"] } = options;
  const withSamples = ({ kind }) => samples === true || (samples || []).includes(kind);
  const source = openSource(what, options);
  const waiting = { moofs: [], bytes: 0 };
  let [brands, moov, fragments] = [[]];
  const govern = (movie) => {
    moov = movie;
    const chosen = moov.tracks.map(({ info }) => info).filter(withSamples);
    fragments = new Fragments(moov.defaults, new Set(chosen.map(({ id }) => id)), source.size ?? 0);
  };
  if (options.init !== undefined) govern(await readInit(options.init, options));
  const take = (type, bytes, offset) => {
    if (type === "ftyp") brands.push([offset, offset + bytes.length]);
    else if (type === "moov") {
      if (moov) throw new IndexingError("the file has a second moov", type, offset);
      govern({ ...readMoov(bytes, offset), range: [offset, offset + bytes.length] });
      for (const [early, at] of waiting.moofs.splice(0)) fragments.add(early, at);
    } else if (fragments) fragments.add(bytes, offset);
    else {
      waiting.moofs.push([bytes, offset]);
      waiting.bytes += bytes.length;
      if (waiting.bytes > MOST_KEPT) throw new IndexingError("there are too many moofs before the moov", type, offset);
    }
  };
  const passed = await scan(source, take, options.onProgress);
  if (!moov) {
    const [, offset] = waiting.moofs[0] ?? [];
    throw new IndexingError("there is no moov", offset === undefined ? undefined : "moof", offset ?? passed.position);
  }
  const found = assemble(moov, fragments, passed);
  return write(source, passed, brands, moov, found, withSamples);
}

/** The movie of an initialization segment: it names no samples of another file. */
async function readInit(what, options) {
  let movie;
  await scan(openSource(what, options), (type, bytes, offset) => {
    if (type === "moov") movie ??= readMoov(bytes, offset);
  });
  if (!movie) throw new IndexingError("the initialization segment has no moov");
  return { ...movie, tracks: movie.tracks.map((track) => ({ ...track, stbl: undefined })) };
}

/** The tables of all tracks, and how far the file is whole. */
function assemble(moov, fragments, passed) {
  const layout = layOut(passed.tops);
  const virtual = moov.tracks.map((track) => ofMoov(track, moov, passed.size, layout));
  let trafs = fragments.trafs;
  const end = endOf(passed, layout, (moof) => wantsData(trafs.filter((one) => one.moof === moof), layout));
  if (end.moofs < layout.moof.length) trafs = trafs.filter((one) => one.moof < end.moofs);
  place(trafs, layout);
  const byTrack = new Map(moov.tracks.map(({ info }) => [info.id, []]));
  for (const traf of trafs) {
    const mine = byTrack.get(traf.track);
    if (!mine) throw new IndexingError(`the moov has no track ${traf.track}`, "moof/traf/tfhd", traf.origin);
    mine.push(traf);
  }
  const odd = passed.tops.offset.filter((_, row) => {
    const type = passed.tops.type[row];
    return !ALWAYS.includes(type) && !STRUCTURE.has(type);
  });
  const tracks = moov.tracks.map((track, number) => {
    const mine = byTrack.get(track.info.id);
    const made = tablesOf(track, mine, virtual[number], layout);
    mark(made.fragments, odd, fragments.saysMore);
    made.shift = settledShift(track.info, moov.timescale, made);
    return made;
  });
  const isShort = virtual.some((one) => one?.fragments.data_stop.some((stop) => stop > passed.size));
  const hasVirtual = tracks.some(({ fragments: rows }) => rows.flags[0] & VIRTUAL);
  const method = !hasVirtual ? "boxes" : layout.moof.length ? "stbl+boxes" : "stbl";
  return { tracks, method, complete: end.complete && !isShort, resume: end.resume };
}

/** The samples that the moov names of a track; undefined where it names none. */
function ofMoov({ info, stbl, entries, isMixed, refuseElsewhere }, moov, fileEnd) {
  if (!stbl) return undefined;
  const tables = readSampleTables(stbl, entries, fileEnd);
  if (!tables) return undefined;
  refuseElsewhere();
  if (isMixed) stbl.refuse("some samples are encrypted and others clear");
  const sharing = moov.tracks.filter((one) => one.stbl).length;
  return { ...virtualFragments(tables, info.timescale, fileEnd, sharing), tables, groups: movieGroups(stbl) };
}

/** Whether trafs of the last moof name samples after it. */
function wantsData(trafs, layout) {
  placeByRule(trafs, layout);
  const runs = trafs.flatMap(({ from, runs }) => runs.map(({ size, relative }) => [size, from + relative]));
  return runs.some(([size, start]) => size > 0 && start >= layout.moof.at(-1));
}

function tablesOf({ info, entries, stbl, refuseElsewhere }, trafs, virtual, layout) {
  if (trafs.length) {
    refuseElsewhere();
    if (entries > 1) throw new IndexingError(`fragments of a track with ${entries} sample entries`, "moof/traf", trafs[0].origin);
  }
  const rows = virtual?.fragments.dts.length ?? 0;
  const last = rows - 1;
  const state = {
    rows,
    samples: virtual?.tables.count ?? 0,
    dts: rows ? virtual.fragments.dts[last] + virtual.fragments.duration[last] : 0,
  };
  const own = trafs.length ? trackTables(trafs, layout, state) : { fragments: emptyFragments(), sync: emptySync(), runs: [] };
  let sync = joinedSync([own.sync]);
  let { fragments } = own;
  if (virtual) {
    fragments = Object.fromEntries(Object.keys(fragments).map((name) => [name, virtual.fragments[name].concat(fragments[name])]));
    sync = trafs.length ? joinedSync([virtual.sync, sync], fragments.sample_start) : virtual.sync;
  }
  const groups = [...(virtual?.groups ?? []), ...fragmentGroups(trafs, stbl)];
  const samples = state.samples + trafs.reduce((sum, one) => sum + one.samples, 0);
  return {
    info, fragments, sync, groups, samples, virtual,
    eachSample(write) {
      if (virtual) eachSample(virtual.tables, 0, virtual.tables.count, write);
      for (let { run, start, dts } of own.runs) {
        run.rows((size, duration, offset, isSync) => {
          write(start, size, dts, dts + offset, duration, isSync);
          [start, dts] = [start + size, dts + duration];
        });
      }
    },
  };
}

/** Marks the rows next to which content stands (docs/index-format.md, flags). */
function mark({ flags, moof_offset }, odd, saysMore) {
  if (!flags.length) return;
  const real = moof_offset.findIndex((one) => one !== UNKNOWN);
  if (real < 0) {
    if (odd.length) flags[flags.length - 1] |= BETWEEN;
    return;
  }
  if (saysMore) for (let row = real; row < flags.length; row++) flags[row] |= BESIDE;
  let row = real;
  for (const at of odd) {
    while (row < flags.length - 1 && moof_offset[row] < at) row++;
    flags[row] |= BETWEEN;
  }
}

/**
 * Ticks from composition to presentation time as a fraction (8.6.6).
 *
 * Of a track without fragments whose one edit has a duration and begins inside a picture, that
 * picture is no frame, and the next one stands where the edit begins.
 */
function settledShift(info, movieScale, { fragments, virtual }) {
  const scale = BigInt(info.timescale);
  let delay = 0n;
  const shown = [];
  for (const { duration, media_time: begin, rate } of info.edits) {
    const isTimed = duration > 0 && movieScale > 0;
    if (begin >= 0) shown.push({ begin, duration, rate, isTimed });
    else if (!shown.length) delay += BigInt(duration);
    if (begin >= 0 && !isTimed) break;
  }
  const under = delay && movieScale ? BigInt(movieScale) : 1n;
  let over = movieScale ? delay * scale : 0n;
  const [first] = shown;
  if (first) over -= BigInt(first.begin) * under;
  const one = first && settledBegin(info, movieScale, shown, fragments, virtual);
  if (one !== undefined) over -= BigInt(one - first.begin) * under;
  const divisor = gcd(over < 0n ? -over : over, under);
  return [Number(over / divisor), Number(under / divisor)];
}

const gcd = (a, b) => (b ? gcd(b, a % b) : a);

/** Where the first picture after the begin of an edit stands, if that begins inside of one. */
function settledBegin(info, movieScale, shown, { cts_min, cts_end, flags, sample_start, sample_count }, virtual) {
  const [{ begin, duration, rate, isTimed }] = shown;
  if (info.kind !== "video" || !cts_min.length || !info.timescale || !flags.every((one) => one & VIRTUAL)) return undefined;
  if (shown.length > 1 || !rate || !isTimed) return undefined;
  const [factor, unit] = [BigInt(rate * 65536), BigInt(movieScale) * 65536n];
  const twice = 2n * BigInt(duration) * factor * BigInt(info.timescale) + unit;
  const length = twice / (2n * unit) - (twice < 0n && twice % (2n * unit) ? 1n : 0n);
  const stop = begin + Number(length);
  if (cts_min.every((one) => one >= begin)) return undefined;
  let next = Infinity;
  let looked = 0;
  cts_min.forEach((least, row) => {
    if (least > begin) next = Math.min(next, least);
    if (least > begin || cts_end[row] < begin || looked++ >= MOST_LOOKED_AT) return;
    const start = sample_start[row];
    eachSample(virtual.tables, start, start + sample_count[row], (_, __, ___, cts) => {
      if (cts >= begin) next = Math.min(next, cts);
    });
  });
  return next === Infinity || next === begin || next >= stop ? undefined : next;
}

// ---- writing

const NULLABLE = ["moof_offset", "data_start", "data_stop"];

function write(source, passed, brands, moov, { tracks, method, complete, resume }, withSamples) {
  const columns = new Columns();
  const { range } = moov;
  const before = brands.filter(([start]) => start <= range?.[0]);
  const brand = before.at(-1) ?? brands[0];
  const movie = {
    timescale: moov.timescale, duration: moov.duration, fragmented: moov.fragmented,
    tracks: moov.tracks.map(({ info }) => info),
  };
  const plain = {
    source: { name: source.name ?? "", size: passed.size, etag: source.etag ?? null },
    how: { method, exact: true, requests: source.requests ?? 0, bytes_read: source.bytesRead ?? 0 },
    complete,
    resume_offset: resume,
    findings: [],
    periods: [{
      number: 0,
      init: range ? joined([...(brand ? [brand] : []), range]) : [],
      movie,
      tracks: tracks.map((track, number) => ({
        info: number, shift: track.shift, exact: true, tables: tablesIn(columns, track, withSamples(track.info)),
      })),
    }],
  };
  return columns.file(plain);
}

function joined(ranges) {
  ranges.sort((a, b) => a[0] - b[0]);
  return ranges.length > 1 && ranges[0][1] === ranges[1][0] ? [[ranges[0][0], ranges[1][1]]] : ranges;
}

function tablesIn(columns, track, withSamples) {
  const table = (name, rows) => ({
    rows: Object.values(rows)[0].length,
    columns: Object.entries(TABLES[name]).map(([column, type]) => columns.add(column, type, rows[column])),
  });
  const found = { fragments: table("fragments", track.fragments), sync: table("sync", track.sync) };
  if (withSamples) {
    if (track.samples > MOST_SAMPLES) throw new IndexingError(`${track.samples} samples of track ${track.info.id} are too many: leave them out`);
    const rows = Object.fromEntries(Object.keys(TABLES.samples).map((name) => [name, new Float64Array(track.samples)]));
    const list = Object.values(rows);
    let row = 0;
    track.eachSample((...values) => {
      list.forEach((column, at) => (column[row] = values[at]));
      row++;
    });
    found.samples = table("samples", rows);
  }
  if (track.groups.length) {
    const rows = emptyTable("groups");
    for (const [type, ...rest] of track.groups) {
      push(rows, Array.from(type).reduce((sum, letter) => sum * 256 + letter.charCodeAt(0), 0), ...rest.slice(0, 3));
    }
    found.groups = table("groups", rows);
  }
  return found;
}

const aligned = (position) => Math.ceil(position / 64) * 64;

/** Columns of a `.fidx`, and the file that they come to. */
class Columns {
  _parts = [];
  _size = 0;

  /** The entry of a column of numbers; null stands for what is not known. */
  add(name, type, values) {
    let bytes;
    if (type === "<u4") bytes = Uint32Array.from(values);
    else if (type === "|b1") bytes = Uint8Array.from(values);
    else {
      const view = new DataView((bytes = new Uint8Array(8 * values.length)).buffer);
      for (let row = 0; row < values.length; row++) this._write(view, 8 * row, values[row], name);
    }
    bytes = new Uint8Array(bytes.buffer);
    const offset = this._size;
    this._parts.push([offset, bytes]);
    this._size += aligned(bytes.length);
    return [name, type, offset, crc32(bytes)];
  }

  _write(view, at, value, name) {
    if (value === UNKNOWN && NULLABLE.includes(name)) view.setInt32(at + 4, -(2 ** 31), true);
    else if (Number.isSafeInteger(value)) {
      // Two halves: BigInts would take most of the time.
      view.setUint32(at, value, true);
      view.setInt32(at + 4, Math.floor(value / 2 ** 32), true);
    } else throw new IndexingError(`the file has numbers that cannot be counted exactly here (${name})`);
  }

  file(plain) {
    const escaped = JSON.stringify(plain).replace(/[^\x00-\x7f]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
    const text = new TextEncoder().encode(escaped);
    const start = aligned(64 + text.length);
    const file = new Uint8Array(start + this._size);
    const view = new DataView(file.buffer);
    file.set([0x89, 0x46, 0x44, 0x58, 0x0d, 0x0a, 0x1a, 0x0a]);
    view.setUint16(8, 1, true);
    view.setUint32(12, 0x0a0b0c0d, true);
    [file.length, text.length, start].forEach((size, n) => view.setBigUint64(16 + 8 * n, BigInt(size), true));
    file.set(text, 64);
    view.setUint32(60, crc32(text, crc32(file.subarray(0, 60))), true);
    for (const [offset, bytes] of this._parts) file.set(bytes, start + offset);
    return file.buffer;
  }
}
