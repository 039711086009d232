// Plays a file from its index and ranges of bytes alone: for a moment, the initialization segment
// and the segment that holds the moment, each track from its own file (Media Source Extensions).

import { ask } from "./api.js";
import { defaultsOf, timesOf } from "./frames.js";

const AHEAD = 10; // seconds that are fetched before they are needed, while it plays
const WAITING = 0.5; // while it does not: a browser shows nothing before it has some pictures
const EDGE = 0.0005; // seconds: on the right side of a picture's time, however it is rounded
const BEHIND = 30; // seconds that are kept after they were shown
const STEPS_BACK = 8; // segments to go back for one that can be decoded from its start

// A track of the index: its segments as columns, in seconds and bytes.
export class Lane {
  constructor(id, told) {
    this.id = Number(id);
    this.told = told;
    this.kind = told.type;
    this.mime = `${told.type}/mp4; codecs="${told.codec}"`;
    this.init = told.initSegment;
    this.count = told.segments.length;
    const column = (value) => Float64Array.from(told.segments, value);
    this.starts = column((segment) => segment.cts / told.timescale);
    this.ends = column((segment) => (segment.cts + segment.duration) / told.timescale);
    this.offsets = column((segment) => segment.offset);
    this.sizes = column((segment) => segment.size);
    this.bytes = this.sizes.reduce((sum, size) => sum + size, 0);
    this.start = this.count ? this.starts[0] : 0;
    this.end = this.count ? this.ends[this.count - 1] : 0;
    this.fetched = new Set();
    this.frames = new Map(); // of segments that were fetched, the times of their pictures
  }

  // The last segment that starts at or before `time`; the first one where none does.
  at(time) {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.starts[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return Math.max(low - 1, 0);
  }

  // The last segment to fetch with the one at `at`, as one range: those that are shown within `wait`
  // seconds, as long as their bytes follow.
  upTo(at, time, wait) {
    let last = at;
    for (let next = at + 1; next < this.count && this.starts[next] < time + wait; last = next++) {
      if (this.offsets[last] + this.sizes[last] !== this.offsets[next]) break;
    }
    return last;
  }

  // Where the segment is in the track's file; -1: the initialization segment.
  place(n) {
    return n < 0 ? this.init : { offset: this.offsets[n], size: this.sizes[n] };
  }

  get name() {
    return this.id < 0 ? "scrub" : `${this.kind} ${this.id}`;
  }

  get title() {
    return [this.name, this.language].filter(Boolean).join(" · ");
  }
}

export class Player {
  // `address(lane)`: where a track's bytes are. `tell`: what is called as things happen:
  // began(time) and reached(time) of a seek, fetched(lane, n, ahead) of every range, where n is a
  // segment or -1 for the initialization segment, and failed(error).
  constructor(video, address, tell) {
    this.video = video;
    this.address = address;
    this.tell = tell;
    this.turn = Promise.resolve(); // one thing at a time is done to the buffers
    this.stop = new AbortController();
    this.closed = new AbortController();
  }

  async open(lanes, start = 0) {
    this.lanes = lanes;
    const options = { signal: this.closed.signal };
    this.source = new MediaSource();
    this.url = URL.createObjectURL(this.source);
    const opened = new Promise((done) => this.source.addEventListener("sourceopen", done, { once: true }));
    this.video.src = this.url;
    await opened;
    for (const lane of lanes) {
      lane.buffer = this.source.addSourceBuffer(lane.mime);
      lane.ready = false;
      lane.next = 0;
    }
    this.source.duration = Math.max(...lanes.map((lane) => lane.end));
    this.start = Math.max(0, Math.min(...lanes.map((lane) => lane.start)));
    this.video.addEventListener("seeking", () => this.load(this.video.currentTime), options);
    this.video.addEventListener("timeupdate", () => this.fill(), options);
    this.video.addEventListener("play", () => this.fill(), options);
    this.video.addEventListener("error", () => this.tell.failed(this.broken()), options);
    const first = Math.min(Math.max(start, this.start), Math.max(this.source.duration - 0.001, 0));
    this.load(first);
    if (first > 0) this.video.currentTime = first;
  }

  seek(time) {
    const last = this.source.duration;
    this.video.currentTime = Math.min(Math.max(time, this.start), Math.max(last - 0.001, 0));
  }

  // To the next picture (by 1) or the one before (by -1), as the fragments tell their times.
  step(by) {
    const lane = this.lanes.find((one) => one.kind === "video");
    if (!lane) return;
    this.video.pause();
    const now = this.video.currentTime + EDGE;
    const n = lane.at(now);
    const times = lane.frames.get(n) ?? [];
    const wanted = times.findLastIndex((time) => time <= now) + by;
    if (wanted >= 0 && wanted < times.length) this.seek(times[wanted] + EDGE);
    else if (by < 0) this.seek(lane.starts[n] - 4 * EDGE);
    else if (n + 1 < lane.count) this.seek(lane.starts[n + 1] + EDGE);
  }

  // Another track in the place of the one of its kind, from the moment that is shown.
  choose(lane) {
    this.stop.abort();
    this.turn = this.turn.then(() => this.swap(lane)).catch(() => this.tell.failed(this.broken(lane)));
    this.moment = NaN; // the same moment is needed again
    this.load(this.video.currentTime);
  }

  async swap(lane) {
    const at = this.lanes.findIndex((one) => one.kind === lane.kind);
    const { buffer, mime } = this.lanes[at];
    await settled(buffer, () => buffer.remove(0, Infinity));
    if (lane.mime !== mime) buffer.changeType(lane.mime);
    Object.assign(lane, { buffer, ready: false, next: 0 });
    this.lanes = this.lanes.with(at, lane);
  }

