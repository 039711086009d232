/** Fragments: what moofs say, where their samples lie (8.8.7, 8.8.8) and when they play (8.8.12). */
import { Box, IndexingError } from "./boxes.js";
import { after } from "./fidx.js";
import { groupBoxes } from "./groups.js";
import { OUTSIDE, UNKNOWN, emptyFragments } from "./progressive.js";
import { emptySync, holding, push } from "./sync.js";

const [REPAIRED, NO_TFDT, DECLARED_BASE] = [2, 4, 64];
const [BASE, FROM_MOOF, IS_EMPTY, NON_SYNC] = [1, 0x20000, 0x10000, 0x10000];
const LONGEST = 2 ** 31;
const MDAT_HEADER = 8;
const MOST_WITHOUT_ROWS = 2 ** 24;
const [MOST_ALONE, MOST_WITH_MEDIA] = [2 ** 18, 2 ** 22];
const TFXD = "6d1d9b0542d544e680e2141daff757b2";
/** Boxes that say nothing that a copy must keep; the last three by PIFF: tfxd, tfrf and senc. */
export const STRUCTURE = new Set([
  ..."---- co64 cslg ctts dinf dref edts elst free gmhd iinf ilst imda keys ludt mdat mdia meco mehd mfhd".split(" "),
  ..."mfra mfro minf moof moov mvex pdin proj rinf schi senc sidx sinf skip ssix stbl stco strd strk stsc".split(" "),
  ..."stsd stss stsz stts styp stz2 sv3d tapt tfdt tfhd tfra tmcd traf trak tref trex trgr trun udta vttc".split(" "),
  "wave", "wide", TFXD, "d4807ef2ca3946958e5426cb9e46a79f", "a2394f525a9b4f14a2446c427c648df4",
]);

const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** What the moofs of a file say. */
export class Fragments {
  trafs = [];
  moofs = []; // offset of each
  saysMore = false;

  /** `defaults`: track_ID → trex; `kept`: tracks whose samples are kept; `size`: of the file. */
  constructor(defaults, kept, size) {
    [this._defaults, this._kept] = [defaults, kept];
    // Samples that have no bytes in a moof, besides those that have.
    this._alone = MOST_ALONE + Math.min(size, MOST_WITH_MEDIA);
  }

  /** Take the next moof, `offset` bytes into the file. */
  add(bytes, offset) {
    const moof = Box.whole(bytes, offset);
    const number = this.moofs.push(offset) - 1;
    for (const child of moof.children()) {
      this._note(child);
      if (child.type === "traf") this.trafs.push(this._traf(child, number));
    }
  }

  _note({ type, bytes, start }) {
    const name = type === "uuid" ? hexOf(bytes.subarray(start - 16, start)) : type;
    this.saysMore ||= !STRUCTURE.has(name);
  }

  _traf(traf, moof) {
    traf.children().forEach((one) => this._note(one));
    const tfhd = traf.one("tfhd") ?? traf.refuse("there is no tfhd");
    tfhd.version(1);
    const flags = tfhd.flags;
    const track = tfhd.need(8).u32(4);
    const trex = this._defaults.get(track);
    if (!trex) tfhd.refuse(`the moov has no trex of track ${track}`);
    let at = 8;
    const take = (mask, width, otherwise) => {
      if (!(flags & mask)) return otherwise;
      tfhd.need((at += width));
      return width === 8 ? tfhd.u64(at - 8) : tfhd.u32(at - 4);
    };
    const base = take(BASE, 8, UNKNOWN);
    const entry = take(2, 4, trex.entry);
    const defaults = { duration: take(8, 4, trex.duration), size: take(16, 4, trex.size), flags: take(32, 4, trex.flags), offset: 0 };
    const isEmpty = flags & IS_EMPTY;
    const found = {
      moof, track, flags, base, entry, gap: isEmpty ? defaults.duration : 0, origin: traf.origin + traf.start,
      ...timeOf(traf), runs: traf.all("trun").map((trun) => this._run(trun, defaults, this._kept.has(track))),
      groups: groupBoxes(traf),
    };
    if (isEmpty && defaults.duration >= LONGEST) tfhd.refuse("a duration of 2^31 or more");
    return found;
  }

