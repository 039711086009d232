/**
 * Reads `.fidx` files (docs/index-format.md) in a browser: seeks, byte ranges of a span of time, and,
 * where the file has samples, frames by number and time as fragdex.Frames has them. No dependency, no
 * build step.
 *
 *     import { FrameIndex } from "./fidx.js";
 *     const index = await FrameIndex.load("movie.fidx");
 *     index.seek(90.5), index.span(90, 120)
 *     const frames = index.frames();
 *     frames.length, frames.time(7), frames.numberAt(1.5), frames.range(7), frames.group(7)
 */

const MAGIC = [0x89, 0x46, 0x44, 0x58, 0x0d, 0x0a, 0x1a, 0x0a];
const ITEM_SIZES = { "<i8": 8, "<u4": 4, "|b1": 1 };
const VIRTUAL = 1; // a flag of a fragment: its samples are in the moov

/** A `.fidx` that is damaged, of a later version, or without what the call needs. */
export class FrameIndexError extends Error {
  name = "FrameIndexError";
}

export class FrameIndex {
  /** What the file says of itself: `name`, `size`, `etag` and so on of the video. */
  source;
  /** Tracks: `id`, `kind`, `codec`, `width`, `height`, `timescale`, `rotation`, `mirrored`, `period`. */
  tracks;

  /** Fetch a `.fidx`; `options` are those of `fetch`. */
  static async load(url, options) {
    const response = await fetch(url, options);
    if (!response.ok) throw new FrameIndexError(`${url}: HTTP status ${response.status}`);
    return new FrameIndex(await response.arrayBuffer());
  }

  /** @param {ArrayBuffer} buffer the bytes of a `.fidx` */
  constructor(buffer) {
    const view = new DataView(buffer);
    if (buffer.byteLength < 64 || MAGIC.some((byte, at) => view.getUint8(at) !== byte)) {
      throw new FrameIndexError("this is no .fidx file");
    }
    const major = view.getUint16(8, true);
    if (major !== 1) throw new FrameIndexError(`this .fidx has version ${major}; 1 can be read`);
    if (view.getUint32(12, true) !== 0x0a0b0c0d) throw new FrameIndexError("the .fidx file is damaged");
    const size = whole(view.getBigUint64(16, true));
    const textSize = whole(view.getBigUint64(24, true));
    const first = whole(view.getBigUint64(32, true));
    if (size !== buffer.byteLength || first !== Math.ceil((64 + textSize) / 64) * 64 || first > size) {
      throw new FrameIndexError("the .fidx file is cut off, or its parts do not fit together");
    }
    const text = new Uint8Array(buffer, 64, textSize);
    const sum = crc32(text, crc32(new Uint8Array(buffer, 0, 60)));
    if (sum !== view.getUint32(60, true)) throw new FrameIndexError("the .fidx file is damaged");
    this._columns = { buffer, first };
    try {
      const plain = JSON.parse(new TextDecoder().decode(text));
      this.source = plain.source;
      this._periods = plain.periods;
      checkPlain(plain, size - first);
    } catch (error) {
      if (error instanceof FrameIndexError) throw error;
      throw new FrameIndexError(`the JSON part of the .fidx is damaged (${error.message})`);
    }
    this.tracks = this._periods.flatMap((period, number) =>
      (period.tracks ?? []).map((track) => {
        const info = typeof track.info === "number" ? period.movie.tracks[track.info] : track.info;
        const { id, kind, codec, width, height, timescale, rotation = 0, mirrored = false } = info;
        const shown = { id, kind, codec, width, height, timescale, rotation, mirrored, period: number };
        // not counted when a track is printed or copied
        Object.defineProperty(shown, "_parts", { value: { track, info, period } });
        return shown;
      }),
    );
  }

  /** Byte ranges of the initialization segment (ftyp and moov) of a period: `[start, stop)`. */
  init(period = 0) {
    return (this._periods[period]?.init ?? []).map(([start, stop]) => ({ start, stop }));
  }

