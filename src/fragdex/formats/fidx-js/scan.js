/** One pass over the top-level boxes of a source: few reads, and never media bytes on purpose. */
import { IndexingError, headerAt, viewOf } from "./boxes.js";

const FIRST_GUESS = 2 ** 16; // bytes requested at once at the start of a remote file
const READ_AHEAD = 2 ** 12;
const SPARE = 16; // bytes after the largest recent headers: a few samples more, a longer mdat header
const RECENT = 8;
const DENSE = 4; // where all bytes are so many times those of the headers, all are read
const REQUEST_BYTES = 128;
const [FIRST_WINDOW, LARGEST_WINDOW] = [2 ** 17, 2 ** 19];
const MOST_WHOLE = 2 ** 28; // bytes of one moov or moof
const MOST_BOXES = 2 ** 22;
const WHOLE = ["moov", "moof", "ftyp"];
// Boxes that a file may end in, or whose header alone counts.
const LEAD = ["styp", "sidx", "emsg", "prft"];

const ENOUGH = 3; // fragments whose distance is measured before passes are planned by it
const [MOST_PASSES, FEW_PASSES, FRAGMENTS_EACH] = [64, 4, 8];
const [SEARCH_COST, SEARCH_READS, LONGEST_SEARCH] = [0.65, 4, 6]; // in distances between two moofs
const [MOST_WASTE, MOST_BOX] = [4, 16];
// A moof after its size: its type, and the header of its mfhd.
const MOOF_START = [0x6d, 0x6f, 0x6f, 0x66, 0, 0, 0, 0x10, 0x6d, 0x66, 0x68, 0x64];

/** How far fragments are apart, and how many bytes their headers take. */
class Pace {
  heads = [];
  moofs = [];
  window = 0;
  before = 0;
  edge = undefined; // where the headers of the next fragment begin

  note(type, offset, size, length) {
    this.edge ??= offset;
    if (type === "moof") {
      this.moofs = [...this.moofs.slice(-RECENT + 1), offset];
      this.isIn = true;
    } else if (["mdat", "moov", "ftyp"].includes(type)) {
      if (this.isIn) this.heads = [...this.heads.slice(-RECENT + 1), offset + length - this.edge];
      [this.isIn, this.edge] = [false, offset + size];
    }
  }

  get head() {
    return Math.max(...(this.heads.length ? this.heads : [READ_AHEAD - SPARE])) + SPARE;
  }

  get stride() {
    return this.moofs.length > 2 ? (this.moofs.at(-1) - this.moofs[0]) / (this.moofs.length - 1) : this.before;
  }

  get isDense() {
    return this.stride > 0 && this.stride <= DENSE * (this.head + REQUEST_BYTES);
  }

  /** What a pass elsewhere begins with. */
  elsewhere() {
    const other = new Pace();
    [other.heads, other.before] = [this.heads.slice(), this.stride];
    return other;
  }

  take(other) {
    [this.heads, this.moofs, this.edge, this.isIn] = [other.heads, other.moofs, other.edge, other.isIn];
  }

  /** Bytes to ask for next. */
  ahead() {
    this.window = this.isDense ? Math.min(Math.max(2 * this.window, FIRST_WINDOW), LARGEST_WINDOW) : 0;
    return this.window || this.head;
  }
}

/** The bytes around where a pass stands. */
class Window {
  start = 0;
  bytes = new Uint8Array(0);

  constructor(source, pace) {
    [this.source, this.pace] = [source, pace];
  }

  /** Bytes from `at` on, `size` of them, or fewer at the end; yields what has to be read for them. */
  *take(at, size, most = Infinity) {
    const have = this.start + this.bytes.length;
    const kept = at >= this.start && at < have ? this.bytes.subarray(at - this.start) : new Uint8Array(0);
    if (kept.length < size) {
      const from = at + kept.length;
      const isRest = kept.length > 0 && !this.pace.isDense;
      let stop = isRest ? 0 : from + this.pace.ahead();
      if (this.source.remote && at < FIRST_GUESS) stop = from + FIRST_GUESS;
      // After the rest of a box stands the header of the next one.
      const least = at + size + (isRest ? SPARE : 0);
      this.put(at, kept, yield [from, Math.max(Math.min(stop, most), least)]);
    }
    return this.bytes.subarray(at - this.start, at - this.start + size);
  }

  put(start, first, second) {
    const bytes = new Uint8Array(first.length + second.length);
    bytes.set(first);
    bytes.set(second, first.length);
    [this.start, this.bytes] = [start, bytes];
  }
}

/**
 * A pass over the top-level boxes from `position` to `limit`. Its `steps` yield what has to be read, as
 * [start, stop], and are given the bytes; null: the limit is reached, and may be moved.
 */
class Pass {
  limit = Infinity;

  constructor(source, pace, position, emit) {
    Object.assign(this, { source, pace, position, emit });
    this.window = new Window(source, pace);
    this.steps = this.walk();
  }

