// Pictures of a video at even distances, made by the browser from the video itself.

import { h } from "./dom.js";
import { clock } from "./format.js";

const PICTURES = 12;
const WIDE = 240;

// `player`: the video that a picture leads to its moment; `shape`: its width by its height.
export function contactSheet(url, player, shape, signal) {
  const cells = Array.from({ length: PICTURES }, () => cellOf(player, Math.round(WIDE / shape)));
  const element = h("section", {}, h("h2", {}, "Contact sheet"),
    h("ol.sheet", { "aria-label": "Contact sheet" }, cells.map(({ button }) => h("li", {}, button))));
  draw(url, cells, signal).catch(() => {
    // a video that this browser cannot play has none
    if (!signal.aborted) element.remove();
  });
  return element;
}

function cellOf(player, high) {
  const cell = { canvas: h("canvas", { width: WIDE, height: high, "aria-hidden": "true" }), words: h("span", {}, "…") };
  const go = () => {
    player.currentTime = cell.time;
    player.scrollIntoView({ block: "nearest" });
  };
  cell.button = h("button", { type: "button", disabled: true, onclick: go }, cell.canvas, cell.words);
  return cell;
}

async function draw(url, cells, signal) {
  const video = h("video", { src: url, muted: true, preload: "auto", playsInline: true });
  const close = () => {
    video.removeAttribute("src");
    video.load();
  };
  signal.addEventListener("abort", close);
  await happened(video, "loadeddata", signal);
  for (const [n, cell] of cells.entries()) {
    cell.time = video.duration * (n + 0.5) / PICTURES;
    video.currentTime = cell.time;
    await happened(video, "seeked", signal);
    cell.canvas.getContext("2d").drawImage(video, 0, 0, cell.canvas.width, cell.canvas.height);
    cell.words.replaceChildren(h("span.unseen", {}, "Go to "), clock(cell.time, 1));
    cell.button.disabled = false;
  }
  close();
}

function happened(video, name, signal) {
  return new Promise((done, failed) => {
    video.addEventListener(name, done, { once: true, signal });
    video.addEventListener("error", () => failed(new Error(video.error?.message)), { once: true, signal });
    signal.addEventListener("abort", () => failed(signal.reason), { once: true });
  });
}