  /**
   * Where decoding must start to show a moment of a track: the last sync sample at or before it.
   *
   * `seconds`: presentation time, taken as the exact number that it is. `track`: track_ID, or one of
   * `tracks`; left out: the first with pictures, else the first that can be seeked in. Gives the row
   * of its `fragment` and the bytes of that (`start`, `stop`), the `sample` (null: the index has only
   * fragments), `cts` and `dts` in ticks, `time` in seconds, and `clamped`: the moment is before the
   * first sync sample, or at or after the end.
   */
  seek(seconds, { track } = {}) {
    const able = this.tracks.filter(canSeek);
    const found =
      track === undefined
        ? (able.find((one) => one.kind === "video") ?? able[0])
        : this.tracks.find((one) => one === track || one.id === track);
    if (!found) throw new FrameIndexError("there is no such track to seek in");
    return this._tables(found).seek(seconds);
  }

  /**
   * The bytes that play the span from `start` to `stop` (exclusive; Infinity: to the end), next to
   * those of `init`: sorted, `[{ start, stop }]`. `tracks`: as `seek` takes one; left out: all.
   */
  span(start, stop, { tracks } = {}) {
    if (!(stop >= start)) throw new RangeError(`the span ends (${stop}) before it starts (${start})`);
    const chosen = this.tracks.filter((one) =>
      tracks === undefined ? canSeek(one) : tracks.some((named) => named === one || named === one.id),
    );
    const periods = new Set(chosen.map((one) => one.period));
    const beside = this.tracks.filter((one) => periods.has(one.period)).map((one) => this._tables(one));
    return closed(
      merged(chosen.flatMap((one) => this._tables(one).rowsOf(start, stop))),
      beside,
    );
  }

  _tables(track) {
    track._parts.tables ??= new Tables(this, track);
    return track._parts.tables;
  }

  /**
   * The frames of a track.
   *
   * `track`: track_ID, or one of `tracks`; left out: the first with pictures. `order`:
   * "presentation" or "decode". `hidden`: whether what the edit list hides has numbers, too.
   */
  frames({ track, order = "presentation", hidden = false } = {}) {
    const pictures = this.tracks.filter((one) => one.kind === "video" && rows(one, "fragments"));
    const found =
      track === undefined
        ? (pictures.find((one) => rows(one, "sync")) ?? pictures[0])
        : this.tracks.find((one) => one === track || one.id === track);
    if (!found) throw new FrameIndexError("there is no such track of pictures");
    if (!rows(found, "samples") && rows(found, "fragments")) {
      throw new FrameIndexError("the .fidx has no samples: fragdex index FILE --samples");
    }
    return new Frames(this, found, order, hidden);
  }

  /** Columns of a table of a track, by name: arrays of numbers. */
  _table(track, table, names = Object.keys(TABLES[table])) {
    return Object.fromEntries(names.map((name) => [name, this._column(track, table, name)]));
  }

  _column(track, table, name) {
    const places = track._parts.track.tables[table];
    const entry = places?.columns.find((one) => one[0] === name);
    if (!entry) throw new FrameIndexError(`the .fidx has no column ${table}.${name}`);
    const [, type, offset] = entry;
    const { buffer, first } = this._columns;
    const start = first + offset;
    if (type === "|b1") return new Uint8Array(buffer, start, places.rows);
    if (type === "<u4") return new Uint32Array(buffer, start, places.rows);
    return Float64Array.from(new BigInt64Array(buffer, start, places.rows), whole);
  }
}

