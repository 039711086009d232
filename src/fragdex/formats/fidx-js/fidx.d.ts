export interface ByteRange { start: number; stop: number }

export interface TrackInfo {
  readonly id: number;
  readonly kind: "video" | "audio" | "text" | "metadata" | "timecode" | "hint" | "other";
  readonly codec?: string | null;
  readonly width?: number | null;
  readonly height?: number | null;
  readonly timescale: number;
  readonly rotation: number | null;
  readonly mirrored: boolean;
  readonly period: number;
}

export interface SeekAnswer extends ByteRange {
  fragment: number;
  sample: number | null;
  cts: number;
  dts: number | null;
  time: number;
  clamped: boolean;
}

export interface Sample extends ByteRange { sample: number; sync: boolean; cts: number; dts: number }

export interface Source {
  name?: string;
  size?: number | null;
  etag?: string | null;
  md5?: string | null;
  mtime_ns?: number | null;
}

/** A `.fidx` that is damaged, of a later version, or without what the call needs. */
export class FrameIndexError extends Error {}

export class FrameIndex {
  /** @param buffer the bytes of a `.fidx` */
  constructor(buffer: ArrayBuffer);
  static load(url: string | URL, options?: RequestInit): Promise<FrameIndex>;
  readonly source: Source;
  readonly tracks: readonly TrackInfo[];
  init(period?: number): ByteRange[];
  seek(seconds: number, options?: { track?: number | TrackInfo }): SeekAnswer;
  span(start: number, stop: number, options?: { tracks?: readonly (number | TrackInfo)[] }): ByteRange[];
  frames(options?: { track?: number | TrackInfo; order?: "presentation" | "decode"; hidden?: boolean }): Frames;
}

export class Frames {
  private constructor();
  readonly track: TrackInfo;
  readonly length: number;
  readonly timescale: number;
  readonly ticks: readonly number[];
  readonly durations: readonly number[];
  readonly samples: readonly number[];
  time(number: number): number;
  duration(number: number): number;
  sync(number: number): boolean;
  numberAt(seconds: number): number;
  range(number: number): ByteRange;
  group(number: number): ByteRange & { samples: Sample[] };
  sample(number: number): Sample;
  decoderConfig(init: ArrayBuffer | Uint8Array): VideoDecoderConfig;
}

/** The checksum of RFC 1952; `before`: that of what stands in front. */
export function crc32(bytes: Uint8Array, before?: number): number;
/** The columns of each table of a `.fidx`, in order, and their types: `<i8`, `<u4` or `|b1`. */
export const TABLES: Record<"fragments" | "sync" | "samples" | "groups", Record<string, string>>;
/** How many elements at the start of a sorted array pass. */
export function after<T>(array: ArrayLike<T>, passes: (element: T) => boolean): number;
