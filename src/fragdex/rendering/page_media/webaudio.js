// AudioContext on the clock of the render: an OfflineAudioContext that is led on from frame to frame
// and stands still in between, so that what the page changes at a frame is heard from that frame on.
(() => {
  "use strict";
  const room = window[Symbol.for("fragdex.media")];
  const Offline = window.OfflineAudioContext;
  if (!Offline) return;
  const RATE = 48000;
  const QUANTUM = 128;
  // As much as an analyser remembers; a longer step is made in several frames.
  const LONGEST = 32768;
  const PATIENCE = 5e7;
  const AHEAD = 1;
  const base = Object.getPrototypeOf(Offline.prototype);
  const own = (proto, key) => Object.getOwnPropertyDescriptor(proto, key);
  const reached = own(base, "currentTime").get;
  const end = own(base, "destination").get;
  const halt = Offline.prototype.suspend;
  const goOn = Offline.prototype.resume;
  const render = Offline.prototype.startRendering;
  const listen = EventTarget.prototype.addEventListener;
  const connect = AudioNode.prototype.connect;
  const samples = AnalyserNode.prototype.getFloatTimeDomainData;
  const later = setTimeout.bind(window);
  const hidden = new WeakMap();

  // What hears one context: its own nodes, and how far it was led.
  class Ear {
    constructor(context) {
      this.context = context;
      this.id = room.contexts.length;
      this.done = 0; // samples that were rendered
      this.ready = true;
      this.began = this.over = false;
      this.state = "running";
      // The context's time is `time` seconds at `at` milliseconds of the render.
      this.time = 0;
      this.at = room.exact(room.clock());
      this.feeds = [];
      this.waiting = [];
      const [over, under] = room.settings.fps;
      if (over < 10 * under) this.tick();
      const stereo = { channelCount: 2, channelCountMode: "explicit" };
      this.out = new GainNode(context, stereo);
      Object.setPrototypeOf(this.out, AudioDestinationNode.prototype);
      Object.defineProperty(this.out, "maxChannelCount", { value: 2 });
      // Two ways to part the sides: the outputs of one splitter do not begin in the same quantum.
      const left = { channelCount: 1, channelCountMode: "explicit", channelInterpretation: "discrete" };
      const split = new ChannelSplitterNode(context, { numberOfOutputs: 2 });
      const mute = new GainNode(context, { gain: 0 });
      this.taps = [new AnalyserNode(context, left), new AnalyserNode(context)];
      connect.call(this.out, this.taps[0]);
      connect.call(this.out, split);
      connect.call(split, this.taps[1], 1);
      for (const tap of this.taps) connect.call(tap, mute);
      connect.call(mute, end.call(context));
    }

    now(clock = room.clock()) {
      return this.state === "running" ? this.time + Math.max(0, clock - this.at) / 1000 : this.time;
    }

    // Lead it on to a time of the render; gives what was heard on the way.
    // To the quantum before it, so that what starts now is not late.
    step(clock, keep) {
      if (this.state !== "running" || this.over || !this.ready) return null;
      for (const feed of this.feeds) feed.more();
      const wanted = Math.floor((this.now(clock) * RATE) / QUANTUM + 1e-6) * QUANTUM;
      const target = Math.min(wanted, this.done + LONGEST);
      if (target <= this.done) return null;
      this.ready = false;
      halt.call(this.context, target / RATE).then(() => {
        this.ready = true;
      }, () => {
        this.over = true;
        room.refuse("an AudioContext that plays longer than the rest of its render may");
      });
      if (this.began) goOn.call(this.context);
      else render.call(this.context);
      this.began = true;
      // It is rendered by a thread of its own that asks nothing of this one: no time passes here.
      let left = PATIENCE;
      while (reached.call(this.context) * RATE < target - 0.5 && left > 0) left -= 1;
      if (left === 0) {
        this.over = true;
        room.refuse("an AudioContext that does not advance");
        return null;
      }
      const count = target - this.done;
      // Of the render's own samples; a context that rested meanwhile continues later.
      const first = Math.round((this.at / 1000 - this.time) * RATE) + this.done;
      this.done = target;
      return keep ? { context: this.id, first, data: this.take(count) } : null;
    }

    // Frames that are far from one another: it is led on in between.
    tick() {
      later(() => {
        if (room.begun()) this.waiting.push(this.step(room.clock(), true));
        this.tick();
      }, 100);
    }

    take(count) {
      let size = 32;
      while (size < count) size *= 2;
      const sound = new Float32Array(2 * count);
      this.taps.forEach((tap, side) => {
        tap.fftSize = size;
        const window = new Float32Array(size);
        samples.call(tap, window);
        for (let n = 0; n < count; n++) sound[2 * n + side] = window[size - count + n];
      });
      return sound.some((level) => level !== 0) ? new Uint8Array(sound.buffer).toBase64() : "";
    }

    rest(state) {
      const clock = room.clock();
      this.time = this.now(clock);
      this.at = room.exact(clock);
      if (this.state === state) return;
      this.state = state;
      room.task(() => this.context.dispatchEvent(new Event("statechange")));
    }
  }

  // The sound of a media element within a graph: pieces of it, each scheduled to the sample.
  class Feed {
    constructor(ear, player, node) {
      Object.assign(this, { ear, player, node, gain: node.gain, sources: [], sound: null, until: 0, number: 0 });
      ear.feeds.push(this);
    }

    change(sound) {
      const now = this.ear.now();
      if (sound !== undefined) {
        for (const source of this.sources) nativeStop.call(source, now);
        this.sources = [];
        this.sound = sound;
        this.until = Math.round(now * RATE);
        this.number += 1;
        this.fresh = true;
      }
      this.gain.setValueAtTime(this.player.gain, now);
      this.more();
    }

    more() {
      const context = this.ear.context;
      while (this.sound !== null && this.until < (this.ear.now() + AHEAD) * RATE) {
        const count = 2 * AHEAD * RATE;
        const { source, media, rate, loop, pitch } = this.sound;
        const feed = `${this.ear.id}.${this.player.id}.${this.number}`;
        const told = room.ask("sound", { feed, fresh: this.fresh, count, source, media, rate, loop, pitch });
        this.fresh = false;
        if (told === null) {
          this.sound = null;
          return;
        }
        const both = new Float32Array(Uint8Array.fromBase64(told).buffer);
        const buffer = new AudioBuffer({ length: count, numberOfChannels: 2, sampleRate: RATE });
        for (const side of [0, 1]) {
          const to = buffer.getChannelData(side);
          for (let n = 0; n < count; n++) to[n] = both[2 * n + side];
        }
        const piece = new AudioBufferSourceNode(context, { buffer });
        connect.call(piece, this.node);
        nativeStart.call(piece, this.until / RATE);
        this.sources = [...this.sources.slice(-3), piece];
        this.until += count;
      }
    }
  }

  const ear = (context) => hidden.get(context);
  const ElementSource = window.MediaElementAudioSourceNode;
  const refuse = (what) => {
    room.refuse(what);
    throw new DOMException(`${what} is live input, and refused`, "NotSupportedError");
  };

  const Native = window.AudioContext;
  // Of the browser's own kind as far as a page can tell: libraries part contexts by what they are.
  const AudioContext = function AudioContext(_options) {
    if (!new.target) throw new TypeError("Failed to construct 'AudioContext': use the 'new' operator");
    const length = Math.ceil(room.settings.seconds * RATE);
    const context = Reflect.construct(Offline, [1, length, RATE], new.target);
    if (room.contexts.length === 0) room.ask("listens", "");
    for (const kind of ["statechange", "complete"]) {
      listen.call(context, kind, (event) => event.isTrusted && event.stopImmediatePropagation());
    }
    const its = new Ear(context);
    hidden.set(context, its);
    room.contexts.push(its);
    room.task(() => context.dispatchEvent(new Event("statechange")));
    return context;
  };
  class Played {

    get currentTime() {
      return ear(this).now();
    }

    get state() {
      return ear(this).state;
    }

    get destination() {
      return ear(this).out;
    }

    get baseLatency() {
      return 0;
    }

    get outputLatency() {
      return 0;
    }

    getOutputTimestamp() {
      return { contextTime: this.currentTime, performanceTime: performance.now() };
    }

    suspend() {
      const its = ear(this);
      if (its.state === "closed") return Promise.reject(new DOMException("closed", "InvalidStateError"));
      its.rest("suspended");
      return Promise.resolve();
    }

    resume() {
      const its = ear(this);
      if (its.state === "closed") return Promise.reject(new DOMException("closed", "InvalidStateError"));
      its.rest("running");
      return Promise.resolve();
    }

    close() {
      const its = ear(this);
      if (its.state === "closed") return Promise.reject(new DOMException("closed", "InvalidStateError"));
      its.rest("closed");
      return Promise.resolve();
    }

    get sinkId() {
      return "";
    }

    setSinkId() {
      return Promise.resolve();
    }

    createMediaElementSource(element) {
      const its = ear(this);
      const player = room.adopt(element);
      if (player.routed) throw new DOMException("the element has a source already", "InvalidStateError");
      const node = new GainNode(this, { channelCount: 2, channelCountMode: "explicit" });
      const feed = new Feed(its, player, node);
      Object.setPrototypeOf(node, ElementSource.prototype);
      Object.defineProperty(node, "mediaElement", { value: element });
      const at = room.exact(room.clock());
      const last = player.sounds.at(-1);
      if (last && last.stop === null) last.stop = Math.max(at, last.start);
      player.routed = (sound) => feed.change(sound);
      player.settle();
      return node;
    }

    createMediaStreamSource() {
      return refuse("createMediaStreamSource");
    }

    createMediaStreamTrackSource() {
      return refuse("createMediaStreamTrackSource");
    }

    createMediaStreamDestination() {
      return refuse("createMediaStreamDestination");
    }

    // It would wait for this thread, which waits for it.
    createScriptProcessor() {
      room.refuse("createScriptProcessor");
      const node = new GainNode(this);
      return Object.assign(node, { onaudioprocess: null, bufferSize: 1024 });
    }
  }
  const proto = Native.prototype;
  for (const key of Object.getOwnPropertyNames(proto)) delete proto[key];
  for (const [key, form] of Object.entries(Object.getOwnPropertyDescriptors(Played.prototype))) {
    if (key !== "constructor") Object.defineProperty(proto, key, { ...form, enumerable: true });
  }
  // In the place of a constructor of the browser's, with the objects that it makes.
  const stand = (constructor, native) => {
    constructor.prototype = native.prototype;
    Object.setPrototypeOf(constructor, Object.getPrototypeOf(native));
    Object.defineProperty(native.prototype, "constructor", { value: constructor, configurable: true, writable: true });
    return constructor;
  };
  window.AudioContext = stand(AudioContext, Native);
  window.webkitAudioContext = AudioContext;
  window.MediaElementAudioSourceNode = stand(function MediaElementAudioSourceNode(context, { mediaElement }) {
    return context.createMediaElementSource(mediaElement);
  }, ElementSource);
  window.MediaStreamAudioSourceNode = stand(function MediaStreamAudioSourceNode() {
    return refuse("MediaStreamAudioSourceNode");
  }, window.MediaStreamAudioSourceNode);

  // "Now" is the time of the page, not of the last frame.
  const nativeStart = AudioBufferSourceNode.prototype.start;
  const nativeStop = AudioScheduledSourceNode.prototype.stop;
  const startOther = AudioScheduledSourceNode.prototype.start;
  const sooner = (node, when) => {
    const its = ear(node.context);
    return its === undefined ? when : Math.max(when, its.now());
  };
  AudioBufferSourceNode.prototype.start = function (when = 0, ...rest) {
    return nativeStart.call(this, sooner(this, when), ...rest);
  };
  AudioScheduledSourceNode.prototype.start = function (when = 0) {
    return startOther.call(this, sooner(this, when));
  };
  AudioScheduledSourceNode.prototype.stop = function (when = 0) {
    return nativeStop.call(this, sooner(this, when));
  };

  // Decoding and offline graphs take time of the machine: a page that loads is waited for.
  const waitedFor = (proto, name) => {
    const native = proto[name];
    proto[name] = function (...given) {
      room.loads();
      const promise = native.apply(this, given);
      const done = () => {
        room.loaded();
      };
      promise.then(done, done);
      return promise;
    };
  };
  waitedFor(base, "decodeAudioData");
  waitedFor(Offline.prototype, "startRendering");

  // Whether every context stands where it was last led to: its thread reports that in its own time.
  room.stands ??= () => room.contexts.every((its) => its.ready || its.over || its.state !== "running");

  // What was heard until now; where nobody keeps it, nothing.
  room.listen ??= (keep) => {
    const heard = room.contexts.flatMap((its) => [...its.waiting.splice(0), its.step(room.clock(), keep)]);
    return heard.filter((piece) => keep && piece?.data);
  };
})