/** The fragments and sync samples of a track. */
class Tables {
  constructor(index, track) {
    this._track = track;
    this.fragments = index._table(track, "fragments", [
      "offset", "size", "moof_offset", "cts_min", "cts_end", "sample_start", "sample_count",
    ]);
    this._sync = index._table(track, "sync");
    checkTables(this.fragments, this._sync, track._parts.track.tables.samples?.rows);
    const { cts_min, cts_end, sample_count } = this.fragments;
    this._end = cts_end.reduce((end, one, row) => (sample_count[row] ? Math.max(end, one) : end), UNKNOWN);
    // for each row the least time of it and of all after it, which only rise
    this._starts = cts_min.map((one) => (one === UNKNOWN ? 2 ** 63 : one));
    for (let row = this._starts.length - 2; row >= 0; row--) {
      this._starts[row] = Math.min(this._starts[row], this._starts[row + 1]);
    }
  }

  seek(seconds) {
    if (Number.isNaN(seconds)) throw new RangeError("the time is not a number");
    if (!this._track.timescale) throw new FrameIndexError("the track has no timescale");
    const sync = this._sync;
    if (!sync.cts.length) throw new FrameIndexError("the track has no sync sample to seek to");
    const ticks = mediaTicks(this._track, seconds);
    const found = after(sync.cts, (cts) => cts <= ticks) - 1;
    const run = Math.max(found, 0);
    const [first, step] = [sync.cts[run], sync.step[run]];
    const last = sync.count[run] - 1;
    let turn = ticks < first ? 0 : step ? Math.floor((ticks - first) / step) : last;
    turn = Math.min(turn, last);
    if (turn * step > ticks - first && turn) turn--;
    let [sample, row] = [sync.sample[run], sync.fragment[run]];
    if (turn) {
      sample += turn * sync.sample_step[run];
      row = after(this.fragments.sample_start, (start) => start <= sample) - 1;
    }
    const { offset, size, cts_end, sample_count } = this.fragments;
    if (!(row >= 0 && row < offset.length)) {
      throw new FrameIndexError("the sync samples of the .fidx do not fit its fragments");
    }
    let clamped = found < 0;
    if (!clamped && (cts_end[row] <= ticks || !sample_count[row])) {
      clamped = this._end !== UNKNOWN && ticks >= this._end;
    }
    const cts = first + turn * step;
    return {
      fragment: row, start: offset[row], stop: offset[row] + size[row],
      sample: sample === UNKNOWN ? null : sample, cts,
      dts: sync.dts[run] === UNKNOWN ? null : sync.dts[run] + turn * step,
      time: secondsOf(this._track, cts), clamped,
    };
  }

  /** The bytes of the fragments that play a span, row by row. */
  rowsOf(start, stop) {
    const { fragment, cts } = this.seek(start);
    // a sample that starts exactly at `stop` is not played any more
    const most = Math.max(cts, -1 - mediaTicks(this._track, -stop, -1n));
    const behind = Math.max(fragment + 1, after(this._starts, (one) => one <= most));
    const found = [];
    for (let row = fragment; row < behind; row++) {
      if (this.fragments.sample_count[row]) found.push(this.bytes(row));
    }
    return found;
  }

  bytes(row) {
    const start = this.fragments.offset[row];
    return { start, stop: start + this.fragments.size[row] };
  }
}

const UNKNOWN = -(2 ** 63);
const UNKNOWN_BIG = -(2n ** 63n);
const MOST_TURNS = 8; // times that ranges are widened one by one

/** Sorted ranges that neither overlap nor touch; with `apart`, that do not overlap. */
function merged(ranges, apart = false) {
  const found = [];
  for (const { start, stop } of ranges.toSorted((a, b) => a.start - b.start)) {
    const last = found.at(-1);
    if (last && (apart ? start < last.stop : start <= last.stop)) last.stop = Math.max(last.stop, stop);
    else if (start < stop) found.push({ start, stop });
  }
  return found;
}

