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

/** How far fragments are apart, and how many bytes their headers take. */
class Pace {
  heads = [];
  moofs = [];
  window = 0;
  edge = 0;

  note(type, offset, size, length) {
    if (type === "moof") this.moofs = [...this.moofs.slice(-RECENT + 1), offset];
    else if (type === "mdat") {
      if (this.isIn) this.heads = [...this.heads.slice(-RECENT + 1), offset + length - this.edge];
      this.edge = offset + size;
    }
    this.isIn = type === "moof" || (this.isIn && type !== "mdat");
  }

  get head() {
    return Math.max(...(this.heads.length ? this.heads : [READ_AHEAD - SPARE])) + SPARE;
  }

  get stride() {
    return this.moofs.length > 2 ? (this.moofs.at(-1) - this.moofs[0]) / (this.moofs.length - 1) : 0;
  }

  get isDense() {
    return this.stride > 0 && this.stride <= DENSE * (this.head + REQUEST_BYTES);
  }

  /** Bytes to ask for next. */
  ahead() {
    this.window = this.isDense ? Math.min(Math.max(2 * this.window, FIRST_WINDOW), LARGEST_WINDOW) : 0;
    return this.window || this.head;
  }
}

/** The bytes around where a pass stands. */
class Window {
  constructor(source, pace) {
    [this.source, this.pace] = [source, pace];
    this.start = 0;
    this.bytes = new Uint8Array(0);
  }

  /** Bytes from `at` on, `size` of them, or fewer at the end of the source. */
  async take(at, size) {
    const have = this.start + this.bytes.length;
    const kept = at >= this.start && at < have ? this.bytes.subarray(at - this.start) : new Uint8Array(0);
    if (kept.length < size) {
      const from = at + kept.length;
      const isRest = kept.length > 0 && !this.pace.isDense;
      let stop = isRest ? at + size + SPARE : from + this.pace.ahead();
      if (this.source.remote && at < FIRST_GUESS) stop = from + FIRST_GUESS;
      const more = await this.source.read(from, Math.max(stop, at + size));
      const bytes = new Uint8Array(kept.length + more.length);
      bytes.set(kept);
      bytes.set(more, kept.length);
      [this.start, this.bytes] = [at, bytes];
    }
    return this.bytes.subarray(at - this.start, at - this.start + size);
  }
}

/**
 * Passes over a file, and gives `take(type, bytes, offset)` its ftyp, moov and moofs in order.
 *
 * Gives `tops` (offset, size, type of every box), `size` of the file, `position` where the first box
 * begins that is not whole, and `isWhole`.
 */
export async function scan(source, take, onProgress = () => undefined) {
  const tops = { offset: [], size: [], type: [] };
  const pace = new Pace();
  const window = new Window(source, pace);
  let position = 0;
  let isToEnd = false;
  for (;;) {
    if (source.size !== undefined && position >= source.size) break;
    const head = await window.take(position, 32);
    const refuse = (message, path) => {
      throw new IndexingError(message, path, position);
    };
    const end = source.size ?? refuse("the size of the file is not known");
    const header = headerAt(viewOf(head), head, 0, head.length);
    if (head.length < 8 && (head[0] || (head.length >= 4 && !head.subarray(0, 4).some(Boolean)))) {
      refuse("what follows the last box is not a box");
    }
    if (!header || head.length < header.length) break;
    const { type, length } = header;
    if (/[^\x20-\x7e\xa9]/.test(type)) refuse("this is not a box");
    isToEnd = header.size === 0;
    const size = isToEnd ? end - position : header.size;
    if (size < length) refuse(`a box of ${size} bytes is smaller than its own header`, type);
    const isWhole = WHOLE.includes(type);
    if (isToEnd && !isWhole && !["mdat", "sidx", "mfra"].includes(type)) {
      position = end;
      break;
    }
    if (isWhole && size > end - position) break;
    if ((type === "sidx" || type === "mfra") && size > end - position) break;
    if (isWhole && size > MOST_WHOLE) refuse(`a box of ${size} bytes is too large to be read whole`, type);
    if (tops.offset.push(position) > MOST_BOXES) refuse(`the file has more than ${MOST_BOXES} boxes`);
    if (!Number.isSafeInteger(position + size)) refuse("the size of the box cannot be counted", type);
    tops.size.push(size);
    tops.type.push(type);
    pace.note(type, position, size, length);
    if (isWhole) {
      const bytes = (await window.take(position, size)).slice();
      if (bytes.length < size) refuse("the file is shorter than its source said", type);
      if (isToEnd) viewOf(bytes).setUint32(0, size);
      take(type, bytes, position);
    }
    position += size;
    onProgress(Math.min(position, end), end);
  }
  const { size } = source;
  return { tops, size, position, isWhole: position === size };
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