  *walk() {
    for (;;) {
      while (this.position >= this.limit) yield null;
      const { source, position } = this;
      if (source.size !== undefined && position >= source.size) return;
      let head = yield* this.window.take(position, 8, this.limit);
      if (head.length === 8 && viewOf(head).getUint32(0) === 1) head = yield* this.window.take(position, 16, this.limit);
      const refuse = (message, path) => {
        throw new IndexingError(message, path, position);
      };
      const end = source.size ?? refuse("the size of the file is not known");
      const header = headerAt(viewOf(head), head, 0, head.length);
      if (head.length < 8 && (head[0] || (head.length >= 4 && !head.subarray(0, 4).some(Boolean)))) {
        refuse("what follows the last box is not a box");
      }
      if (!header || header.length > end - position) return;
      const { type, length } = header;
      if (/[^\x20-\x7e\xa9]/.test(type)) refuse("this is not a box");
      const isToEnd = header.size === 0;
      const size = isToEnd ? end - position : header.size;
      if (size < length) refuse(`a box of ${size} bytes is smaller than its own header`, type);
      const isWhole = WHOLE.includes(type);
      if (isToEnd && !isWhole && !["mdat", "sidx", "mfra"].includes(type)) {
        this.position = end;
        return;
      }
      if ((isWhole || type === "sidx" || type === "mfra") && size > end - position) return;
      if (isWhole && size > this.mostWhole) refuse(`a box of ${size} bytes is too large to be read whole`, type);
      if (!Number.isSafeInteger(position + size)) refuse("the size of the box cannot be counted", type);
      let bytes;
      if (isWhole) {
        bytes = (yield* this.window.take(position, size)).slice();
        if (bytes.length < size) refuse("the file is shorter than its source said", type);
        if (isToEnd) viewOf(bytes).setUint32(0, size);
      }
      this.pace.note(type, position, size, length);
      this.emit({ type, offset: position, size, bytes });
      this.position = position + size;
    }
  }

  get mostWhole() {
    return MOST_WHOLE;
  }

  /** Continues, with the bytes that were wanted, until more are. */
  step(bytes) {
    const { value, done } = this.steps.next(bytes);
    [this.wants, this.isOver] = [value ?? undefined, done];
  }
}

/** A pass that begins at what looks like a moof in the middle: it counts once another ends there. */
class MiddlePass extends Pass {
  begin = undefined;
  found = [];
  spent = 0;

  constructor(source, pace, target) {
    super(source, pace.elsewhere(), target, (box) => this.found.push(box));
    [this.target, this.before] = [target, pace];
    this.steps = this.search();
  }

  get mostWhole() {
    return MOST_BOX * this.before.head + READ_AHEAD;
  }

  /** Where the pass before it has to end. */
  get edge() {
    return this.begin ?? this.target;
  }

  *search() {
    const { stride } = this.before;
    const each = Math.min(Math.max(stride / SEARCH_READS, READ_AHEAD / 2), FIRST_GUESS);
    const last = this.target + LONGEST_SEARCH * stride + FIRST_GUESS;
    for (let at = this.target; at < Math.min(last, this.limit); ) {
      const bytes = yield [at, Math.min(Math.floor(at + each), this.limit)];
      if (!bytes.length) return;
      const kept = this.window.bytes.subarray(-MOOF_START.length - 3);
      this.window.put(at - kept.length, kept, bytes);
      const place = moofIn(this.window.bytes, this.mostWhole);
      if (place !== undefined) {
        this.begin = this.position = this.window.start + place;
        return yield* this.walk();
      }
      at += bytes.length;
    }
  }

  step(bytes) {
    // What is met here may be made up: it is not read faster than it is believed.
    this.spent += bytes?.length ?? 0;
    const stretch = this.position - this.target;
    const most = MOST_WASTE * (stretch / this.before.stride) * this.before.head + LONGEST_SEARCH * this.before.stride;
    if (this.spent > most + FIRST_GUESS) [this.wants, this.isOver] = [undefined, true];
    if (this.isOver) return;
    try {
      super.step(bytes);
    } catch (error) {
      if (!(error instanceof IndexingError)) throw error;
      [this.wants, this.isOver] = [undefined, true];
    }
  }
}

/** Where what looks like a moof of a possible size begins. */
function moofIn(bytes, largest) {
  const view = viewOf(bytes);
  for (let at = bytes.indexOf(0x6d, 4); at >= 0; at = bytes.indexOf(0x6d, at + 1)) {
    if (!MOOF_START.every((byte, n) => bytes[at + n] === byte)) continue;
    const size = view.getUint32(at - 4);
    if (size >= 24 && size <= largest) return at - 4;
  }
  return undefined;
}

