// A small picture of the moment at the pointer, next to the time line.

import { ask, tokenOf, API } from "./api.js";
import { h } from "./dom.js";
import { clock } from "./format.js";

const WIDE = 160;
const PICTURES = 100; // of a film: one sheet

export function storyboard(line, video, place, signal) {
  const picture = h("div.picture", { hidden: true });
  const words = h("span");
  const box = h("div.peek", { "aria-hidden": "true", hidden: true }, picture, words);
  let tiles = null;

  line.addEventListener("pointermove", (event) => {
    tiles ??= load(video.duration, place, signal);
    const frame = line.getBoundingClientRect();
    const part = Math.min(Math.max((event.clientX - frame.left) / frame.width, 0), 1);
    const time = part * video.duration;
    if (!Number.isFinite(time)) return;
    box.hidden = false;
    words.textContent = clock(time, 0);
    const half = box.offsetWidth / 2;
    box.style.left = `${Math.min(Math.max(part * frame.width, half + 4), frame.width - half - 4)}px`;
    tiles.then((all) => {
      const tile = all.findLast((one) => one.start <= time) ?? all[0];
      if (!tile) return;
      const { x, y, wide, high } = tile;
      picture.hidden = false;
      picture.style.cssText = "";
      Object.assign(picture.style, { width: `${wide}px`, height: `${high}px`,
        backgroundImage: `url("${tile.url}")`,
        backgroundPosition: `-${x}px -${y}px` });
    });
  });
  line.addEventListener("pointerleave", () => { box.hidden = true; });
  return box;
}

async function load(duration, place, signal) {
  const every = Math.max(1, Math.ceil(duration / PICTURES));
  try {
    const token = await tokenOf(place);
    const path = `${place}/storyboard.vtt?every_ms=${1000 * every}&w=${WIDE}`;
    const text = await (await ask(path, { signal })).text();
    return tilesOf(text, new URL(API + path, document.baseURI), token);
  } catch {
    return []; // a video without pictures is found by its times
  }
}

function tilesOf(text, base, token) {
  const found = [];
  for (const cue of text.split("\n\n")) {
    const [times, address] = cue.split("\n").slice(-2);
    const start = times?.match(/^([\d:.]+) -->/)?.[1];
    const place = address?.match(/^(.+)#xywh=(\d+),(\d+),(\d+),(\d+)$/);
    if (!start || !place) continue;
    const [x, y, wide, high] = place.slice(2).map(Number);
    const seconds = start.split(":").reduce((sum, part) => sum * 60 + Number(part), 0);
    const url = new URL(place[1], base);
    url.searchParams.set("token", token);
    found.push({ start: seconds, url: url.href, x, y, wide, high });
  }
  return found;
}
