/** What an index is made from: bytes, a File or Blob, or a URL that is read by ranges. */
import { IndexingError } from "./boxes.js";

const [MOST_PARTS, LARGEST_PART, PART_HEAD] = [16, 2 ** 16, 512];
const AT_ONCE = 16; // requests; a browser makes six of them over HTTP/1.1

/**
 * A source with `name`, `size` (undefined until it is known), `etag`, `remote`, and
 * `read(start, stop)`: bytes, fewer only at the end. It counts `requests` and `bytesRead`.
 *
 * `what`: ArrayBuffer, Uint8Array, Blob, File, a URL, or such a source. `options`: `headers`, `signal` and
 * `fetch` (in place of the global one) for a URL.
 */
export function openSource(what, options = {}) {
  if (what instanceof ArrayBuffer) what = new Uint8Array(what);
  if (ArrayBuffer.isView(what)) return new Local(bytesOf(what), "");
  if (typeof Blob !== "undefined" && what instanceof Blob) return new Local(what, what.name ?? "");
  if (typeof what === "string" || what instanceof URL) return new Remote(String(what), options);
  if (typeof what?.read === "function") return what;
  throw new TypeError("an index is made from bytes, a Blob, a File or a URL");
}

const bytesOf = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

class Local {
  remote = false;
  requests = 0;
  bytesRead = 0;

  constructor(content, name) {
    this.content = content;
    this.name = name;
    this.size = content.size ?? content.length;
  }

  async read(start, stop) {
    this.requests++;
    const end = Math.min(stop, this.size);
    this.bytesRead += Math.max(0, end - start);
    if (start >= end) return new Uint8Array(0);
    if (this.content instanceof Uint8Array) return this.content.subarray(start, end);
    return new Uint8Array(await this.content.slice(start, end).arrayBuffer());
  }
}

class Remote {
  remote = true;
  requests = 0;
  bytesRead = 0;

  constructor(url, { headers, signal, fetch: get = globalThis.fetch }) {
    this.name = url;
    const here = globalThis.location;
    // Elsewhere a browser would ask the server first whether it may ask for several (CORS).
    if (here && new URL(url, here).origin !== here.origin) this._takesSeveral = false;
    this._ask = (range) =>
      get(url, { headers: { ...headers, Range: `bytes=${range}` }, signal });
  }

  async read(start, stop) {
    if (this.size !== undefined) stop = Math.min(stop, this.size);
    if (start >= stop) return new Uint8Array(0);
    this.requests++;
    const response = await this._ask(`${start}-${stop - 1}`);
    const refuse = (why) => {
      drop(response);
      throw new IndexingError(`${this.name}: ${why}`, undefined, start);
    };
    if (isCoded(response)) refuse("the server codes what it sends, so that ranges of it mean nothing");
    const [, first, last, total] =
      /^bytes (?:(\d+)-(\d+)|\*)\/(\d+)$/.exec(response.headers.get("Content-Range") ?? "") ?? [];
    if (response.status === 416 && total !== undefined && Number(total) <= start) {
      drop(response);
      this._same(total, response, refuse);
      return new Uint8Array(0);
    }
    if (response.status === 200) {
      // A file no larger than what was asked may come whole.
      const length = response.headers.get("Content-Length");
      if (start || length === null || Number(length) > stop) refuse("the server does not answer ranges");
      this._same(length, response, refuse);
      return this._body(response, this.size, refuse);
    }
    if (response.status !== 206) refuse(`HTTP status ${response.status}`);
    if (Number(first) !== start || !(last < stop) || Number(last) < start || !(Number(total) > last)) {
      refuse(`the answer is another range (${response.headers.get("Content-Range")})`);
    }
    this._same(total, response, refuse);
    return this._body(response, last - start + 1, refuse, Math.min(stop, this.size) - start);
  }

  /** Several ranges at once, in few requests. */
  async readMany(ranges) {
    const found = ranges.map(() => undefined);
    const order = ranges.map((_, n) => n).sort((a, b) => ranges[a][0] - ranges[b][0]);
    // Ranges of one request must not overlap (RFC 9110, 17.15).
    const some = order.filter((one, n) => {
      const [start, stop] = ranges[one];
      return stop - start <= LARGEST_PART && start < this.size && !(n && ranges[order[n - 1]][1] > start);
    });
    const groups = [];
    const count = Math.ceil(some.length / MOST_PARTS);
    for (let n = 0; n < count && some.length > 1; n++) groups.push(some.filter((_, at) => at % count === n));
    const several = async (group) => {
      const parts = await this._several(group.map((one) => ranges[one]));
      group.forEach((one, n) => (found[one] = parts?.[n]));
    };
    // Whether the server answers several ranges, the first group shows.
    if (this._takesSeveral === undefined && groups.length) await several(groups.shift());
    if (this._takesSeveral) await inTurns(groups, several);
    const rest = order.filter((one) => !found[one]);
    await inTurns(rest, async (one) => (found[one] = await this.read(...ranges[one])));
    return found;
  }