/** Ranges with what the moofs in them need, which may lie after other moofs. */
function closed(ranges, tables) {
  const total = (all) => all.reduce((sum, { start, stop }) => sum + stop - start, 0);
  for (let turn = 0; turn < MOST_TURNS; turn++) {
    const more = [];
    for (const one of tables) {
      const { moof_offset, sample_count } = one.fragments;
      for (const part of ranges) {
        const last = after(moof_offset, (moof) => moof < part.stop);
        for (let row = after(moof_offset, (moof) => moof < part.start); row < last; row++) {
          const bytes = one.bytes(row);
          const out = bytes.start < part.start || bytes.stop > part.stop;
          if (out && sample_count[row]) more.push(bytes);
        }
      }
    }
    const wider = merged([...ranges, ...more]);
    if (total(wider) === total(ranges)) return ranges;
    ranges = wider;
  }
  // Each turn reaches into the next fragment: all that hang together are taken at once.
  const rowsOfAll = tables.flatMap((one) => Array.from(one.fragments.offset, (_, row) => one.bytes(row)));
  const groups = merged(rowsOfAll, true);
  const touched = groups.filter(({ start, stop }) =>
    ranges.some((part) => start < part.stop && stop > part.start),
  );
  return merged([...ranges, ...touched]);
}

function canSeek(track) {
  return track.timescale > 0 && rows(track, "sync") > 0;
}

const isCount = (value) => Number.isSafeInteger(value) && value >= 0;
const isSmall = (value) => isCount(value) && value < 2 ** 32;
const isPlain = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const orNone = (is) => (value) => value === undefined || value === null || is(value);
// with half of a surrogate pair it is invalid
const isText = (value) => typeof value === "string" && !/\p{Surrogate}/u.test(value);
const isRange = (value) =>
  Array.isArray(value) && value.length === 2 && value.every(isCount) && value[0] <= value[1];
const isEdit = ({ duration, media_time, rate = 1 }) =>
  isCount(duration) && Number.isSafeInteger(media_time) && media_time >= -1 && Number.isFinite(rate);
const isEditList = (value) => Array.isArray(value) && value.every((one) => isPlain(one) && isEdit(one));

/** What each member of the JSON part that is used here has to be; those left out are null. */
const MEMBERS = {
  source: { size: orNone(isCount) },
  movie: { timescale: isSmall },
  info: {
    id: (value) => value === -1 || isSmall(value), kind: isText, codec: orNone(isText), timescale: isSmall, width: orNone(isSmall),
    height: orNone(isSmall), rotation: orNone(isSmall), mirrored: orNone((value) => typeof value === "boolean"),
    edits: orNone(isEditList),
  },
};

function needs(right, what) {
  if (!right) throw new FrameIndexError(`the .fidx is damaged: ${what}`);
}

function needsMembers(kind, object, what) {
  needs(isPlain(object), what);
  for (const [name, is] of Object.entries(MEMBERS[kind])) needs(is(object[name]), `${name} of ${what}`);
}

/** Refuses a JSON part whose members are of another type or out of bounds, and columns outside of the file. */
function checkPlain({ source, periods }, space) {
  needsMembers("source", source, "the source");
  needs(Array.isArray(periods) && periods.every(isPlain), "periods");
  let left = space;
  for (const [number, { number: own, init, movie, tracks }] of periods.entries()) {
    const of = `of period ${number}`;
    needs(own === number, `the number ${of}`);
    needs(orNone((list) => Array.isArray(list) && list.every(isRange))(init), `init ${of}`);
    needsMembers("movie", movie, `the movie ${of}`);
    needs(Array.isArray(movie.tracks) && Array.isArray(tracks) && tracks.every(isPlain), `the tracks ${of}`);
    for (const info of movie.tracks) needsMembers("info", info, `a track ${of}`);
    for (const { info, shift, tables } of tracks) {
      if (isPlain(info)) needsMembers("info", info, `a track ${of}`);
      else needs(isCount(info) && info < movie.tracks.length, `info of a track ${of}`);
      const [over, under] = Array.isArray(shift) && shift.length === 2 ? shift : [];
      needs(Number.isSafeInteger(over) && isSmall(under) && under > 0, `the shift of a track ${of}`);
      needs(isPlain(tables), `the tables of a track ${of}`);
      for (const [table, names] of Object.entries(TABLES)) {
        const { rows, columns = [] } = tables[table] ?? OPTIONAL[table] ?? {};
        needs(isCount(rows), `the rows of ${table}`);
        for (const [name, type] of Object.entries(tables[table] ? names : {})) {
          const entries = columns.filter((one) => one[0] === name);
          const [, found, offset] = entries[0] ?? [];
          const bytes = rows * ITEM_SIZES[type];
          const fits = isCount(offset) && offset % 64 === 0 && offset + bytes <= space && (left -= bytes) >= 0;
          needs(entries.length === 1 && found === type && fits, `the place of the column ${table}.${name}`);
        }
      }
    }
  }
}

