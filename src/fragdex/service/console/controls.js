// The controls of the player, by pointer and by keys.

import { h, icon } from "./dom.js";
import { clock } from "./format.js";

const SPEEDS = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3];
const KEYS = [["Space or k", "Play, pause"], [", and .", "Picture by picture"], ["← and →", "5 seconds"],
  ["j and l", "10 seconds"], ["↑ and ↓", "Louder, softer"], ["m", "Mute"], ["c", "Captions"], ["i and o", "In and out points"],
  ["f", "Full screen"], ["/", "Search"]];

// `does`: seek(time), step(by), captions(), and, where clips are cut, mark(which).
export function controls(video, screen, does, signal) {
  const on = { signal };
  const button = (name, label, onclick) =>
    h("button.tool", { type: "button", "aria-label": label, title: label, onclick }, icon(name));
  const turn = () => (video.paused ? video.play().catch(() => {}) : video.pause());
  const play = button("play", "Play", turn);
  const mute = button("speaker", "Mute", () => { video.muted = !video.muted; });
  const whole = button("whole", "Full screen", () => {
    if (document.fullscreenElement) document.exitFullscreen();
    else (screen.requestFullscreen ?? video.webkitEnterFullscreen)?.call(screen.requestFullscreen ? screen : video);
  });
  const time = h("span#time", {}, "0:00");
  const line = h("input#line", { type: "range", min: 0, max: 1, step: "any", value: 0, "aria-label": "Position" });
  const speed = h("select#speed", { "aria-label": "Speed" },
    SPEEDS.map((one) => h("option", { value: one }, `${one}×`)));
  speed.value = "1";
  speed.addEventListener("change", () => { video.playbackRate = Number(speed.value); });
  const sound = h("select#sound", { "aria-label": "Sound", hidden: true });
  const captions = h("select#captions", { "aria-label": "Captions" }, h("option", { value: "" }, "No captions"));

  const draw = () => {
    const end = Number.isFinite(video.duration) ? video.duration : 0;
    line.max = end || 1;
    line.value = video.currentTime;
    line.setAttribute("aria-valuetext", `${clock(video.currentTime, 1)} of ${clock(end, 0)}`);
    line.style.setProperty("--part", `${end ? video.currentTime / end * 100 : 0}%`);
    time.textContent = `${clock(video.currentTime, video.paused ? 3 : 0)} / ${clock(end, 0)}`;
  };
  const look = () => {
    play.replaceChildren(icon(video.paused ? "play" : "pause"));
    play.ariaLabel = play.title = video.paused ? "Play" : "Pause";
    mute.replaceChildren(icon(video.muted ? "mute" : "speaker"));
    mute.ariaLabel = mute.title = video.muted ? "Unmute" : "Mute";
    draw();
  };
  for (const name of ["timeupdate", "seeking", "durationchange"]) video.addEventListener(name, draw, on);
  for (const name of ["play", "pause", "volumechange"]) video.addEventListener(name, look, on);
  video.addEventListener("click", turn, on);
  line.addEventListener("input", () => does.seek(Number(line.value)));
  look();

  const by = (seconds) => does.seek(Math.max(video.currentTime + seconds, 0));
  const louder = (part) => { video.volume = Math.min(Math.max(video.volume + part, 0), 1); };
  const deeds = {
    " ": turn, k: turn, ",": () => does.step(-1), ".": () => does.step(1), j: () => by(-10), l: () => by(10),
    ArrowLeft: () => by(-5), ArrowRight: () => by(5), ArrowUp: () => louder(0.1), ArrowDown: () => louder(-0.1),
    m: () => mute.click(), f: () => whole.click(), c: () => does.captions(), i: () => does.mark?.("in"), o: () => does.mark?.("out"),
  };
  document.addEventListener("keydown", (event) => {
    const deed = deeds[event.key];
    if (!deed || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const { target } = event;
    if (target.matches("textarea, select, [contenteditable], [role=slider], [role=tab], input:not([type=range])")) return;
    if (event.key === " " && target.matches("button, summary, a")) return;
    // arrows up and down scroll, unless the player has the focus
    if (/Up|Down/.test(event.key) && !target.closest(".stage")) return;
    event.preventDefault();
    deed();
  }, on);

  const bar = h("div.bar", {}, play,
    button("back", "Picture before (,)", () => does.step(-1)),
    button("next", "Next picture (.)", () => does.step(1)),
    time, h("span.gap"), captions, sound, speed, mute, whole);
  const help = h("details.keys", {}, h("summary", {}, "Keys"),
    h("dl", {}, KEYS.map(([key, what]) => h("div", {}, h("dt", {}, key), h("dd", {}, what)))));
  return { line, bar, help, sound, captions };
}