/**
 * Passes over a file, and gives `take(type, bytes, offset)` its ftyp, moov and moofs in order.
 *
 * Where a fragment ends, only its own headers say. So further passes begin in the middle of a remote
 * file, and all ask together; what one of them met counts once the pass before ends where it began.
 *
 * Gives `tops` (offset, size, type of every box), `size` of the file, `position` where the first box
 * begins that is not whole, and `isWhole`.
 */
export async function scan(source, take, onProgress = () => undefined) {
  const tops = { offset: [], size: [], type: [] };
  const emit = ({ type, offset, size, bytes }) => {
    if (tops.offset.push(offset) > MOST_BOXES) {
      throw new IndexingError(`the file has more than ${MOST_BOXES} boxes`, type, offset);
    }
    tops.size.push(size);
    tops.type.push(type);
    if (bytes) take(type, bytes, offset);
  };
  const main = new Pass(source, new Pace(), 0, emit);
  let ahead;
  for (main.step(); !main.isOver; ) {
    if (!ahead && source.readMany && main.pace.stride && main.pace.heads.length >= ENOUGH) {
      ahead = planned(source, main);
    }
    const reading = [main, ...(ahead ?? [])].filter((one) => one.wants);
    const wanted = reading.map((one) => one.wants);
    const data = wanted.length > 1 ? await source.readMany(wanted) : [await source.read(...wanted[0])];
    reading.forEach((one, n) => one.step(data[n]));
    if (ahead) settle(main, ahead);
    onProgress(Math.min(main.position, source.size), source.size);
  }
  return { tops, size: source.size, position: main.position };
}

/** The passes that are worth it ahead of one, each begun. */
function planned(source, { pace, position }) {
  const rest = source.size - position;
  const cost = SEARCH_COST * pace.stride;
  const heads = (rest / pace.stride) * pace.head;
  const search = Math.max(heads / 2, Math.min(source.size / 128, 16 * cost), Math.min(2 ** 19, rest / 16));
  let most = Math.min(MOST_PASSES, rest / pace.stride / FRAGMENTS_EACH, search / cost);
  if (pace.isDense) most = Math.min(most, FEW_PASSES, rest / LARGEST_WINDOW);
  const passes = [];
  for (let n = 1; n < Math.floor(most); n++) {
    passes.push(new MiddlePass(source, pace, position + Math.floor((n * rest) / Math.floor(most))));
  }
  limit(passes, source.size);
  passes.forEach((one) => one.step());
  return passes;
}

function limit(passes, size) {
  let edge = size;
  for (const one of passes.toReversed()) {
    one.limit = edge;
    edge = one.edge;
  }
  return edge;
}

/** Lets the first pass take what was met from where it is now; drops what began at no moof. */
function settle(main, ahead) {
  for (;;) {
    for (let n = ahead.length; n--; ) if (ahead[n].isOver && ahead[n].begin === undefined) ahead.splice(n, 1);
    main.limit = ahead.length ? limit(ahead, main.source.size) : Infinity;
    const [next] = ahead;
    if (next?.begin !== undefined && next.begin <= main.position) {
      ahead.shift();
      if (next.begin === main.position) {
        next.found.forEach(main.emit);
        main.position = next.position;
        main.window = next.window;
        main.pace.take(next.pace);
      }
      continue;
    }
    // Where limits have moved, passes continue.
    const waiting = [main, ...ahead].filter((one) => !one.wants && !one.isOver && one.position < one.limit);
    if (!waiting.length) return;
    waiting.forEach((one) => one.step());
  }
}

/**
 * Whether a file is whole; if not, where what is missing begins, and how many moofs count.
 *
 * `wantsData(moof)`: whether that one has samples after its own place.
 */
export function endOf({ tops, size, position }, layout, wantsData) {
  const rows = tops.offset.length;
  const stop = rows ? tops.offset[rows - 1] + tops.size[rows - 1] : 0;
  const moofs = layout.moof.length;
  const isWhole = stop <= size && position >= size;
  const beforeLead = (resume) => {
    for (let row = rows - 1; row >= 0; row--) {
      if (!LEAD.includes(tops.type[row]) || tops.offset[row] + tops.size[row] !== resume) break;
      resume = tops.offset[row];
    }
    return resume;
  };
  if (isWhole && (!moofs || tops.type[rows - 1] !== "moof")) return { complete: true, resume: beforeLead(size), moofs };
  if (moofs) {
    const last = moofs - 1;
    const hasData = layout.mdatStart.length > 0 && layout.mdatStart.at(-1) > layout.moof[last];
    const isCut = stop > size && layout.stop[last] > size;
    const lacks = (isCut || !hasData) && wantsData(last);
    if (isWhole && !lacks) return { complete: true, resume: size, moofs };
    if (lacks) return { complete: false, resume: layout.start[last], moofs: last };
  }
  if (stop > size && rows) return { complete: false, resume: tops.offset[rows - 1], moofs };
  return { complete: false, resume: beforeLead(position), moofs };
}
