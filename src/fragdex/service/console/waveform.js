// The waveform of what has sound alone, in the place of its pictures.

import { askJson } from "./api.js";
import { h } from "./dom.js";

const BARS = 400;
const HIGH = 100;

// `lane`: the sound, whose length tells how much is one bar.
export async function waveform(screen, place, lane, signal) {
  const rate = lane.told.sample_rate || 48000;
  const each = Math.max(2, Math.ceil((lane.end - lane.start) * rate / BARS));
  const { data, bits, channels } = await askJson(`${place}/peaks.json?samples_per_pixel=${each}`, { signal });
  const wide = 2 * channels; // the minimum and maximum of each channel
  const count = Math.floor(data.length / wide);
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", `0 0 ${count} ${HIGH}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const parts = Array.from({ length: count }, (_, n) =>
    Math.max(...data.slice(n * wide, (n + 1) * wide).map(Math.abs)));
  const most = Math.max(...parts, 2 ** (bits - 1) / 20); // what is silent stays so
  const path = parts.map((part, n) => {
    const high = Math.max(1, part / most * HIGH);
    return `M${n + 0.5} ${(HIGH - high) / 2}v${high}`;
  }).join("");
  const line = document.createElementNS(space, "path");
  line.setAttribute("d", path);
  svg.append(line);
  screen.append(h("div.waveform", {}, svg));
}