  /**
   * What a run adds up to, its sync samples from its start (points: index, dts, cts, step, count), and
   * where samples are kept `rows(visit)`, which reads them again: `visit(size, duration, offset, sync, row)`.
   */
  _run(trun, defaults, isKept) {
    trun.version(1);
    const flags = trun.flags;
    const count = trun.need(8).u32(4);
    let at = 8;
    const take = (mask) => {
      if (flags & mask) trun.need((at += 4));
      return flags & mask ? at - 4 : undefined;
    };
    const [offsetAt, firstAt] = [take(1), take(4)];
    const place = {};
    let stride = 0;
    ["duration", "size", "flags", "offset"].forEach((name, n) => {
      if (flags & (0x100 << n)) [place[name], stride] = [stride, stride + 4];
    });
    if (count > (stride ? (trun.room - at) / stride : MOST_WITHOUT_ROWS)) {
      trun.refuse(`${count} samples do not fit into the box`);
    }
    const longest = (duration, row) => {
      if (duration >= LONGEST) trun.refuse("a sample duration of 2^31 or more", row === undefined ? row : trun.start + at + row * stride);
    };
    if (place.duration === undefined) longest(defaults.duration);
    if (!stride && isKept && (this._alone -= count) < 0) trun.refuse("too many samples have no bytes here: leave them out");
    const isSync = (value) => !(value & NON_SYNC);
    const rest = isSync(defaults.flags);
    const first = firstAt === undefined ? rest : isSync(trun.u32(firstAt));
    const rows = (visit) => {
      for (let row = 0, from = at; row < count; row++, from += stride) {
        const value = (name) => (place[name] === undefined ? defaults[name] : trun.u32(from + place[name]));
        const sync = row || firstAt === undefined ? isSync(value("flags")) : first;
        visit(value("size"), value("duration"), value("offset") | 0, sync, row);
      }
    };
    const run = {
      count, dataOffset: offsetAt === undefined ? UNKNOWN : trun.i32(offsetAt), rows: isKept ? rows : undefined,
      size: 0, duration: 0, ctsMin: Infinity, ctsEnd: -Infinity, points: [],
    };
    if (!stride && count) {
      const duration = defaults.duration * count;
      const points = evenPoints(count, defaults.duration, first, rest);
      return { ...run, size: defaults.size * count, duration, ctsMin: 0, ctsEnd: duration, points };
    }
    rows((size, duration, offset, sync, row) => {
      longest(duration, row);
      const cts = run.duration + offset;
      if (sync) run.points.push([row, run.duration, cts, 0, 1]);
      run.ctsMin = Math.min(run.ctsMin, cts);
      run.ctsEnd = Math.max(run.ctsEnd, cts + duration);
      run.duration += duration;
      run.size += size;
    });
    if (place.duration === undefined && place.offset === undefined) {
      // Evenly spaced: without flags of their own, or all of them sync, they are one row.
      if (place.flags === undefined) run.points = evenPoints(count, defaults.duration, first, rest);
      else if (run.points.length === count) run.points = evenPoints(count, defaults.duration, true, true);
    }
    return run;
  }
}

/** Sync samples of evenly spaced ones: a run is one row, less its first sample where that is not sync. */
function evenPoints(count, duration, first, rest) {
  const start = first ? 0 : 1;
  const length = rest ? count - start : first ? 1 : 0;
  return length > 0 && count ? [[start, start * duration, start * duration, length > 1 ? duration : 0, length]] : [];
}

/** The decode time of a traf and what says it: a tfdt of 32 (1) or 64 bits (2), PIFF's tfxd (3). */
function timeOf(traf) {
  const tfdt = traf.one("tfdt");
  if (tfdt) {
    const long = tfdt.version(1);
    tfdt.need(long ? 12 : 8);
    return { time: long ? tfdt.i64(4) : tfdt.u32(4), timeKind: 1 + long };
  }
  const found = traf.all("uuid").find((one) => one.room >= 8 && hexOf(one.bytes.subarray(one.start - 16, one.start)) === TFXD);
  if (!found) return { time: UNKNOWN, timeKind: 0 };
  const wide = found.u8(0);
  return { time: wide ? found.need(12).i64(4) : found.u32(4), timeKind: 3 };
}