const numbers = (...names) => Object.fromEntries(names.map((name) => [name, "<i8"]));
/** The columns of each table, in the order of docs/index-format.md, and their types. */
export const TABLES = {
  fragments: {
    ...numbers("offset", "size", "moof_offset", "data_start", "data_stop", "dts", "duration"),
    ...numbers("cts_min", "cts_end", "sample_start", "sample_count", "sync"), flags: "<u4",
  },
  sync: numbers("cts", "dts", "step", "count", "sample", "sample_step", "fragment"),
  samples: { ...numbers("offset", "size", "dts", "cts", "duration"), sync: "|b1" },
  groups: { grouping_type: "<u4", ...numbers("sample_start", "sample_count", "value") },
};
const OPTIONAL = { samples: { rows: 0 }, groups: { rows: 0 } };

/** Columns that may hold "unknown". */
const NULLABLE = {
  fragments: ["moof_offset", "cts_min", "cts_end", "sample_start", "sample_count"],
  sync: ["dts", "sample"],
  samples: [],
};
const SIGNED = ["dts", "cts", "cts_min", "cts_end", "duration"];

/** Refuses columns with numbers that no file has (docs/index-format.md, Columns). */
function checkBounds(table, columns) {
  for (const [name, values] of Object.entries(columns)) {
    const [isNullable, isSigned] = [NULLABLE[table].includes(name), SIGNED.includes(name)];
    const isWrong = (value) => (value === UNKNOWN ? !isNullable : value < 0 && !isSigned);
    const isFlag = TABLES[table][name] === "|b1";
    needs(!values.some((value) => isWrong(value) || (isFlag && value > 1)), `no file has the numbers of ${table}.${name}`);
  }
}

/** Refuses tables that contradict each other: what is used of them, and no more. */
function checkTables(fragments, sync, sampleRows) {
  checkBounds("fragments", fragments);
  checkBounds("sync", sync);
  const { sample_start: starts, sample_count: counts } = fragments;
  const isNumbered = !starts.includes(UNKNOWN) && !counts.includes(UNKNOWN);
  const total = isNumbered && starts.length ? exact(starts.at(-1) + counts.at(-1)) : 0;
  needs(
    !isNumbered || starts.every((one, row) => one === (row ? starts[row - 1] + counts[row - 1] : 0)),
    "sample numbers do not count the samples before",
  );
  needs(
    sampleRows === undefined || (isNumbered && total === sampleRows),
    "there are more or fewer samples than the fragments say",
  );
  let syncs = 0;
  sync.cts.forEach((cts, run) => {
    const [count, sample, row, step] = ["count", "sample", "fragment", "sample_step"].map((name) => sync[name][run]);
    const [isKnown, span] = [sample !== UNKNOWN, sync.step[run] * (count - 1)];
    exact(cts + span);
    if (sync.dts[run] !== UNKNOWN) exact(sync.dts[run] + span);
    const isInside = sample >= starts[row] && sample - starts[row] < counts[row];
    const isPlaced = !isKnown || isInside || starts[row] === UNKNOWN || counts[row] === UNKNOWN;
    const isInOrder = count >= 1 && (!run || cts >= sync.cts[run - 1]);
    const isSaid = count === 1 || (isNumbered && isKnown && step >= 1);
    const ends = !isNumbered || !isKnown || sample + step * (count - 1) < total;
    needs(row < starts.length && isInOrder && isSaid && isPlaced && ends, `row ${run} of the sync samples`);
    syncs += count;
  });
  needs(!isNumbered || syncs <= total, "there are more sync samples than samples");
}

