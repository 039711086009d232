/** Boxes of ISO/IEC 14496-12 in bytes that are at hand: headers, children, and what is wrong. */

/**
 * A file that is damaged, or says something of which this module does not decide what it means:
 * `fragdex index` may know more. `path`: the boxes it was met in; `offset`: byte of the file.
 */
export class IndexingError extends Error {
  name = "IndexingError";

  constructor(message, path, offset) {
    const place = [path, offset === undefined ? undefined : `byte ${offset}`].filter(Boolean);
    super(place.length ? `${message} (${place.join(", ")})` : message);
    this.path = path;
    this.offset = offset;
  }
}

const textOf = (bytes, at) => String.fromCharCode(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
export const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** Type, size and length of a header; undefined where it is cut; `size` 0: to the end. */
export function headerAt(view, bytes, at, stop) {
  if (stop - at < 8) return undefined;
  const type = textOf(bytes, at + 4);
  let size = view.getUint32(at);
  let length = 8;
  if (size === 1) {
    if (stop - at < 16) return undefined;
    size = view.getUint32(at + 8) * 2 ** 32 + view.getUint32(at + 12);
    length = 16;
  }
  if (type === "uuid") length += 16;
  return { type, size, length };
}

const MOST_CHILDREN = 2 ** 16;

/** Where boxes stand that say where samples are; elsewhere they would be read in another way. */
const PLACES = {
  moov: ["mvhd", "trak", "mvex", "cmov"], trak: ["tkhd", "edts", "mdia"], edts: ["elst"],
  mdia: ["mdhd", "hdlr", "minf"], minf: ["stbl", "dinf", "hdlr"], dinf: ["dref"], mvex: ["trex", "mehd"],
  stbl: ["stsd", "stts", "ctts", "stss", "stsz", "stz2", "stsc", "stco", "co64", "cslg", "sgpd", "sbgp", "csgp"],
  moof: ["mfhd", "traf"], traf: ["tfhd", "tfdt", "trun", "sgpd", "sbgp", "csgp"],
};
const PLACED = new Set([...Object.keys(PLACES), ...Object.values(PLACES).flat()]);

/** Whether a box of this type does not belong into one of that type. */
export const isMisplaced = (type, around) => PLACED.has(type) && !PLACES[around]?.includes(type);

/** A box: its content is `bytes` from `start` to `stop`, `origin` bytes into the file. */
export class Box {
  constructor(bytes, view, type, start, stop, origin, path) {
    Object.assign(this, { bytes, view, type, start, stop, origin, path });
  }

  static whole(bytes, origin) {
    const view = viewOf(bytes);
    const { type, length } = headerAt(view, bytes, 0, bytes.length);
    return new Box(bytes, view, type, length, bytes.length, origin, type);
  }

  get room() {
    return this.stop - this.start;
  }

  refuse(message, at = this.start) {
    throw new IndexingError(message, this.path, this.origin + at);
  }

  /** Refuses a box of fewer bytes, so that what follows can read them. */
  need(bytes) {
    if (this.room < bytes) this.refuse(`the box has ${this.room} bytes and needs ${bytes}`);
    return this;
  }

  /** The version of a full box, of those that are known. */
  version(most) {
    const version = this.need(4).bytes[this.start];
    if (version > most) this.refuse(`version ${version} is not known here`);
    return version;
  }

  get flags() {
    return this.need(4).view.getUint32(this.start) & 0xffffff;
  }

  u8(at) {
    return this.bytes[this.start + at];
  }

  u16(at) {
    return this.view.getUint16(this.start + at);
  }

  u32(at) {
    return this.view.getUint32(this.start + at);
  }

  i32(at) {
    return this.view.getInt32(this.start + at);
  }

  u64(at) {
    return this._exact(this.view.getBigUint64(this.start + at), at);
  }

  i64(at) {
    return this._exact(this.view.getBigInt64(this.start + at), at);
  }

  text(at) {
    return textOf(this.bytes, this.start + at);
  }

  _exact(big, at) {
    const number = Number(big);
    if (!Number.isSafeInteger(number)) {
      this.refuse("a number of 2^53 or more cannot be counted exactly here", this.start + at);
    }
    return number;
  }

  /** The boxes inside, from `skipped` bytes on. Each child is read once, in order. */
  children(skipped = 0) {
    if (skipped in (this._children ??= {})) return this._children[skipped];
    const found = [];
    let at = this.start + skipped;
    while (this.stop - at >= 8) {
      const header = headerAt(this.view, this.bytes, at, this.stop);
      // Zero bytes fill up some moofs.
      if (this.path.startsWith("moof") && header?.size === 0 && header.type === "\0\0\0\0") break;
      if (!header || header.size < header.length || header.size > this.stop - at) {
        const type = header?.type ?? textOf(this.bytes, at + 4);
        this.refuse(`the box ${JSON.stringify(type)} does not fit into the box around it`, at);
      }
      const path = `${this.path}/${header.type}`;
      if (isMisplaced(header.type, this.type)) this.refuse(`a box ${header.type} does not belong here`, at);
      const [start, stop] = [at + header.length, at + header.size];
      if (found.length === MOST_CHILDREN) this.refuse(`more than ${MOST_CHILDREN} boxes stand in one`, at);
      found.push(new Box(this.bytes, this.view, header.type, start, stop, this.origin, path));
      at += header.size;
    }
    return (this._children[skipped] = found);
  }

  all(type) {
    return this.children().filter((one) => one.type === type);
  }

  /** The box of a type that may stand once; undefined where it does not. */
  one(type) {
    const [first, second] = this.all(type);
    second?.refuse("the box comes again where it may stand once");
    return first;
  }

  find(path) {
    return path.split("/").reduce((box, type) => box?.one(type), this);
  }
}