/** Where fragments and media data lie, from the top-level boxes in file order. */
export function layOut({ offset, size, type }) {
  const lead = (row) => ["styp", "sidx", "emsg", "prft"].includes(type[row]);
  const layout = { moof: [], moofStop: [], start: [], stop: [], ownFirst: [], ownLast: [], mdatStart: [], mdatStop: [] };
  let last = -1; // the mdat's row
  for (let row = 0; row < offset.length; row++) {
    const stop = offset[row] + size[row];
    if (type[row] === "mdat") {
      layout.mdatStart.push(offset[row] + MDAT_HEADER);
      layout.mdatStop.push(stop);
      last = row;
      if (layout.moof.length) {
        layout.stop[layout.moof.length - 1] = stop;
        layout.ownLast[layout.moof.length - 1] = layout.mdatStart.length - 1;
      }
    }
    if (type[row] !== "moof") continue;
    let head = row;
    while (head > 0 && lead(head - 1)) head--;
    layout.moof.push(offset[row]);
    layout.moofStop.push(stop);
    layout.start.push(offset[head]);
    layout.stop.push(stop);
    const before = layout.mdatStart.length;
    // The mdat directly before the moof, and what introduces it: one producer writes it first.
    layout.ownFirst.push(head > 0 && last === head - 1 ? before - 1 : before);
    layout.ownLast.push(before - 1);
  }
  return layout;
}

/** Gives each traf the base `from`, and each run its place after that, by the rule (8.8.7.1). */
export function placeByRule(trafs, layout) {
  let [before, end] = [undefined, 0];
  for (const traf of trafs) {
    const isFirst = before?.moof !== traf.moof;
    traf.from = traf.base ?? (isFirst || traf.flags & FROM_MOOF ? layout.moof[traf.moof] : end);
    let relative = 0;
    for (const run of traf.runs) {
      run.relative = run.dataOffset ?? relative;
      relative = run.relative + run.size;
    }
    end = traf.from + relative;
    before = traf;
  }
}

/** Gives each run its `start` in the file, and each traf `repaired` and `outside`. */
export function place(trafs, layout) {
  placeByRule(trafs, layout);
  const inside = (traf, from, { own = false, all = false } = {}) =>
    traf.runs.every(({ relative, size }) => {
      if (!size) return true;
      const start = from + relative;
      const mdat = holding(layout.mdatStart, start);
      if (mdat < 0 || start + size > layout.mdatStop[mdat]) return false;
      const isOwn = mdat >= layout.ownFirst[traf.moof] && mdat <= layout.ownLast[traf.moof];
      return isOwn || all || (!own && traf.base !== UNKNOWN);
    });
  // Decided for a whole moof: with a stale base only some of its runs leave the media data.
  const [bad, broken] = [new Set(), new Set()];
  for (const traf of trafs) {
    traf.isGood = inside(traf, traf.from);
    if (!traf.isGood) bad.add(traf.moof);
  }
  for (const traf of trafs) {
    if (bad.has(traf.moof) && !inside(traf, layout.moof[traf.moof], { own: true })) broken.add(traf.moof);
  }
  for (const traf of trafs) {
    const moof = layout.moof[traf.moof];
    traf.repaired = bad.has(traf.moof) && !broken.has(traf.moof) && traf.from !== moof;
    if (traf.repaired) traf.from = moof;
    traf.outside = !traf.isGood && !traf.repaired && !inside(traf, traf.from, { all: true });
    for (const run of traf.runs) run.start = traf.from + run.relative;
  }
}

/**
 * The tables of one track from its trafs, which `place` has placed.
 *
 * `state`: samples, rows and decode time before them. Gives `fragments`, `sync` (not joined yet), and
 * `runs` with start and decode time of each; of each traf its first sample is noted.
 */