  close() {
    this.closed.abort();
    this.stop.abort();
    this.video.removeAttribute("src");
    this.video.load();
    URL.revokeObjectURL(this.url);
  }

  // What the moment needs; a later call ends an earlier one.
  load(time) {
    // the browser's own seek to the start
    if (this.busy && Math.abs(time - this.moment) < 1e-3) return;
    this.moment = time;
    this.tell.began(time);
    this.stop.abort();
    this.stop = new AbortController();
    const signal = this.stop.signal;
    this.run(signal, async () => {
      await Promise.all(this.lanes.map((lane) => this.reach(lane, time, signal)));
      this.tell.reached(time);
      await this.ahead(signal);
    });
  }

  fill() {
    if (!this.busy) this.run(this.stop.signal, () => this.ahead(this.stop.signal));
  }

  run(signal, work) {
    this.turn = this.turn.then(async () => {
      if (signal.aborted) return;
      this.busy = true;
      try {
        await work();
      } catch (error) {
        if (!signal.aborted) this.tell.failed(error);
      } finally {
        this.busy = false;
      }
    });
  }

  async reach(lane, time, signal) {
    const near = rangeAt(lane.buffer.buffered, time);
    // a browser takes the picture that begins just after the moment, where the one before is not here
    const later = near && near.start > time + EDGE && lane.kind === "video" && time >= lane.start;
    const there = later ? null : near;
    if (there) {
      lane.next = lane.at(there.end + 0.05) + (lane.end <= there.end + 0.05);
      const at = lane.next;
      // a segment that is half there is fetched again
      if (at < lane.count && (lane.starts[at] + lane.ends[at]) / 2 < there.end) lane.next++;
      return;
    }
    if (!lane.ready) {
      await this.append(lane, -1, signal, false);
      lane.ready = true;
    }
    const at = lane.at(time);
    const last = lane.upTo(at, time, WAITING);
    // Most files have segments that start with what needs nothing before it.
    for (let first = at; first >= Math.max(at - STEPS_BACK, 0); first--) {
      for (let n = first; n < at; n++) await this.append(lane, n, signal, false);
      await this.append(lane, at, signal, false, last);
      if (rangeAt(lane.buffer.buffered, time) || time < lane.start || time >= lane.end) break;
    }
    lane.next = last + 1;
    if (later) this.video.currentTime = time;
  }

  async ahead(signal) {
    const now = this.video.currentTime;
    for (const lane of this.lanes) {
      const { buffered } = lane.buffer;
      if (buffered.length && buffered.start(0) < now - 2 * BEHIND) {
        await settled(lane.buffer, () => lane.buffer.remove(0, now - BEHIND));
      }
      for (;;) {
        const until = this.video.currentTime + (this.video.paused ? WAITING : AHEAD);
        if (signal.aborted || lane.next >= lane.count || lane.starts[lane.next] >= until) break;
        await this.append(lane, lane.next, signal, true);
        lane.next++;
      }
    }
    const done = this.lanes.every((lane) => lane.next >= lane.count);
    if (done && this.source.readyState === "open") this.source.endOfStream();
  }

  // The segments `first` to `last`, whose bytes follow one another, by one request.
  async append(lane, first, signal, ahead, last = first) {
    const { offset } = lane.place(first);
    const end = lane.place(last);
    const headers = { Range: `bytes=${offset}-${end.offset + end.size - 1}` };
    const response = await ask(this.address(lane), { headers, signal });
    if (response.status !== 206) throw new Error("The service returned more than the requested range.");
    const whole = await response.arrayBuffer();
    for (let n = first; n <= last; n++) {
      const own = lane.place(n);
      await this.put(lane, n, whole.slice(own.offset - offset, own.offset - offset + own.size), ahead || n > first);
    }
  }

  async put(lane, n, bytes, ahead) {
    lane.fetched.add(n);
    if (n < 0) lane.defaults = defaultsOf(bytes);
    else if (lane.kind === "video") lane.frames.set(n, timesOf(bytes, lane, n));
    this.tell.fetched(lane, n, ahead);
    const put = () => settled(lane.buffer, () => lane.buffer.appendBuffer(bytes));
    try {
      await put();
    } catch (error) {
      if (error.name !== "QuotaExceededError") throw this.broken(lane) ?? error;
      const now = this.video.currentTime;
      await settled(lane.buffer, () => lane.buffer.remove(0, Math.max(now - 1, 0.001)));
      await settled(lane.buffer, () => lane.buffer.remove(now + AHEAD, Infinity));
      await put();
    }
  }

  broken(lane) {
    const why = this.video.error?.message;
    const what = lane ? `Track ${lane.name}` : "The file";
    return new Error(`${what} cannot be decoded by this browser${why ? ` (${why})` : ""}.`);
  }
}

async function settled(buffer, begin) {
  // what an aborted seek has begun is not over yet
  if (buffer.updating) {
    await new Promise((done) => buffer.addEventListener("updateend", done, { once: true }));
  }
  return new Promise((done, failed) => {
    buffer.onerror = () => failed(new Error("not decodable"));
    buffer.onupdateend = done;
    begin();
  });
}

// The buffered range that holds `time`; tracks do not start at the very same instant.
function rangeAt(buffered, time, slack = 0.1) {
  for (let n = 0; n < buffered.length; n++) {
    if (buffered.start(n) - slack <= time && time < buffered.end(n)) {
      return { start: buffered.start(n), end: buffered.end(n) };
    }
  }
  return null;
}