/** The frames of a track, numbered from 0. Made by `FrameIndex.frames`. */
export class Frames {
  /** How many there are. */
  length;
  /** Ticks a second, of `ticks` and `durations`. */
  timescale;
  /** When each frame is shown and for how long, in ticks: exact whole numbers. */
  ticks;
  durations;
  /** The sample of each frame, counted in decode order. */
  samples;

  constructor(index, track, order, hidden) {
    this.track = track;
    const columns = index._table(track, "samples");
    checkBounds("samples", columns);
    this._rows = columns;
    const { info, track: plain, period } = track._parts;
    const [numerator, denominator] = plain.shift.map(BigInt);
    const scale = whole(denominator);
    const end = index.source.size ?? Infinity;
    const flags = index._column(track, "fragments", "flags");
    const { offset, size, cts, duration, sync } = columns;
    const within = hidden
      ? Array.from(cts, () => true)
      : inEdits(info, period.movie.timescale, plain.shift, flags, cts, duration);
    const shown = [];
    for (let n = 0; n < cts.length; n++) {
      if (size[n] > 0 && offset[n] + size[n] <= end && within[n]) shown.push(n);
    }
    const byTime = shown.toSorted((a, b) => cts[a] - cts[b] || a - b);
    const last = byTime.at(-1);
    const until = byTime.map((sample, place) =>
      place + 1 < byTime.length ? cts[byTime[place + 1]] : cts[last] + Math.max(duration[last], 1),
    );
    const decode = order === "decode";
    const places = byTime.map((_, place) => place);
    if (decode) places.sort((a, b) => byTime[a] - byTime[b]);
    this.length = byTime.length;
    this.timescale = info.timescale * scale;
    this.samples = places.map((place) => byTime[place]);
    this.ticks = places.map((place) => exact(cts[byTime[place]] * scale + whole(numerator)));
    this.durations = places.map((place) => (until[place] - cts[byTime[place]]) * scale);
    this._byTime = byTime;
    this._numbers = new Array(places.length);
    places.forEach((place, number) => (this._numbers[place] = number));
    this._syncs = [];
    sync.forEach((is, n) => is && this._syncs.push(n));
  }

  /** When a frame is shown, in seconds. */
  time(number) {
    return this.ticks[this._checked(number)] / this.timescale;
  }

  /** For how long a frame is shown, in seconds. */
  duration(number) {
    return this.durations[this._checked(number)] / this.timescale;
  }

  /** Whether a frame is a sync sample. */
  sync(number) {
    return this.sample(this.samples[this._checked(number)]).sync;
  }

  /** The frame that is shown at a time in seconds: before the first that one, after the end the last. */
  numberAt(seconds) {
    if (!this.length) throw new RangeError("there are no frames");
    if (Number.isNaN(seconds)) throw new RangeError("the time is not a number");
    const ticks = mediaTicks(this.track, seconds);
    const place = after(this._byTime, (sample) => this._rows.cts[sample] <= ticks) - 1;
    return this._numbers[Math.max(place, 0)];
  }

  /** The bytes of a frame in the video: `start` inclusive, `stop` exclusive. */
  range(number) {
    const { start, stop } = this.sample(this.samples[this._checked(number)]);
    return { start, stop };
  }

  /**
   * What is decoded for a frame: all samples from a sync sample up to it, in decode order, each
   * `sample`, `start`, `stop`, `sync`, `cts` and `dts`; and `start` and `stop`, which they lie in.
   */
  group(number) {
    const sample = this.samples[this._checked(number)];
    const samples = [];
    for (let n = this._startOf(sample); n <= sample; n++) samples.push(this.sample(n));
    const start = samples.reduce((least, one) => Math.min(least, one.start), Infinity);
    const stop = samples.reduce((most, one) => Math.max(most, one.stop), 0);
    return { start, stop, samples };
  }

