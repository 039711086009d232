/** What an index is made from: bytes, a File or Blob, or a URL that is read by ranges. */
import { IndexingError } from "./boxes.js";

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
    this._ask = (range) =>
      get(url, { headers: { ...headers, Range: `bytes=${range}` }, signal });
  }

  async read(start, stop) {
    if (this.size !== undefined) stop = Math.min(stop, this.size);
    if (start >= stop) return new Uint8Array(0);
    this.requests++;
    const response = await this._ask(`${start}-${stop - 1}`);
    const refuse = async (why) => {
      await response.body?.cancel().catch(() => undefined);
      throw new IndexingError(`${this.name}: ${why}`, undefined, start);
    };
    const [, first, last, total] =
      /^bytes (?:(\d+)-(\d+)|\*)\/(\d+)$/.exec(response.headers.get("Content-Range") ?? "") ?? [];
    if (response.status === 416 && total !== undefined && Number(total) <= start) {
      await response.body?.cancel();
      await this._same(total, response, refuse);
      return new Uint8Array(0);
    }
    if (response.status === 200 && start === 0) {
      // A file no larger than what was asked may come whole.
      const length = response.headers.get("Content-Length");
      if (length === null || Number(length) > stop || response.headers.get("Content-Encoding")) {
        await refuse("the server does not answer ranges");
      }
      await this._same(length, response, refuse);
      return this._body(response, this.size, refuse);
    }
    if (response.status === 200) await refuse("the server does not answer ranges");
    if (response.status !== 206) await refuse(`HTTP status ${response.status}`);
    if (Number(first) !== start || !(last < stop) || Number(last) < start || !(Number(total) > last)) {
      await refuse(`the answer is another range (${response.headers.get("Content-Range")})`);
    }
    await this._same(total, response, refuse);
    return this._body(response, last - start + 1, refuse, Math.min(stop, this.size) - start);
  }

  /** Refuses an answer of another version of the file. */
  async _same(total, response, refuse) {
    const size = Number(total);
    if (!Number.isSafeInteger(size)) await refuse("the size of the file cannot be counted here");
    const etag = response.headers.get("ETag") ?? undefined;
    if (this.size !== undefined && (size !== this.size || etag !== this.etag)) {
      await refuse("the file has changed while it was read");
    }
    [this.size, this.etag] = [size, etag];
  }

  /** The body of an answer, which has so many bytes, and no more of it than that. */
  async _body(response, size, refuse, asked = size) {
    const bytes = new Uint8Array(size);
    let length = 0;
    if (size !== asked) await refuse(`${asked} bytes were requested, and ${size} came`);
    for (const reader = response.body.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      if (length + value.length > size) {
        await reader.cancel();
        throw new IndexingError(`${this.name}: more bytes came than were requested`);
      }
      bytes.set(value, length);
      length += value.length;
    }
    if (length < size) throw new IndexingError(`${this.name}: ${size} bytes were announced, ${length} came`);
    this.bytesRead += size;
    return bytes;
  }
}
