/**
 * Pictures of a video by number, with WebCodecs: only what they need is read and decoded.
 *
 *     import { Windows } from "./windows.js";
 *     const windows = await Windows.open(file, index); // a FrameIndex with samples
 *     const picture = await windows.frame(7);          // a VideoFrame: close it
 *     for await (const { number, picture } of windows.window(100, 116)) picture.close();
 */
import { openSource } from "./sources.js";

const LARGEST_GAP = 2 ** 16; // bytes between two samples that are read over
const MOST_QUEUED = 16; // pictures that wait for the decoder

/** The pictures of one track cannot be decoded here. */
export class DecodingError extends Error {
  name = "DecodingError";
}

export class Windows {
  /** The frames, as `FrameIndex.frames` gives them in order of presentation. */
  frames;
  /** What the video is read from: `requests`, `bytesRead`. */
  source;

  /** `what` and `options`: as `makeIndex` takes them; `track`: as `FrameIndex.frames`. */
  static async open(what, index, options = {}) {
    const source = openSource(what, options);
    const frames = index.frames({ track: options.track });
    const init = await Promise.all(index.init(frames.track.period).map(({ start, stop }) => source.read(start, stop)));
    const config = frames.decoderConfig(new Uint8Array(await new Blob(init).arrayBuffer()));
    const isKnown = config.codec && typeof VideoDecoder !== "undefined";
    if (!isKnown || !(await VideoDecoder.isConfigSupported(config)).supported) {
      throw new DecodingError(`this browser cannot decode ${config.codec ?? "the pictures"}`);
    }
    return new Windows(source, frames, config);
  }

  constructor(source, frames, config) {
    Object.assign(this, { source, frames, config });
    this._numbers = new Int32Array(frames.samples.reduce((most, sample) => Math.max(most, sample), -1) + 1).fill(-1);
    frames.samples.forEach((sample, number) => (this._numbers[sample] = number));
  }

  /** One picture, as a VideoFrame that the caller closes. */
  async frame(number) {
    for await (const { picture } of this.window(number, number + 1)) return picture;
    return undefined;
  }

  /**
   * The pictures from `first` to `stop` (exclusive) in order: `{ number, time, picture }`.
   *
   * The caller closes each picture. What is decoded ahead is a few pictures; to leave the loop ends it.
   */
  async *window(first, stop) {
    const { frames } = this;
    if (!(first >= 0 && first <= stop && stop <= frames.length)) {
      throw new RangeError(`the window ${first} to ${stop} is outside of ${frames.length} frames`);
    }
    if (first === stop) return;
    let [from, last] = [Infinity, 0];
    for (let number = first; number < stop; number++) {
      const sample = frames.samples[number];
      [from, last] = [Math.min(from, frames._startOf(sample)), Math.max(last, sample)];
    }
    yield* this._decoded(from, last, first, stop);
  }

  async *_decoded(from, last, first, stop) {
    const ready = new Map();
    let [failed, wake] = [undefined, () => undefined];
    const decoder = new VideoDecoder({
      output: (picture) => {
        const number = this._numbers[picture.timestamp];
        if (number >= first && number < stop) ready.set(number, picture);
        else picture.close();
        wake();
      },
      error: (error) => {
        failed = error;
        wake();
      },
    });
    try {
      decoder.configure(this.config);
      let [next, isDone] = [from, false];
      for (let number = first; number < stop; number++) {
        while (!ready.has(number)) {
          if (failed) throw new DecodingError(`frame ${number} cannot be decoded (${failed.message})`);
          if (isDone) throw new DecodingError(`the decoder gave no frame ${number}`);
          if (next <= last) {
            const until = Math.min(next + MOST_QUEUED, last + 1);
            for (const chunk of await this._chunks(next, until)) decoder.decode(chunk);
            next = until;
          } else {
            await decoder.flush().catch((error) => (failed ??= error));
            isDone = true;
            continue;
          }
          // Until the decoder has taken what it was given, or gave the picture.
          while (!failed && !ready.has(number) && decoder.decodeQueueSize > 0) {
            await new Promise((resolve) => {
              wake = resolve;
              decoder.addEventListener("dequeue", resolve, { once: true });
            });
          }
        }
        const picture = ready.get(number);
        ready.delete(number);
        yield { number, time: this.frames.time(number), picture };
      }
    } finally {
      for (const picture of ready.values()) picture.close();
      if (decoder.state !== "closed") decoder.close();
    }
  }

  /** Samples in decode order, read in few pieces. */
  async _chunks(from, until) {
    const samples = Array.from({ length: until - from }, (_, n) => this.frames.sample(from + n));
    const pieces = [];
    for (const { start, stop } of samples.toSorted((a, b) => a.start - b.start)) {
      const piece = pieces.at(-1);
      if (piece && start - piece.stop <= LARGEST_GAP) piece.stop = Math.max(piece.stop, stop);
      else pieces.push({ start, stop });
    }
    for (const piece of pieces) piece.bytes = await this.source.read(piece.start, piece.stop);
    return samples.map(({ sample, start, stop, sync }) => {
      const piece = pieces.find((one) => one.start <= start && stop <= one.stop);
      const data = piece.bytes.subarray(start - piece.start, stop - piece.start);
      if (data.length < stop - start) throw new DecodingError(`sample ${sample} is not whole`);
      return new EncodedVideoChunk({ type: sync ? "key" : "delta", timestamp: sample, data });
    });
  }
}
