// Runs before the page's own scripts, in each of its frames: chance is taken out, and what a
// rendered page cannot have is refused by name. `tell` is a binding that leads to the record.
(() => {
  "use strict";
  const tell = globalThis.__fragdexTell;
  if (!tell) return;
  delete globalThis.__fragdexTell;
  const write = JSON.stringify;
  const refuse = (what) => { try { tell(write({ refused: String(what).slice(0, 1000) })); } catch {} };
  const block = (url, what) => {
    let full = String(url);
    try { full = new URL(full, location.href).href; } catch {}
    tell(write({ blocked: full.slice(0, 1000), reason: what }));
  };
  const put = (object, name, value) => {
    if (object) Object.defineProperty(object, name, { value, configurable: true, writable: true });
  };

  // ---- chance: xorshift128, seeded alike everywhere
  let a = 0x9e3779b9, b = 0x243f6a88, c = 0xb7e15162, d = 0x5bf03635;
  const next = () => {
    const t = a ^ (a << 11);
    a = b; b = c; c = d;
    d = (d ^ (d >>> 19) ^ t ^ (t >>> 8)) | 0;
    return d;
  };
  const integers = [
    Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array,
    Int32Array, Uint32Array, BigInt64Array, BigUint64Array,
  ];
  const fail = (name, message) => { throw new DOMException(message, name); };
  if (globalThis.Crypto) {
    put(Crypto.prototype, "getRandomValues", function getRandomValues(array) {
      if (!integers.some((kind) => array instanceof kind)) fail("TypeMismatchError", "not an array of integers");
      if (array.byteLength > 65536) fail("QuotaExceededError", "more than 65536 bytes");
      const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
      for (let i = 0; i < bytes.length; i += 1) bytes[i] = next() >>> 13;
      return array;
    });
    if (Crypto.prototype.randomUUID) {
      put(Crypto.prototype, "randomUUID", function randomUUID() {
        const hex = [8, 4, 4, 4, 12].map((n) => {
          let text = "";
          while (text.length < n) text += ((next() >>> 12) & 15).toString(16);
          return text;
        });
        hex[2] = "4" + hex[2].slice(1);
        hex[3] = "89ab"[next() & 3] + hex[3].slice(1);
        return hex.join("-");
      });
    }
  }
  const tells = (name, value) => {
    if (name in navigator) {
      Object.defineProperty(Navigator.prototype, name, { get: () => value, configurable: true });
    }
  };
  tells("hardwareConcurrency", 4);
  tells("deviceMemory", 8);
  // what tells how the machine is doing
  delete Navigator.prototype.getBattery;
  delete globalThis.PressureObserver;

  // ---- time: what the clocks tell is 0 while the page loads, and from time 0 on the time since
  // then, so that neither the loading nor the origin of Chromium's ticks can be seen.
  if (!globalThis.__fragdexClock) {
    const TICK = 10; // to a millisecond
    const EPOCH = 1700000000000;
    const RealDate = Date;
    const real = performance.now.bind(performance);
    const origin = performance.timeOrigin;
    const round = (ms) => Math.max(0, Math.round(ms * TICK) / TICK);
    // At time 0 they tell a little more than while the page loads: pages take 0 for "not begun"
    // (`if (!start) start = now`), and do nothing where no time has passed. A power of two, so that
    // differences of whole milliseconds are exact.
    const LITTLE = 2 ** -10;
    let [zero, zeroOfAll] = [-1, 0];
    // Where the clock is held; of all frames of the page alike, as `zeroOfAll`.
    let held = null;
    const since = (ms) => {
      if (zero < 0) return 0;
      return round((held === null ? ms : Math.max(zero, held - origin)) - zero) + LITTLE;
    };
    // A script that waits for the clock to move would wait for ever: so the clock moves by a tick
    // when it was looked at often enough, and stands still later until the time has caught up.
    const OFTEN = 10000;
    let [looks, seen, ahead] = [0, 0, 0];
    const patient = (ms) => {
      if (ms === seen) {
        looks += 1;
        if (looks >= OFTEN) {
          looks = 0;
          ahead += 1 / TICK;
        }
      } else {
        ahead = Math.max(0, seen + ahead - ms);
        seen = ms;
        looks = 0;
      }
      return ahead > 0 ? round(ms + ahead) : ms;
    };
    const now = () => patient(since(real()));
    const today = () => {
      const own = since(real());
      const all = zero < 0 ? 0 : round((held ?? origin + real()) - zeroOfAll);
      return EPOCH + Math.floor(round(all + patient(own) - own));
    };
    put(performance, "now", now);
    // Everything else that tells an instant tells the same one.
    const change = (kind, name, get, set) => {
      const real = kind && Object.getOwnPropertyDescriptor(kind.prototype, name);
      if (!real?.get) return null;
      Object.defineProperty(kind.prototype, name, {
        get() { return get(real.get.call(this), this); },
        set: real.set && function given(value) { real.set.call(this, set(value, this)); },
        configurable: true,
        enumerable: real.enumerable,
      });
      return real;
    };
    const instant = (ms, one) => (typeof ms === "number" && !(one instanceof ScrollTimeline) ? since(ms) : ms);
    change(globalThis.AnimationTimeline, "currentTime", instant);
    change(globalThis.Event, "timeStamp", instant);
    change(globalThis.IntersectionObserverEntry, "time", instant);
    change(globalThis.Performance, "timeOrigin", () => EPOCH + (zero < 0 ? 0 : origin + zero - zeroOfAll));
    // Animations that were told their start before time 0 is known.
    const told = new Map();
    const started = change(globalThis.Animation, "startTime",
      (ms, one) => {
        if (typeof ms !== "number" || !(one.timeline instanceof DocumentTimeline)) return ms;
        return zero < 0 ? (told.get(one) ?? 0) : ms - zero;
      },
      (ms, one) => {
        told.delete(one);
        if (typeof ms !== "number" || !(one.timeline instanceof DocumentTimeline)) return ms;
        if (zero < 0) told.set(one, ms);
        return ms + (zero < 0 ? real() : zero);
      });
    const FakeDate = function Date(...given) {
      if (!new.target) return new RealDate(today()).toString();
      return Reflect.construct(RealDate, given.length ? given : [today()], new.target);
    };
    FakeDate.prototype = RealDate.prototype;
    FakeDate.now = today;
    FakeDate.parse = RealDate.parse;
    FakeDate.UTC = RealDate.UTC;
    put(RealDate.prototype, "constructor", FakeDate);
    put(globalThis, "Date", FakeDate);
    // A frame may have to be drawn again, a microsecond later, which the browser may round up to
    // the next step; the clock stands meanwhile, so frames are told its time. What the page asked
    // for happens once: no frame is 1 ms from the one before.
    const realFrame = requestAnimationFrame.bind(globalThis);
    let [numbers, last, asked, waiting] = [0, -Infinity, false, new Map()];
    const ask = () => {
      if (!asked) realFrame(happen);
      asked = true;
    };
    const happen = () => {
      const ms = real();
      asked = false;
      if (ms - last < 0.5) {
        ask();
        return;
      }
      last = ms;
      serve(ms, (callback) => !(Math.abs(ms - served.get(callback)) < 0.5));
      if (waiting.size) ask();
    };
    const serve = (ms, wants, undrawn = false) => {
      const due = [...waiting].filter(([, callback]) => wants(callback));
      for (const [number, callback] of due) {
        waiting.delete(number);
        if (undrawn) served.set(callback, ms);
      }
      for (const [number, callback] of due) {
        if (cancelled.delete(number)) continue;
        try {
          callback(since(ms));
        } catch (error) {
          reportError(error);
        }
      }
      cancelled.clear();
    };
    // Frames that are not drawn, for a page that waits for one: before time 0, or within a frame.
    // What is called for each frame (a loop of the page) has its turn once, unless it is `again`.
    let served = new WeakMap();
    put(globalThis, "__fragdexServe", (again) => {
      const ms = real();
      const had = (callback) => (zero < 0 ? served.has(callback) : Math.abs(ms - served.get(callback)) < 0.5);
      serve(ms, (callback) => again || !had(callback), true);
    });
    // While a seek of the page is waited for, its clocks are held. Afterwards they stand where they
    // stood, `ms` later, and what moves by the browser's clock is taken back to there, too.
    put(globalThis, "__fragdexHold", () => {
      held = zeroOfAll + round(origin + real() - zeroOfAll);
    });
    put(globalThis, "__fragdexGoOn", (ms, unseen = 0) => {
      held = null;
      zero += ms;
      zeroOfAll += ms;
      [looks, seen, ahead] = [0, 0, 0];
      if (ms === 0) return;
      for (const animation of globalThis.__fragdexAnimations()) {
        const { startTime, currentTime, playbackRate } = animation;
        const moves = animation.playState === "running" && animation.timeline === document.timeline;
        // One that began meanwhile begins now. They have seen no frame in the last milliseconds.
        if (moves && startTime !== null && playbackRate > 0) {
          animation.startTime += Math.min(ms - unseen, Math.max(0, currentTime / playbackRate)) + unseen;
        }
      }
    });
    const cancelled = new Set();
    put(globalThis, "requestAnimationFrame", (callback) => {
      if (typeof callback !== "function") throw new TypeError("not a function");
      waiting.set((numbers += 1), callback);
      ask();
      return numbers;
    });
    put(globalThis, "cancelAnimationFrame", (number) => {
      // one of this very frame may be cancelled by another of it
      if (!waiting.delete(number)) cancelled.add(number);
    });
    if ("webkitRequestAnimationFrame" in globalThis) {
      put(globalThis, "webkitRequestAnimationFrame", globalThis.requestAnimationFrame);
      put(globalThis, "webkitCancelAnimationFrame", globalThis.cancelAnimationFrame);
    }
    // Chromium is never idle while frames are skipped, and otherwise when its own work lets it.
    const SPARE = 10;
    const later = setTimeout;
    put(globalThis, "requestIdleCallback", (callback) => {
      if (typeof callback !== "function") throw new TypeError("not a function");
      let left = SPARE;
      const deadline = { didTimeout: false, timeRemaining: () => Math.max(0, (left -= 1 / TICK)) };
      return later(() => callback(deadline), 1);
    });
    put(globalThis, "cancelIdleCallback", clearTimeout);
    // The time of a drawing begins when it is loaded; of those that are there at time 0, with that.
    const setTime = globalThis.SVGSVGElement?.prototype.setCurrentTime;
    const times = new WeakMap();
    let drawings = [];
    if (setTime) {
      put(SVGSVGElement.prototype, "setCurrentTime", function setCurrentTime(seconds) {
        setTime.call(this, seconds);
        times.set(this, seconds);
      });
    }
    const beginDrawings = () => {
      for (const drawing of drawings) {
        if (!drawing.animationsPaused()) setTime.call(drawing, times.get(drawing) ?? 0);
      }
      drawings = [];
    };
    // Time 0 is now, or was `at`, which all frames of the page are told alike.
    put(globalThis, "__fragdexBegin", (at = origin + real()) => {
      zeroOfAll = at;
      zero = Math.max(0, at - origin);
      served = new WeakMap();
      for (const [animation, ms] of told) started.set.call(animation, zero + ms);
      told.clear();
      drawings = allOf("svg").filter((one) => !one.ownerSVGElement);
      if (drawings.length) realFrame(beginDrawings);
      delete globalThis.__fragdexBegin;
      return at;
    });
  }

  // ---- animations: those of shadow trees are not among the document's own
  const roots = [];
  const attach = Element.prototype.attachShadow;
  put(Element.prototype, "attachShadow", function attachShadow(...given) {
    const root = attach.apply(this, given);
    roots.push(new WeakRef(root));
    return root;
  });
  const allOf = (name) =>
    [document, ...roots.map((root) => root.deref())].flatMap((root) => [...(root?.querySelectorAll(name) ?? [])]);
  put(globalThis, "__fragdexAnimations", () => [
    ...document.getAnimations(),
    ...roots.flatMap((root) => root.deref()?.getAnimations() ?? []),
  ]);

  // ---- what skipped frames would change: it is told, so that one browser draws the film
  const say = (what) => { try { tell(write(what)); } catch {} };
  const telling = (object, name, what) => {
    const real = object?.[name];
    if (typeof real === "function") {
      put(object, name, { [name](...given) { say(what); return real.apply(this, given); } }[name]);
    }
  };
  telling(HTMLCanvasElement.prototype, "transferControlToOffscreen", { gives: "canvas" });
  if (globalThis.ImageDecoder) {
    put(globalThis, "ImageDecoder", new Proxy(ImageDecoder, {
      construct(real, given, as) { say({ keeps: "decoder" }); return Reflect.construct(real, given, as); },
    }));
  }

  // ---- what takes the machine's time, and no frame and no timer of the page's: begun, done
  const works = [0, 0];
  const { finally: whenDone } = Promise.prototype;
  const working = (object, name) => {
    const real = object?.[name];
    if (typeof real !== "function") return;
    put(object, name, { [name](...given) {
      const promise = real.apply(this, given);
      works[0] += 1;
      // the page has the promise behind ours: one that fails and is not looked after is its own
      return whenDone.call(promise, () => { works[1] += 1; });
    } }[name]);
  };
  for (const [object, ...names] of [
    [globalThis, "fetch", "createImageBitmap"],
    [Response.prototype, "arrayBuffer", "blob", "bytes", "formData", "json", "text"],
    [Blob.prototype, "arrayBuffer", "bytes", "text"],
    [globalThis.WebAssembly, "compile", "compileStreaming", "instantiate", "instantiateStreaming"],
  ]) names.forEach((name) => working(object, name));
  put(globalThis, "__fragdexWorks", () => works);

  // ---- view transitions: a frame is drawn of what was before, then the page is called back to
  // change it, the next frame is the first that moves, and the one behind the last that moves ends
  // it. Changes begun, done; and the transitions that have not ended, each with its root.
  const changes = [0, 0];
  const transitions = new Map();
  const { then } = Promise.prototype;
  const counted = (update) => () => {
    const promise = (async () => update?.())();
    const done = () => { changes[1] += 1; };
    then.call(promise, done, done);
    return promise;
  };
  const watching = (object, rootOf) => {
    const real = object?.startViewTransition;
    if (typeof real !== "function") return;
    put(object, "startViewTransition", function startViewTransition(first, ...rest) {
      const isOptions = typeof first === "object" && first !== null;
      const update = isOptions ? first.update : first;
      const isChange = update === undefined || update === null || typeof update === "function";
      const change = isChange ? counted(update) : update;
      const given = isOptions ? { update: change, types: first.types ?? [] } : change;
      const transition = real.call(this, given, ...rest);
      if (isChange) changes[0] += 1;
      transitions.set(transition, rootOf(this));
      const ended = () => { transitions.delete(transition); };
      then.call(transition.finished, ended, ended);
      say({ keeps: "transition" });
      return transition;
    });
  };
  watching(Document.prototype, (document) => document.documentElement);
  watching(Element.prototype, (element) => element);
  const moves = (root) => globalThis.__fragdexAnimations().some(({ effect, playState }) =>
    effect?.target === root && effect.pseudoElement?.startsWith("::view-transition") &&
    playState !== "finished" && playState !== "idle");
  put(globalThis, "__fragdexTransitions", () => {
    const ending = [...transitions.values()].filter((root) => !moves(root));
    return [changes[0] - changes[1], changes[1], ending.length, ...works];
  });

  // ---- dialogs and windows: answered at once, as if dismissed
  put(globalThis, "alert", (text = "") => { refuse(`alert(${write(String(text))})`); });
  put(globalThis, "confirm", (text = "") => { refuse(`confirm(${write(String(text))})`); return false; });
  put(globalThis, "prompt", (text = "") => { refuse(`prompt(${write(String(text))})`); return null; });
  put(globalThis, "print", () => { refuse("print()"); });
  put(globalThis, "open", (url = "") => { refuse(`window.open(${write(String(url))})`); return null; });

  // ---- ways out that are no requests
  const dead = (name, reason) => {
    if (!(name in globalThis)) return;
    put(globalThis, name, class {
      constructor() {
        refuse(name);
        fail("NotSupportedError", reason);
      }
    });
  };
  const REASON = "not available in a rendered page";
  dead("RTCPeerConnection", REASON);
  dead("webkitRTCPeerConnection", REASON);
  dead("WebTransport", REASON);
  dead("WebSocketStream", REASON);
  dead("SharedWorker", REASON);
  const rejected = (name) => () => {
    refuse(name);
    return Promise.reject(new DOMException(REASON, "NotAllowedError"));
  };
  if (globalThis.ServiceWorkerContainer) {
    put(ServiceWorkerContainer.prototype, "register", rejected("navigator.serviceWorker.register"));
  }
  if (globalThis.MediaDevices) {
    put(MediaDevices.prototype, "getUserMedia", rejected("navigator.mediaDevices.getUserMedia"));
    put(MediaDevices.prototype, "getDisplayMedia", rejected("navigator.mediaDevices.getDisplayMedia"));
  }
  if (navigator.webkitGetUserMedia) {
    put(Navigator.prototype, "webkitGetUserMedia", (_, __, no) => {
      refuse("navigator.webkitGetUserMedia");
      if (no) no(new DOMException(REASON, "NotAllowedError"));
    });
  }
  // Fails as a socket fails that nobody answers, at an instant of the page's own time.
  const later = setTimeout;
  class Socket extends EventTarget {
    constructor(url) {
      super();
      block(url, "WebSocket: no network for pages");
      this.url = String(url);
      this.readyState = 0;
      this.bufferedAmount = 0;
      this.extensions = this.protocol = "";
      this.binaryType = "blob";
      this.onopen = this.onmessage = this.onerror = this.onclose = null;
      later(() => {
        this.readyState = 3;
        const error = new Event("error");
        const close = new CloseEvent("close", { code: 1006, wasClean: false });
        if (typeof this.onerror === "function") this.onerror(error);
        this.dispatchEvent(error);
        if (typeof this.onclose === "function") this.onclose(close);
        this.dispatchEvent(close);
      }, 1);
    }
    send() { if (this.readyState === 0) fail("InvalidStateError", "still connecting"); }
    close() {}
  }
  ["CONNECTING", "OPEN", "CLOSING", "CLOSED"].forEach((name, number) => {
    put(Socket, name, number);
    put(Socket.prototype, name, number);
  });
  if (globalThis.WebSocket) put(globalThis, "WebSocket", Object.defineProperty(Socket, "name", { value: "WebSocket" }));
})();
