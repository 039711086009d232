// Pictures of a film at even distances, made by the browser from the film itself.

import { h } from "./dom.js";
import { clock } from "./format.js";

const PICTURES = 12;
const WIDE = 240;

// `player`: the video that a picture leads to its moment.
export function contactSheet(url, player, signal) {
  const items = Array.from({ length: PICTURES }, () => h("li"));
  const element = h("section", {}, h("h2", {}, "Contact sheet"), h("ol.sheet", { "aria-label": "Contact sheet" }, items));
  element.style.setProperty("--shape", player.style.aspectRatio);
  draw(url, player, items, signal).catch(() => {
    // a film that this browser cannot play has none
    if (!signal.aborted) element.remove();
  });
  return element;
}

async function draw(url, player, items, signal) {
  const video = h("video", { src: url, muted: true, preload: "auto", playsInline: true });
  const close = () => {
    video.removeAttribute("src");
    video.load();
  };
  signal.addEventListener("abort", close);
  await happened(video, "loadeddata", signal);
  const high = Math.round(WIDE * video.videoHeight / video.videoWidth);
  for (const [n, item] of items.entries()) {
    const time = video.duration * (n + 0.5) / PICTURES;
    video.currentTime = time;
    await happened(video, "seeked", signal);
    const canvas = h("canvas", { width: WIDE, height: high, "aria-hidden": "true" });
    canvas.getContext("2d").drawImage(video, 0, 0, WIDE, high);
    const go = () => {
      player.currentTime = time;
      player.scrollIntoView({ block: "nearest" });
    };
    item.append(h("button", { type: "button", onclick: go },
      canvas, h("span", {}, h("span.unseen", {}, "Go to "), clock(time, 1))));
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
