// The segments of all tracks over time: a slider that is also a picture.

import { bytesText, clock, count } from "./format.js";

const LANE = 46; // pixels
const AXIS = 20;

export class Timeline {
  constructor(element, canvas, playhead, readout, sought, signal) {
    Object.assign(this, { element, canvas, playhead, readout });
    this.lanes = [];
    this.time = 0;
    element.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      element.focus();
      sought(this.timeOf(event));
    });
    element.addEventListener("pointermove", (event) => this.read(this.timeOf(event), event));
    element.addEventListener("pointerleave", () => this.read(this.time));
    element.addEventListener("keydown", (event) => {
      const time = this.step(event.key);
      if (time === null || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      sought(time);
    });
    const sizes = new ResizeObserver(() => this.draw());
    sizes.observe(element);
    signal.addEventListener("abort", () => sizes.disconnect());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw(), { signal });
    addEventListener("fragdex.theme", () => this.draw(), { signal });
  }

  show(lanes) {
    this.lanes = lanes;
    const filled = lanes.filter((lane) => lane.count);
    this.start = Math.min(...filled.map((lane) => lane.start));
    this.end = Math.max(...filled.map((lane) => lane.end));
    // keys go by the segments of the picture
    this.main = filled.find((lane) => lane.kind === "video" && lane.id >= 0) ?? filled[0];
    this.element.style.height = `${lanes.length * LANE + AXIS}px`;
    this.element.setAttribute("aria-valuemin", this.start.toFixed(3));
    this.element.setAttribute("aria-valuemax", this.end.toFixed(3));
    this.time = Math.max(this.start, 0); // sound often begins a little before the video
    this.draw();
  }

  place(time) {
    this.time = time;
    this.playhead.style.transform = `translateX(${this.x(time)}px)`;
    this.element.setAttribute("aria-valuenow", time.toFixed(3));
    const n = this.main.at(time);
    this.element.setAttribute("aria-valuetext",
      `${clock(time)}, segment ${n + 1} of ${this.main.count}`);
    this.read(time);
  }

  // What lies at a time: of the lane under the pointer, or of the main one.
  read(time, event) {
    const box = this.element.getBoundingClientRect();
    const row = event ? Math.floor((event.clientY - box.top) / LANE) : -1;
    const lane = this.lanes[row]?.count ? this.lanes[row] : this.main;
    if (!lane) return;
    const n = lane.at(time);
    const { offset, size } = lane.place(n);
    this.readout.textContent = `${clock(time)} · ${lane.name}, segment ${n + 1} of ${lane.count}: `
      + `${clock(lane.starts[n])} to ${clock(lane.ends[n])}, `
      + `bytes ${count(offset)}–${count(offset + size - 1)} (${bytesText(size)})`;
  }

  step(key) {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: -10, PageDown: 10 };
    if (key === "Home") return this.start;
    if (key === "End") return this.end;
    if (!(key in by)) return null;
    const n = this.main.at(this.time + 0.001) + by[key];
    return this.main.starts[Math.min(Math.max(n, 0), this.main.count - 1)];
  }

  x(time) {
    return (time - this.start) / (this.end - this.start || 1) * this.element.clientWidth;
  }

  timeOf(event) {
    const box = this.element.getBoundingClientRect();
    const part = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    return this.start + part * (this.end - this.start);
  }

  // Soon, and once for all that happens until then.
  drawSoon() {
    this.drawing ??= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.drawing = null;
    const width = this.element.clientWidth;
    if (!width || !this.lanes.length) return;
    const height = this.lanes.length * LANE + AXIS;
    const scale = devicePixelRatio;
    this.canvas.width = width * scale;
    this.canvas.height = height * scale;
    const pen = this.canvas.getContext("2d");
    pen.scale(scale, scale);
    const style = getComputedStyle(this.canvas);
    const colour = (name) => {
      this.canvas.style.color = `var(${name})`; // as it is in these colours, light or dark
      return style.color;
    };
    pen.font = `11px ${style.fontFamily}`;
    this.lanes.forEach((lane, row) => {
      const floor = (row + 1) * LANE;
      pen.fillStyle = colour("--soft");
      pen.fillText(lane.title, 4, floor - LANE + 13);
      pen.fillStyle = colour("--line");
      pen.fillRect(0, floor - 1, width, 1);
      this.bars(pen, lane, floor - 1, colour(lane.id < 0 ? "--scrub" : `--${lane.kind}`));
    });
    this.axis(pen, width, height, colour("--soft"));
    this.place(this.time);
  }

  bars(pen, lane, floor, colour) {
    const rate = (n) => lane.sizes[n] / Math.max(lane.ends[n] - lane.starts[n], 1e-3);
    let most = 0;
    for (let n = 0; n < lane.count; n++) most = Math.max(most, rate(n));
    pen.fillStyle = colour;
    for (let n = 0; n < lane.count; n++) {
      const left = this.x(lane.starts[n]);
      const wide = this.x(lane.ends[n]) - left;
      const high = 4 + (LANE - 22) * rate(n) / (most || 1);
      pen.globalAlpha = lane.fetched.has(n) ? 1 : 0.35;
      pen.fillRect(left, floor - high, Math.max(wide - (wide > 3 ? 1 : 0), 0.5), high);
    }
    pen.globalAlpha = 1;
  }

  axis(pen, width, height, colour) {
    const span = this.end - this.start;
    const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200];
    const step = steps.find((wanted) => wanted / span * width >= 64) ?? 14400;
    pen.fillStyle = colour;
    for (let n = Math.ceil(this.start / step); n * step <= this.end; n++) {
      const x = this.x(n * step);
      pen.fillRect(Math.min(x, width - 1), height - AXIS, 1, 4);
      const text = clock(n * step, step < 1 ? 1 : 0);
      const wide = pen.measureText(text).width;
      pen.fillText(text, Math.min(Math.max(x - wide / 2, 0), width - wide), height - 4);
    }
  }
}