export function trackTables(trafs, layout, state) {
  const [fragments, sync, runs] = [emptyFragments(), emptySync(), []];
  let [next, samples] = [state.dts, state.samples];
  let row;
  const close = () => {
    if (!row) return;
    let [offset, stop] = [layout.start[row.moof], layout.stop[row.moof]];
    const { dataStart, dataStop } = row;
    const own = layout.ownFirst[row.moof];
    if (dataStart !== UNKNOWN && dataStart < offset && own < layout.mdatStart.length) {
      // One producer writes the mdat in front of its moof.
      const head = layout.mdatStart[own] - MDAT_HEADER;
      if (dataStop <= offset) stop = layout.moofStop[row.moof];
      if (head <= dataStart) offset = head;
    }
    if (dataStart !== UNKNOWN && (dataStart < offset || dataStop > stop)) {
      // As far as the mdats that the samples lie in, wherever they are.
      const first = holding(layout.mdatStart, dataStart);
      const last = after(layout.mdatStart, (one) => one < dataStop) - 1;
      if (first >= 0 && last >= 0 && dataStart < layout.mdatStop[first] && dataStop <= layout.mdatStop[last]) {
        offset = Math.min(offset, layout.mdatStart[first] - MDAT_HEADER);
        stop = Math.max(stop, layout.mdatStop[last]);
      }
    }
    push(
      fragments,      offset, stop - offset, layout.moof[row.moof], dataStart, dataStop, row.dts, row.duration,
      row.ctsMin ?? row.dts, row.ctsEnd ?? row.dts, row.sampleStart, row.count, row.sync, row.flags,
    );
  };
  const least = (a, b) => (a === undefined || a === UNKNOWN ? b : Math.min(a, b));
  const most = (a, b) => (a === undefined || a === UNKNOWN ? b : Math.max(a, b));
  for (const traf of trafs) {
    const isTimed = traf.time !== UNKNOWN;
    const begun = isTimed ? traf.time : next;
    if (row?.moof !== traf.moof) {
      close();
      row = {
        moof: traf.moof, dts: begun, duration: 0, sampleStart: samples, count: 0, sync: -1, flags: 0,
        dataStart: UNKNOWN, dataStop: UNKNOWN, number: state.rows + fragments.offset.length,
      };
    }
    row.flags |= (traf.repaired && REPAIRED) | (traf.outside && OUTSIDE) | (!isTimed && NO_TFDT);
    row.flags |= traf.base !== UNKNOWN && DECLARED_BASE;
    Object.assign(traf, { dts: begun, firstSample: samples, samples: 0, advance: traf.gap });
    let dts = begun;
    for (const run of traf.runs) {
      runs.push({ run, start: run.start, dts });
      if (run.size) {
        row.dataStart = least(row.dataStart, run.start);
        row.dataStop = most(row.dataStop, run.start + run.size);
      }
      if (run.count) {
        row.ctsMin = least(row.ctsMin, dts + run.ctsMin);
        row.ctsEnd = most(row.ctsEnd, dts + run.ctsEnd);
      }
      for (const [index, pointDts, cts, step, many] of run.points) {
        if (row.sync < 0) row.sync = samples + index - row.sampleStart;
        push(sync, dts + cts, dts + pointDts, step, many, samples + index, 1, row.number);
      }
      dts += run.duration;
      samples += run.count;
      traf.samples += run.count;
      traf.advance += run.duration;
      row.count += run.count;
    }
    row.duration += traf.advance;
    next = begun + traf.advance;
  }
  close();
  refuseRestarts(trafs, fragments);
  return { fragments, sync, runs };
}

/** Refuses decode times that fall back, where a recorder may have begun again. */
function refuseRestarts(trafs, { dts, sample_count, moof_offset }) {
  const isWrapped = (one, before) => one.timeKind === 1 && before.timeKind === 1 && one.dts - before.dts < -LONGEST;
  let lasting;
  const again = trafs.some((one, n) => {
    if (one.advance <= 0) return false;
    const before = lasting;
    lasting = one;
    return before && one.dts <= before.dts && one.timeKind && !isWrapped(one, trafs[n - 1]);
  });
  if (!again) return;
  let highest = -Infinity;
  dts.forEach((time, row) => {
    if (!sample_count[row]) return;
    const isFirst = row === 1 && sample_count[0] > 1 && time === dts[0];
    if ((time < highest && highest - time < LONGEST) || isFirst) {
      throw new IndexingError("decode times fall back: the recorder may have begun again", "moof/traf/tfdt", moof_offset[row]);
    }
    highest = Math.max(highest, time);
  });
}