  /** A sample by its number in decode order: `sample`, `start`, `stop`, `sync`, `cts` and `dts`. */
  sample(number) {
    const { offset, size, dts, cts, sync } = this._rows;
    const start = offset[number];
    const stop = start + size[number];
    return { sample: number, start, stop, sync: Boolean(sync[number]), cts: cts[number], dts: dts[number] };
  }

  /**
   * A configuration for WebCodecs' VideoDecoder.
   *
   * @param {ArrayBuffer | Uint8Array} init the bytes of `index.init(track.period)`
   */
  decoderConfig(init) {
    const bytes = init instanceof Uint8Array ? init : new Uint8Array(init);
    const { codec, width, height, id } = this.track;
    const config = { codec, codedWidth: width, codedHeight: height };
    const description = codecRecord(bytes, id);
    return description ? { ...config, description } : config;
  }

  _checked(number) {
    if (!Number.isInteger(number) || number < 0 || number >= this.length) {
      throw new RangeError(`there is no frame ${number}: there are ${this.length}`);
    }
    return number;
  }

  _startOf(sample) {
    const [syncs, { cts }] = [this._syncs, this._rows];
    let place = after(syncs, (sync) => sync <= sample) - 1;
    // A leading picture may refer to the group before the sync sample that it follows.
    while (place > 0 && cts[sample] < cts[syncs[place]]) place--;
    return place < 0 || cts[sample] < cts[syncs[place]] ? 0 : syncs[place];
  }
}

/** The last whole tick of the media at or before a presentation time; doubles are exact. */
function mediaTicks(track, seconds, sign = 1n) {
  if (!Number.isFinite(seconds)) return seconds;
  const [numerator, denominator] = track._parts.track.shift.map(BigInt);
  const [over, under] = fraction(seconds);
  const ticks = over * BigInt(track.timescale) * denominator - sign * numerator * under;
  return Number(floorDivide(ticks, under * denominator));
}

/** Presentation time of a composition time, in seconds. */
function secondsOf(track, cts) {
  const [numerator, denominator] = track._parts.track.shift;
  return (cts * denominator + numerator) / (denominator * track.timescale);
}

/**
 * Which samples are frames by the edit list (ISO/IEC 14496-12, 8.6.6): of a track without fragments
 * those that begin in an edit; of others, and where none does, those of which a moment is in one.
 */
function inEdits(info, movieTimescale, shift, flags, cts, durations) {
  const times = Array.from(cts);
  const far = 2 ** 62;
  const edits = info.edits ?? [];
  const segments = [];
  let delay = 0n;
  if (!edits.some((edit) => Math.max(edit.media_time, edit.duration) >= far)) {
    for (const { duration, media_time: begin, rate = 1 } of edits) {
      const timed = duration > 0 && movieTimescale > 0;
      if (begin >= 0) {
        const [over, under] = fraction(rate);
        const unit = BigInt(movieTimescale) * under;
        // rounded to the nearest tick, halves up
        const length = timed
          ? Number(floorDivide(2n * BigInt(duration) * over * BigInt(info.timescale) + unit, 2n * unit))
          : Infinity;
        segments.push({ begin, stop: !timed || rate ? begin + length : begin + 1, rate });
        if (!timed) break;
      } else if (!segments.length) {
        delay += BigInt(duration);
      }
    }
  }
  if (!segments.length) return times.map(() => true);
  const virtual = Array.from(flags, (flag) => flag & VIRTUAL);
  const last = segments.at(-1);
  // The moov of a hybrid file was written when the rest was not there yet.
  if (last.rate && virtual.some(Boolean) && !virtual.every(Boolean)) last.stop = Infinity;
  if (segments.length === 1) {
    // Of an edit that begins inside a picture, the shift says where the next picture is.
    const [over, under] = shift.map(BigInt);
    const [ticks, unit] = movieTimescale ? [delay * BigInt(info.timescale), BigInt(movieTimescale)] : [0n, 1n];
    last.begin = Number((ticks * under - over * unit) / (unit * under));
  }
  const ended = times.map((time) => segments.map(({ stop }) => time < stop));
  const begun = times.map((time, n) => segments.some(({ begin }, k) => time >= begin && ended[n][k]));
  if (virtual.every(Boolean) && begun.some(Boolean)) return begun;
  return times.map((time, n) =>
    segments.some(({ begin }, k) => time + Math.max(durations[n], 1) > begin && ended[n][k]),
  );
}

