export interface MediaSource {
  readonly name?: string;
  /** undefined until it is known */
  readonly size?: number;
  readonly etag?: string;
  readonly remote?: boolean;
  readonly requests?: number;
  readonly bytesRead?: number;
  /** Bytes from start to stop (exclusive), fewer only at the end. */
  read(start: number, stop: number): Promise<Uint8Array>;
  readMany?(ranges: [number, number][]): Promise<Uint8Array[]>;
}

export type Media = ArrayBuffer | Uint8Array | Blob | string | URL | MediaSource;

export interface SourceOptions {
  headers?: Record<string, string>;
  signal?: AbortSignal;
  fetch?: typeof fetch;
}

export interface MakeOptions extends SourceOptions {
  /** kinds of tracks with a table of samples, which `FrameIndex.frames` needs; true: all, false: none */
  samples?: boolean | readonly string[];
  /** the initialization segment of a file that is only segments */
  init?: Media;
  onProgress?(position: number, size: number): void;
}

/** A file that is damaged, or of which this module does not decide what it means. */
export class IndexingError extends Error {
  constructor(message: string, path?: string, offset?: number);
  readonly path?: string;
  readonly offset?: number;
}

/** The index of a file, as the bytes of a `.fidx`. */
export function makeIndex(what: Media, options?: MakeOptions): Promise<ArrayBuffer>;
export function openSource(what: Media, options?: SourceOptions): MediaSource;
