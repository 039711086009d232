import type { FrameIndex, Frames, TrackInfo } from "./fidx.js";
import type { Media, MediaSource, SourceOptions } from "./make.js";

/** The pictures of one track cannot be decoded here. */
export class DecodingError extends Error {}

export class Windows {
  static open(what: Media, index: FrameIndex, options?: SourceOptions & { track?: number | TrackInfo }): Promise<Windows>;
  constructor(source: MediaSource, frames: Frames, config: VideoDecoderConfig);
  readonly frames: Frames;
  readonly source: MediaSource;
  readonly config: VideoDecoderConfig;
  /** One picture, which the caller closes. */
  frame(number: number): Promise<VideoFrame>;
  /** The pictures from `first` to `stop` (exclusive) in order; the caller closes each. */
  window(first: number, stop: number): AsyncGenerator<{ number: number; time: number; picture: VideoFrame }>;
}
