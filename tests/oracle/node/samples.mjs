// What MP4Box.js says of files: node samples.mjs
//
// Each line on stdin is a JSON list of paths whose bytes, one behind the other, are one file: an
// initialization segment may stand before a segment. Each answer is one line of JSON:
//
//   opened     whether it found a moov
//   samples    track_ID -> [offset, size, dts, cts, sync, duration] of each sample, as it lists them
//   ends       track_ID -> [duration in mdhd, last sample_delta in stts or null]
//   fragments  what it parsed of each moof: start, and of each traf track_ID, tfdt, base_data_offset,
//              default-base-is-moof and [data_offset, sample_count] of each trun; null is "not there"
//
// Offsets count from the start of the joined bytes, times are ticks of the track's timescale.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

import { createFile } from "mp4box";

const BASE_DATA_OFFSET = 0x000001;
const DEFAULT_BASE_IS_MOOF = 0x020000;
const DATA_OFFSET = 0x000001;

console.error = () => {}; // it reports boxes it does not know; the answer is on stdout

function joined(paths) {
  const parts = paths.map((path) => readFileSync(path));
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  all.buffer.fileStart = 0;
  return all.buffer;
}

function samplesOf(track) {
  return (track.samples ?? []).map((one) => [
    one.offset,
    one.size,
    one.dts,
    one.cts,
    Number(one.is_sync),
    one.duration,
  ]);
}

function endOf(track) {
  const { mdhd, minf } = track.mdia;
  return [mdhd.duration, minf.stbl.stts?.sample_deltas.at(-1) ?? null];
}

function fragmentOf(traf) {
  const { tfhd, tfdt, truns } = traf;
  return {
    track: tfhd.track_id,
    tfdt: tfdt ? tfdt.baseMediaDecodeTime : null,
    base: tfhd.flags & BASE_DATA_OFFSET ? tfhd.base_data_offset : null,
    base_is_moof: Boolean(tfhd.flags & DEFAULT_BASE_IS_MOOF),
    runs: truns.map((run) => [
      run.flags & DATA_OFFSET ? run.data_offset : null,
      run.sample_count,
    ]),
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const movie = createFile(false); // media bytes are dropped, not kept
  movie.appendBuffer(joined(JSON.parse(line)), true);
  movie.flush();
  const tracks = movie.moov?.traks ?? [];
  const moofs = movie.moov ? movie.moofs : [];
  const byTrack = (say) => Object.fromEntries(tracks.map((one) => [one.tkhd.track_id, say(one)]));
  console.log(
    JSON.stringify({
      opened: Boolean(movie.moov),
      samples: byTrack(samplesOf),
      ends: byTrack(endOf),
      fragments: moofs
        .filter((box) => box.type === "moof")
        .map((moof) => ({ start: moof.start, trafs: moof.trafs.map(fragmentOf) })),
    }),
  );
}
