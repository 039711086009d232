// The speech of a video: captions and transcriptions that belong to it, and showing them.

import { ask, askJson } from "./api.js";
import { h } from "./dom.js";
import { stemOf } from "./uploads.js";

// All that is there, newest first: { id, name, words } and how to read it.
export async function captionsOf(file, signal) {
  const [files, heard] = await Promise.all([
    askJson("files?type=caption&status=ready&limit=200", { signal }),
    askJson("transcriptions?status=complete&limit=200", { signal }),
  ]);
  const stem = stemOf(file.filename);
  const names = new Set();
  const own = files.files.filter(({ filename }) => {
    const fits = filename.startsWith(`${stem}.`) && /\.(vtt|srt)$/i.test(filename) && !names.has(filename);
    names.add(filename);
    return fits;
  });
  const all = [
    ...heard.transcriptions.filter((one) => one.file_id === file.id).map((one) => ({
      id: one.id, since: one.created_at, name: `Transcription${one.language ? ` · ${one.language}` : ""}`,
      text: (options) => read(`transcriptions/${one.id}.vtt`, options),
      words: async (options) => (await askJson(`transcriptions/${one.id}.json`, options)).word_segments,
    })),
    ...own.map((one) => ({
      id: one.id, since: one.created_at, name: stemOf(one.filename.slice(stem.length + 1)) || one.filename,
      text: async (options) => vttOf(await read(`caption_files/${one.id}`, options)),
    })),
  ];
  return all.sort((one, other) => (one.since < other.since ? 1 : -1));
}

async function read(path, options) {
  return (await ask(path, options)).text();
}

// SubRip as WebVTT, which it nearly is.
function vttOf(text) {
  const plain = text.replace(/^\uFEFF/, "").replaceAll("\r\n", "\n");
  if (plain.startsWith("WEBVTT")) return plain;
  return `WEBVTT\n\n${plain.replace(/(\d\d:\d\d:\d\d),(\d{3})/g, "$1.$2")}`;
}

// The cues of captions, which the video then has; what was there before is taken out.
export async function attach(video, captions, shown, signal) {
  for (const track of video.querySelectorAll("track")) {
    URL.revokeObjectURL(track.src);
    track.remove();
  }
  if (!captions) return [];
  const text = await captions.text({ signal });
  const url = URL.createObjectURL(new Blob([text], { type: "text/vtt" }));
  const track = h("track", { kind: "captions", label: captions.name, src: url });
  const loaded = new Promise((done, failed) => {
    track.addEventListener("load", done);
    track.addEventListener("error", () => failed(new Error(`${captions.name}: these captions cannot be read.`)));
  });
  video.append(track);
  track.track.mode = shown ? "showing" : "hidden";
  await loaded;
  return Array.from(track.track.cues, (cue) =>
    ({ start: cue.startTime, end: cue.endTime, text: cue.getCueAsHTML().textContent }));
}

// WebVTT of segments, in which no text is taken for markup or for a time.
export function vtt(segments) {
  const cue = ({ start, end, text }) => `${stamp(start)} --> ${stamp(end)}\n${
    text.trim().replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replace(/\n+/g, "\n")}\n`;
  return `WEBVTT\n\n${segments.filter(({ text }) => text.trim()).map(cue).join("\n")}`;
}

function stamp(time) {
  const whole = Math.round(time * 1000);
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  return `${two(whole / 3600000)}:${two(whole / 60000 % 60)}:${two(whole / 1000 % 60)}.${String(whole % 1000).padStart(3, "0")}`;
}
