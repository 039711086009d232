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

  const { chance, dates, loops } = globalThis.__fragdexSources;
  delete globalThis.__fragdexSources;
  const fail = (name, message) => { throw new DOMException(message, name); };
  const say = (what) => { try { tell(write(what)); } catch {} };
  chance();
  const tells = (name, value) => {
    if (name in navigator) {
      Object.defineProperty(Navigator.prototype, name, { get: () => value, configurable: true });
    }
  };
  tells("hardwareConcurrency", 4);
  tells("deviceMemory", 8);
  delete Navigator.prototype.connection;
  // what tells how the machine is doing
  delete Navigator.prototype.getBattery;
  delete globalThis.PressureObserver;

  // ---- time: what the clocks tell is 0 while the page loads, and from time 0 on the time since
  // then, so that neither the loading nor the origin of Chromium's ticks can be seen.
  if (!globalThis.__fragdexClock) {
    const TICK = 10; // to a millisecond
    const EPOCH = 1700000000000;
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
    // While the page loads they tell 0, unless it waits for them (`__fragdexGo`).
    let goes = -1;
    // Timers ring up to a millisecond before they are due (the browser's own are for whole ones), and
    // those that were set while the page loaded a tick before the frame that is due with them, so
    // that what they post is done before it. They read the time that they were set for: all instants
    // from `early` on and before `rung` are that one.
    let [early, rung] = [0, 0];
    const told = (ms) => (ms < rung && ms > early ? rung : ms);
    // On the grid, as the browser's own instants are; `exact` is what clocks tell then. The clocks of
    // a frame that was put in later begin later than those of the page.
    const passed = (ms) => {
      if (zero < 0) return goes < 0 ? 0 : round(ms - goes);
      return round((held === null ? told(ms) : Math.max(zero, held - origin)) - zero);
    };
    const exact = globalThis.__fragdexExact;
    const born = () => round(origin + zero - zeroOfAll);
    const since = (ms) => {
      if (zero < 0) return passed(ms);
      return exact(passed(ms) + born()) - exact(born()) + LITTLE;
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
      const all = zero < 0 ? own : exact(round((held ?? origin + told(real())) - zeroOfAll)) + LITTLE;
      const more = patient(own) - own;
      return EPOCH + Math.floor(more === 0 ? all : round(all + more));
    };
    put(globalThis, "__fragdexPassed", () => { now(); return round(passed(real()) + ahead); });
    put(performance, "now", now);
    put(globalThis, "__fragdexGo", () => { if (goes < 0) goes = real(); });
    // Timers that are set while the page loads ring as if they were set at time 0: before it their
    // time does not pass, unless the page is not ready without. Here they are, by their numbers.
    const native = { setTimeout: setTimeout.bind(globalThis), setInterval: setInterval.bind(globalThis) };
    const stop = clearTimeout.bind(globalThis);
    const begun = new Map();
    const renumbered = new Map();
    const FAR = 2 ** 31 - 1;
    let frozen = false;
    const call = (callback, given) => {
      if (typeof callback === "function") callback.apply(globalThis, given);
      else (0, eval)(String(callback));
    };
    const ring = (one) => {
      one.set = real();
      if (one.name === "setTimeout") begun.delete(one.number);
      call(one.callback, one.given);
    };
    // When a timer is due, by the browser's clock, of which time 0 is a hair off: a sum with a large
    // number. What sums of fractions of milliseconds (1000 / 30) are off is less.
    const [HAIR, DUST] = [1e-3, 1e-5];
    const dueIn = (delay) => {
      const spent = held === null ? 0 : origin + real() - held;
      return zero + exact.due(passed(real()) + born(), delay) - born() + (spent < 0.5 ? 0 : spent);
    };
    const onGrid = (due) => zero + Math.ceil((due - zero - DUST) * TICK) / TICK;
    const set = (name, callback, delay, given) => {
      if (told(real()) === real() && Number.isInteger(delay)) return native[name](callback, delay, ...given);
      const first = dueIn(delay);
      let [due, rings, number] = [first, 0, 0];
      const arm = () => native.setTimeout(happens, Math.max(0, Math.floor(due - real() + HAIR)));
      const happens = () => {
        const ms = real();
        const at = onGrid(due);
        if (at > ms + HAIR) [early, rung] = [ms - 0.5 / TICK, Math.max(at, told(ms))];
        if (name === "setTimeout") renumbered.delete(number);
        else {
          rings += 1;
          due = first + (rings * delay) / exact.longer;
          renumbered.set(number, arm());
        }
        call(callback, given);
      };
      number = arm();
      return number;
    };
    // as the browser reads it, but with fractions
    const lasting = (delay) => {
      const ms = +delay;
      return ms > 0 && ms < FAR ? ms : Math.max(0, ms | 0);
    };
    for (const name of ["setTimeout", "setInterval"]) {
      put(globalThis, name, { [name](callback, wait = 0, ...given) {
        const delay = lasting(wait);
        if (zero >= 0) return set(name, callback, delay, given);
        const one = { name, callback, delay, given, set: real() };
        one.number = frozen ? native.setTimeout(() => {}, FAR) : native[name](ring, delay, one);
        begun.set(one.number, one);
        return one.number;
      } }[name]);
    }
    for (const name of ["clearTimeout", "clearInterval"]) {
      put(globalThis, name, { [name](number) {
        begun.delete(Number(number));
        let last = Number(number);
        while (renumbered.has(last)) {
          const next = renumbered.get(last);
          renumbered.delete(last);
          last = next;
        }
        stop(last);
      } }[name]);
    }
    put(globalThis, "__fragdexFreeze", () => {
      frozen = true;
      for (const [number, one] of begun) {
        stop(number);
        one.left = Math.max(0, one.delay - Math.round(real() - one.set));
      }
    });
    const setAgain = () => {
      for (const [number, one] of begun) {
        const { name, callback, delay, given, left = delay } = one;
        const begin = () => { renumbered.set(number, set(name, callback, delay, given)); };
        if (name === "setTimeout") renumbered.set(number, set(name, callback, left, given));
        else if (left === delay) begin();
        else renumbered.set(number, set("setTimeout", () => { begin(); ring(one); }, left, []));
      }
      begun.clear();
    };
    const { timeout } = AbortSignal;
    put(AbortSignal, "timeout", (ms) => {
      if (zero >= 0) return timeout.call(AbortSignal, ms);
      const controller = new AbortController();
      const why = new DOMException("signal timed out", "TimeoutError");
      setTimeout(() => { controller.abort(why); }, ms);
      return controller.signal;
    });
    const postTask = globalThis.Scheduler?.prototype.postTask;
    if (postTask) {
      put(Scheduler.prototype, "postTask", function post(task, options = {}) {
        const { delay = 0, ...rest } = options;
        if (zero >= 0 || !(delay > 0)) return postTask.call(this, task, options);
        return new Promise((done) => { setTimeout(done, delay); }).then(() => postTask.call(this, task, rest));
      });
    }
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
    const performanceStart = Object.getOwnPropertyDescriptor(PerformanceEntry.prototype, "startTime");
    const instant = (ms) => (typeof ms === "number" ? since(ms) : ms);
    // Between frames Chromium tells the last of its own sixtieths of a second: one that is due in the
    // tick before a frame is due now.
    const SIXTIETH = 1000 / 60;
    change(globalThis.AnimationTimeline, "currentTime", (ms, one) => {
      if (typeof ms !== "number" || one instanceof ScrollTimeline) return ms;
      const isDue = told(real()) === rung && ms + SIXTIETH < rung + 0.5 / TICK;
      // A frame that is drawn again may have been rounded up by a step.
      return since(isDue ? ms + SIXTIETH : Math.min(ms, real()));
    });
    change(globalThis.Event, "timeStamp", instant);
    change(globalThis.IntersectionObserverEntry, "time", instant);
    // Entries of times that the page gave: the browser knows none of them.
    const given = new WeakMap();
    const { mark, measure } = Performance.prototype;
    put(Performance.prototype, "mark", function marked(name, options) {
      if (typeof options?.startTime !== "number") return mark.apply(this, arguments);
      const entry = mark.call(this, name, { ...options, startTime: real() });
      given.set(entry, { start: options.startTime });
      return entry;
    });
    const placed = (one) => (typeof one === "string" ? performance.getEntriesByName(one, "mark").at(-1)?.startTime : one);
    put(Performance.prototype, "measure", function measured(name, first, second) {
      const isOptions = typeof first === "object" && first !== null;
      const { start, end, duration, ...more } = isOptions ? first : { start: first, end: second };
      const [from, to] = [placed(start), placed(end)];
      const isKnown = [from, to].every((one, n) => typeof one === "number" || [start, end][n] === undefined);
      if (!isKnown || (start ?? end) === undefined) return measure.apply(this, arguments);
      const begin = from ?? (duration === undefined ? 0 : to - duration);
      const stop = to ?? (duration === undefined ? now() : begin + duration);
      const entry = measure.call(this, name, { ...more, start: real(), end: real() });
      given.set(entry, { start: begin, duration: stop - begin });
      return entry;
    });
    const ofEntry = (name, otherwise) => (ms, one) => given.get(one)?.[name] ?? otherwise(ms, one);
    change(globalThis.PerformanceEntry, "startTime", ofEntry("start", instant));
    change(globalThis.PerformanceEntry, "duration", ofEntry("duration", (ms, one) => {
      const start = one.startTime;
      return ms > 0 ? Math.max(0, since(performanceStart.get.call(one) + ms) - start) : ms;
    }));
    change(globalThis.Performance, "memory", () => ({
      jsHeapSizeLimit: 2 ** 29, totalJSHeapSize: 2 ** 24, usedJSHeapSize: 2 ** 24,
    }));
    change(globalThis.Document, "lastModified", () => "11/14/2023 22:13:20");
    change(globalThis.Performance, "timeOrigin", () => EPOCH + (zero < 0 ? 0 : exact(born())));
    // Animations that were given their start before time 0 is known.
    const starts = new Map();
    const { longer } = exact;
    const started = change(globalThis.Animation, "startTime",
      (ms, one) => {
        if (typeof ms !== "number" || !(one.timeline instanceof DocumentTimeline)) return ms;
        return zero < 0 ? (starts.get(one) ?? 0) : (ms - zero) * longer;
      },
      (ms, one) => {
        starts.delete(one);
        if (typeof ms !== "number" || !(one.timeline instanceof DocumentTimeline)) return ms;
        if (zero < 0) starts.set(one, ms);
        return ms / longer + (zero < 0 ? real() : zero);
      });
    dates(today);
    // A frame may have to be drawn again, a microsecond later, which the browser may round up to
    // the next step; the clock stands meanwhile, so frames get its time. What the page asked
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
        const call = () => {
          try {
            callback(since(ms));
          } catch (error) {
            reportError(error);
          }
        };
        if (undrawn) loop.call(callback, call);
        else call();
      }
      cancelled.clear();
    };
    // Frames that are not drawn, for a page that waits for one: before time 0, or within a frame.
    // What is called for each frame (a loop of the page) has its turn once, unless it is `again`.
    let served = new WeakMap();
    const loop = loops();
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
    // Animations that begin in a frame that is drawn again, microseconds later, begin with the frame:
    // the browser may round these up to the next step of its clocks, by chance.
    const alignStarts = () => {
      const now = held === null ? real() : held - origin;
      for (const animation of globalThis.__fragdexAnimations()) {
        if (animation.timeline !== document.timeline || animation.playState !== "running") continue;
        const start = started.get.call(animation);
        const late = typeof start === "number" ? start - now : 0;
        if (late > 0.5 / TICK && late < 0.5) started.set.call(animation, start - Math.round(late * TICK) / TICK);
      }
    };
    put(globalThis, "__fragdexAlign", alignStarts);
    put(globalThis, "__fragdexGoOn", (ms, unseen = 0) => {
      if (ms === 0) alignStarts();
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
      const of = loop.continued(callback);
      if (of !== null && served.has(of)) served.set(callback, served.get(of));
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
    // Time 0, and the first frame, is in a tick; or was at `at`, which all frames of the page get.
    put(globalThis, "__fragdexBegin", (at = origin + real() + 1 / TICK) => {
      zeroOfAll = at;
      zero = rung = Math.max(0, at - origin);
      early = rung - 1.5 / TICK;
      served = new WeakMap();
      [looks, seen, ahead] = [0, 0, 0];
      setAgain();
      for (const [animation, ms] of starts) started.set.call(animation, zero + ms);
      starts.clear();
      allRoots().forEach(findRoots);
      drawings = allOf("svg").filter((one) => !one.ownerSVGElement);
      if (drawings.length) realFrame(beginDrawings);
      delete globalThis.__fragdexBegin;
      return at;
    });
  }

  // ---- animations: those of shadow trees are not among the document's own
  const roots = [];
  const known = new WeakSet();
  const attach = Element.prototype.attachShadow;
  put(Element.prototype, "attachShadow", function attachShadow(...given) {
    const root = attach.apply(this, given);
    known.add(root);
    roots.push(new WeakRef(root));
    return root;
  });
  // Those that are declared in HTML, with the others within them; of closed ones a script knows none.
  const findRoots = (within) => {
    for (const { shadowRoot: root } of within.querySelectorAll("*")) {
      if (!root || known.has(root)) continue;
      known.add(root);
      roots.push(new WeakRef(root));
      findRoots(root);
    }
  };
  const allRoots = () => [document, ...roots.map((root) => root.deref()).filter(Boolean)];
  const allOf = (name) => allRoots().flatMap((root) => [...root.querySelectorAll(name)]);
  put(globalThis, "__fragdexRoots", () => {
    allRoots().forEach(findRoots);
    return allRoots();
  });
  put(globalThis, "__fragdexAnimations", () => [
    ...document.getAnimations(),
    ...roots.flatMap((root) => root.deref()?.getAnimations() ?? []),
  ]);

  // ---- what skipped frames would change: it is reported, so that one browser draws the video
  const telling = (object, name, what) => {
    const real = object?.[name];
    if (typeof real === "function") {
      put(object, name, { [name](...given) { say(what); return real.apply(this, given); } }[name]);
    }
  };
  telling(HTMLCanvasElement.prototype, "transferControlToOffscreen", { gives: "canvas" });
  for (const [object, name] of [
    [HTMLCanvasElement.prototype, "captureStream"], [globalThis.MediaRecorder?.prototype, "start"],
  ]) telling(object, name, { refused: `the page's clock for ${name === "start" ? "MediaRecorder" : name}: the machine's is used` });
  // Chromium paints what such a painter draws at once, or never until something else changes.
  const { addModule } = globalThis.Worklet?.prototype ?? {};
  if (addModule) put(Worklet.prototype, "addModule", { addModule(...given) {
    if (this === CSS.paintWorklet && document.readyState === "complete") {
      say({ refused: "a frame for a paint worklet that is added while the page runs: it is painted by chance" });
    }
    return addModule.apply(this, given);
  } }.addModule);
  for (const name of ["MediaStreamTrackProcessor", "MediaStreamTrackGenerator", "VideoTrackGenerator"]) {
    if (!globalThis[name]) continue;
    put(globalThis, name, new Proxy(globalThis[name], { construct(real, given, as) {
      refuse(`the page's clock for ${name}: the machine's is used`);
      return Reflect.construct(real, given, as);
    } }));
  }
  if (globalThis.ImageDecoder) {
    put(globalThis, "ImageDecoder", new Proxy(ImageDecoder, {
      construct(real, given, as) { say({ keeps: "decoder" }); return Reflect.construct(real, given, as); },
    }));
  }

  // ---- what takes the machine's time, and no frame and no timer of the page's: begun, done
  const works = [0, 0];
  const begin = () => {
    if (works[0] === 0) say({ begins: "work" });
    works[0] += 1;
  };
  const end = () => { works[1] += 1; };
  const { finally: whenDone } = Promise.prototype;
  const working = (object, name) => {
    const real = object?.[name];
    if (typeof real !== "function") return;
    put(object, name, { [name](...given) {
      const promise = real.apply(this, given);
      if (!(promise instanceof Promise)) return promise;
      // a stream of the page's own may never end
      if ([this, ...given].some((one) => one instanceof Response && one.url === "")) return promise;
      begin();
      // the page has the promise after ours: one that fails and is not looked after is its own
      return whenDone.call(promise, end);
    } }[name]);
  };
  for (const [object, ...names] of [
    [globalThis, "fetch", "createImageBitmap"],
    [Response.prototype, "arrayBuffer", "blob", "bytes", "formData", "json", "text"],
    [Request.prototype, "arrayBuffer", "blob", "bytes", "formData", "json", "text"],
    [Blob.prototype, "arrayBuffer", "bytes", "text"],
    [HTMLImageElement.prototype, "decode"],
    [globalThis.SVGImageElement?.prototype, "decode"],
    [CSSStyleSheet.prototype, "replace"],
    [globalThis.Worklet?.prototype, "addModule"],
    [globalThis.FontFace?.prototype, "load"],
    [globalThis.FontFaceSet?.prototype, "load"],
    [globalThis.FontData?.prototype, "blob"],
    [globalThis.ImageDecoder?.prototype, "decode"],
    [globalThis.ImageDecoder, "isTypeSupported"],
    [globalThis.VideoFrame?.prototype, "copyTo"],
    [globalThis.MediaCapabilities?.prototype, "decodingInfo", "encodingInfo"],
    [globalThis.NavigatorUAData?.prototype, "getHighEntropyValues"],
    [globalThis.Permissions?.prototype, "query"],
    [globalThis.IDBFactory?.prototype, "databases"],
    [globalThis.WebAssembly, "compile", "compileStreaming", "instantiate", "instantiateStreaming"],
  ]) names.forEach((name) => working(object, name));
  // … and all that these promise
  for (const name of [
    "Cache", "CacheStorage", "CookieStore", "FileSystemDirectoryHandle", "FileSystemFileHandle",
    "FileSystemHandle", "FileSystemWritableFileStream", "StorageBucket", "StorageBucketManager",
    "StorageManager", "SubtleCrypto",
  ]) {
    const { prototype = {} } = globalThis[name] ?? {};
    for (const [key, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
      if (typeof value === "function" && key !== "constructor") working(prototype, key);
    }
  }
  // Databases answer by events, cursors by the same ones again.
  const { addEventListener } = EventTarget.prototype;
  const until = (target, ...events) => {
    begin();
    let isOver = false;
    for (const name of events) {
      addEventListener.call(target, name, () => {
        if (!isOver) end();
        isOver = true;
      }, { once: true });
    }
  };
  const asking = (kind, targetOf, ...events) => {
    for (const [name, { value: real }] of Object.entries(Object.getOwnPropertyDescriptors(kind?.prototype ?? {}))) {
      if (typeof real !== "function" || name === "constructor") continue;
      put(kind.prototype, name, { [name](...given) {
        const answer = real.apply(this, given);
        const target = targetOf(answer, this);
        if (target) until(target, ...events);
        return answer;
      } }[name]);
    }
  };
  if (globalThis.IDBFactory) {
    const request = (answer) => (answer instanceof IDBRequest ? answer : null);
    for (const kind of [IDBFactory, IDBObjectStore, IDBIndex]) asking(kind, request, "success", "error");
    // `update` and `delete` give a request of their own
    asking(IDBCursor, (answer, cursor) => request(answer) ?? cursor.request, "success", "error");
    asking(IDBDatabase, (answer) => (answer instanceof IDBTransaction ? answer : null), "complete", "abort");
  }
  // Codecs tell how much they have not begun yet, and give what is done.
  const codecs = new Set();
  for (const [name, queue] of [
    ["VideoDecoder", "decodeQueueSize"], ["AudioDecoder", "decodeQueueSize"],
    ["VideoEncoder", "encodeQueueSize"], ["AudioEncoder", "encodeQueueSize"],
  ]) {
    const real = globalThis[name];
    if (!real) continue;
    working(real, "isConfigSupported");
    working(real.prototype, "flush");
    put(globalThis, name, new Proxy(real, { construct(_, [init, ...rest], as) {
      const { output } = init ?? {};
      const counted = typeof output === "function" ? { ...init, error: init.error, output(...made) {
        begin();
        end();
        return output.apply(this, made);
      } } : init;
      const codec = Reflect.construct(real, [counted, ...rest], as);
      codecs.add({ codec: new WeakRef(codec), queue });
      return codec;
    } }));
  }
  const queued = () => {
    let sum = 0;
    for (const one of codecs) {
      const codec = one.codec.deref();
      if (!codec || codec.state === "closed") codecs.delete(one);
      else sum += codec[one.queue];
    }
    return sum;
  };
  const worksNow = () => [works[0] + queued(), works[1]];
  put(globalThis, "__fragdexWorks", worksNow);
  put(globalThis, "__fragdexWorking", { begin, end });

  // ---- pictures that the page makes itself: of those that move, as of those that are requested
  const { createObjectURL } = URL;
  put(URL, "createObjectURL", (...given) => {
    if (given[0] instanceof Blob) look(given[0]).catch(() => {});
    return createObjectURL.apply(URL, given);
  });
  const look = async (blob) => {
    if (blob.type.startsWith("image/svg")) say({ drawing: await blob.slice(0, 2 ** 22).text() });
    const bytes = new Uint8Array(await blob.slice(0, 2048).arrayBuffer());
    const text = String.fromCharCode(...bytes);
    const isWebp = text.startsWith("VP8X", 12) && (bytes[20] & 2) > 0;
    if (isWebp || /^GIF8|^[^]{4}ftypavis|^.PNG[^]*acTL/.test(text)) say({ keeps: "picture" });
  };

  // ---- pictures of canvases, as files: Chromium makes them when it is idle, which it is by chance
  const { toDataURL } = HTMLCanvasElement.prototype;
  const { drawImage } = CanvasRenderingContext2D.prototype;
  const { getContext } = HTMLCanvasElement.prototype;
  // A canvas that goes past the compositor is seen some frames late, or never.
  put(HTMLCanvasElement.prototype, "getContext", { getContext(...given) {
    if (given[1]?.desynchronized) given[1] = { ...given[1], desynchronized: false };
    return getContext.apply(this, given);
  } }.getContext);
  const fileOf = (canvas, ...form) => {
    const [, type, data] = /^data:([^;]*);base64,(.*)$/s.exec(toDataURL.apply(canvas, form)) ?? [];
    return data === undefined ? null : new Blob([Uint8Array.fromBase64(data)], { type });
  };
  const { port1, port2 } = new MessageChannel();
  const due = [];
  port1.onmessage = () => due.shift()();
  const soon = (call) => { due.push(call); port2.postMessage(0); };
  put(HTMLCanvasElement.prototype, "toBlob", function toBlob(callback, ...form) {
    if (typeof callback !== "function") throw new TypeError("not a function");
    const file = fileOf(this, ...form);
    soon(() => callback(file));
  });
  if (globalThis.OffscreenCanvas) {
    put(OffscreenCanvas.prototype, "convertToBlob", async function convertToBlob({ type, quality } = {}) {
      const copy = document.createElement("canvas");
      [copy.width, copy.height] = [this.width, this.height];
      if (!(this.width && this.height)) fail("IndexSizeError", "the canvas has no pixels");
      drawImage.call(getContext.call(copy, "2d"), this, 0, 0);
      const file = fileOf(copy, type, quality);
      await new Promise(soon);
      return file;
    });
  }

  // ---- view transitions: a frame is drawn of what was before, then the page is called back to
  // change it, the next frame is the first that moves, and the one after the last that moves ends
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
    return [changes[0] - changes[1], changes[1], ending.length, ...worksNow()];
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