/** How many elements at the start of a sorted array pass. */
export function after(array, passes) {
  let [low, high] = [0, array.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (passes(array[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A double as the fraction that it is: two BigInts. */
function fraction(number) {
  let under = 1n;
  while (!Number.isInteger(number)) {
    number *= 2;
    under *= 2n;
  }
  return [BigInt(number), under];
}

function floorDivide(over, under) {
  const quotient = over / under;
  return over % under < 0n ? quotient - 1n : quotient;
}

function rows(track, table) {
  return track._parts.track.tables[table]?.rows ?? 0;
}

function whole(big) {
  // −2^63 stands for an unknown number, and −2^63 + 1 is the same double
  return big === UNKNOWN_BIG ? UNKNOWN : exact(Number(big));
}

function exact(number) {
  if (!(Math.abs(number) <= Number.MAX_SAFE_INTEGER)) {
    throw new FrameIndexError("the .fidx has numbers that a browser cannot count in");
  }
  return number;
}

/** The codec's record in the sample entry of a track (avcC, hvcC and so on), without its header. */
function codecRecord(bytes, trackId) {
  const named = (parent, type) => boxes(bytes, parent).find((box) => box.type === type);
  const moov = named({ start: 0, stop: bytes.length }, "moov");
  const traks = moov ? boxes(bytes, moov).filter((box) => box.type === "trak") : [];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (const trak of traks) {
    const tkhd = named(trak, "tkhd");
    const at = tkhd && tkhd.start + (bytes[tkhd.start] === 1 ? 20 : 12);
    if (!tkhd || view.getUint32(at) !== trackId) continue;
    let found = trak;
    for (const type of ["mdia", "minf", "stbl", "stsd"]) found = found && named(found, type);
    const [entry] = found ? boxes(bytes, { start: found.start + 8, stop: found.stop }) : [];
    const inside = entry && boxes(bytes, { start: entry.start + 78, stop: entry.stop });
    const record = inside?.find((box) => ["avcC", "hvcC", "vvcC", "av1C"].includes(box.type));
    return record && bytes.slice(record.start, record.stop);
  }
  return undefined;
}

/** The boxes in a stretch of bytes: type, and where their content starts and stops. */
function boxes(bytes, { start, stop }) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const found = [];
  while (start + 8 <= stop) {
    let size = view.getUint32(start);
    let header = 8;
    if (size === 1 && start + 16 <= stop) {
      size = Number(view.getBigUint64(start + 8));
      header = 16;
    } else if (size === 0) size = stop - start;
    if (size < header || start + size > stop) break;
    const type = String.fromCharCode(...bytes.subarray(start + 4, start + 8));
    found.push({ type, start: start + header, stop: start + size });
    start += size;
  }
  return found;
}

let crcTable;

/** The checksum of RFC 1952; `before`: that of what stands in front. */
export function crc32(bytes, before = 0) {
  crcTable ??= Uint32Array.from({ length: 256 }, (_, value) => {
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
    return value;
  });
  let sum = ~before;
  for (const byte of bytes) sum = crcTable[(sum ^ byte) & 255] ^ (sum >>> 8);
  return ~sum >>> 0;
}