  /** The bytes of ranges that one request requests; undefined where they do not come. */
  async _several(ranges) {
    this.requests++;
    const ends = ranges.map(([start, stop]) => [start, Math.min(stop, this.size)]);
    let parts;
    try {
      const response = await this._ask(ends.map(([start, stop]) => `${start}-${stop - 1}`).join(","));
      const [, boundary] = /^multipart\/byteranges;.*boundary="?([^";]+)/i.exec(response.headers.get("Content-Type") ?? "") ?? [];
      const isSame = (response.headers.get("ETag") ?? undefined) === this.etag;
      if (response.status === 206 && boundary && isSame && !isCoded(response)) {
        const most = ends.reduce((sum, [start, stop]) => sum + stop - start + PART_HEAD, PART_HEAD);
        parts = partsOf(await bodyOf(response, most), boundary, this.size);
      } else drop(response);
    } catch (error) {
      if (error.name === "AbortError") throw error;
    }
    this._takesSeveral = Boolean(parts?.length);
    const pieces = ends.map(([start, stop]) => {
      const one = parts?.find((part) => part.start <= start && part.start + part.bytes.length >= stop);
      this.bytesRead += one ? stop - start : 0;
      return one?.bytes.subarray(start - one.start, stop - one.start);
    });
    return pieces;
  }

  /** Refuses an answer of another version of the file. */
  _same(total, response, refuse) {
    const size = Number(total);
    if (!Number.isSafeInteger(size)) refuse("the size of the file cannot be counted here");
    const etag = response.headers.get("ETag") ?? undefined;
    if (this.size !== undefined && (size !== this.size || etag !== this.etag)) {
      refuse("the file has changed while it was read");
    }
    [this.size, this.etag] = [size, etag];
  }

  /** The body of an answer, which has so many bytes, and no more of it than that. */
  async _body(response, size, refuse, asked = size) {
    if (size !== asked) refuse(`${asked} bytes were requested, and ${size} came`);
    const bytes = await bodyOf(response, size);
    const { length } = bytes;
    if (length < size) throw new IndexingError(`${this.name}: ${size} bytes were announced, ${length} came`);
    this.bytesRead += size;
    return bytes;
  }
}

const isCoded = (response) => !["identity", null].includes(response.headers.get("Content-Encoding"));

/** Leaves an answer unread; of a broken connection this may never end, so that nothing waits for it. */
function drop(response) {
  response.body?.cancel().catch(() => undefined);
}

/** The body of an answer; refused where it has more bytes than that. */
async function bodyOf(response, most) {
  const pieces = [];
  let length = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    pieces.push(value);
    length += value.length;
    if (length > most) {
      reader.cancel().catch(() => undefined);
      throw new IndexingError(`${response.url}: more bytes came than were requested`);
    }
  }
  if (pieces.length === 1) return pieces[0];
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** The parts of a multipart/byteranges: where each starts, and its bytes (RFC 9110, 14.6). */
function partsOf(body, boundary, size) {
  const text = (from, to) => String.fromCharCode(...body.subarray(from, to));
  const parts = [];
  let at = 0;
  while (at < body.length) {
    const head = text(at, at + PART_HEAD);
    const lines = /^(?:\r\n)?--([^\r\n]*)\r\n((?:[^\r\n]+\r\n)+)\r\n/.exec(head);
    if (lines?.[1] !== boundary) break;
    const [, first, last, total] = /content-range: *bytes (\d+)-(\d+)\/(\d+)/i.exec(lines[2]) ?? [];
    const from = at + lines[0].length;
    at = from + Number(last) - Number(first) + 1;
    if (Number(total) !== size || !(at > from) || at > body.length) return undefined;
    parts.push({ start: Number(first), bytes: body.subarray(from, at) });
  }
  return parts;
}

/** Does work for each element, so many at once. */
async function inTurns(elements, work) {
  const left = elements.slice();
  const turns = Array.from({ length: Math.min(AT_ONCE, left.length) }, async () => {
    while (left.length) await work(left.shift());
  });
  await Promise.all(turns);
}
