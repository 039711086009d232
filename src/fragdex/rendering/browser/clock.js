// A clock of our own for browsers that give no frames on request: the page's timers, frames, Date
// and performance.now follow it; animations are stopped and set. Workers keep the real time.
(() => {
  "use strict";
  if (globalThis.__fragdexClock) return;
  const EPOCH = 1700000000000;
  const realFrame = requestAnimationFrame.bind(globalThis);
  const realTimeout = setTimeout.bind(globalThis);
  let now = 0;
  let zero = 0;
  let begun = false;
  let goes = null;
  let held = null;
  let drawn = null;
  let start = 0;
  let numbers = 0;
  let firing = false;
  const frames = new Map();
  const timers = new Map();
  const put = (object, name, value) =>
    Object.defineProperty(object, name, { value, configurable: true, writable: true });

  // a little more than while the page loads: as in steady.js
  const LITTLE = 2 ** -10;
  const passed = () => (begun ? (held ?? now) - zero : now - (goes ?? now));
  const exact = globalThis.__fragdexExact;
  const since = () => (begun ? exact(passed()) + LITTLE : passed());
  put(globalThis, "__fragdexPassed", passed);
  put(performance, "now", since);
  globalThis.__fragdexSources.dates(() => Math.floor(EPOCH + since()));
  const stamps = new WeakMap();
  const tells = (kind, name, get) => {
    const real = Object.getOwnPropertyDescriptor(kind.prototype, name);
    Object.defineProperty(kind.prototype, name, { ...real, get() { return get(this, real.get); } });
  };
  // the browser's own stands, so that animations do
  tells(AnimationTimeline, "currentTime", (timeline, real) =>
    timeline instanceof DocumentTimeline ? since() : real.call(timeline));
  tells(Event, "timeStamp", (event) => {
    if (!stamps.has(event)) stamps.set(event, since());
    return stamps.get(event);
  });

  put(globalThis, "requestAnimationFrame", (callback) => {
    const of = loop.continued(callback);
    if (of !== null && served.has(of)) served.add(callback);
    frames.set((numbers += 1), callback);
    return numbers;
  });
  put(globalThis, "cancelAnimationFrame", (number) => { frames.delete(number); });
  const timer = (again) => (callback, delay, ...given) => {
    // one that is set by another is later, or there would be no end of them
    const wait = Math.max(again || firing ? 1 : 0, Number(delay) || 0);
    const due = begun ? zero + exact.due(now - zero, wait) : now + wait;
    timers.set((numbers += 1), { callback, wait: wait / exact.longer, due, given, again });
    return numbers;
  };
  const forget = (number) => { timers.delete(number); };
  put(globalThis, "setTimeout", timer(false));
  put(globalThis, "setInterval", timer(true));
  put(globalThis, "clearTimeout", forget);
  put(globalThis, "clearInterval", forget);
  put(globalThis, "requestIdleCallback", (callback) =>
    setTimeout(() => callback({ didTimeout: false, timeRemaining: () => 10 }), 1));
  put(globalThis, "cancelIdleCallback", forget);

  const call = (callback, given) => {
    try {
      if (typeof callback === "function") callback(...given);
      else (0, eval)(String(callback));
    } catch (error) {
      reportError(error);
    }
  };
  // what adding up fractions of milliseconds (1000 / 30) may be too much
  const HAIR = 1e-6;
  const fire = (until) => {
    for (;;) {
      let first = null;
      let which = 0;
      for (const [number, one] of timers) {
        if (one.due <= until + HAIR && (first === null || one.due < first.due)) {
          first = one;
          which = number;
        }
      }
      if (first === null) return;
      now = Math.max(now, Math.min(first.due, until));
      if (first.again) first.due += first.wait;
      else timers.delete(which);
      firing = true;
      call(first.callback, first.given);
      firing = false;
    }
  };

  // Animations run in the browser's own time until they are seen, and in ours from then on.
  const started = new WeakMap();
  const hold = () => {
    for (const animation of globalThis.__fragdexAnimations?.() ?? document.getAnimations()) {
      // those that follow a scroller have no time
      if (!(animation.timeline instanceof DocumentTimeline)) continue;
      if (!started.has(animation)) {
        if (animation.playState !== "running") continue;
        started.set(animation, now);
        animation.pause();
      }
      if (animation.playState !== "paused") continue;
      animation.currentTime = now - started.get(animation);
      // one that is paused would not end by itself
      if (animation.currentTime >= animation.effect?.getComputedTiming().endTime) animation.finish();
    }
    for (const drawing of document.querySelectorAll("svg")) {
      if (drawing.ownerSVGElement) continue;
      drawing.pauseAnimations();
      drawing.setCurrentTime((now - zero) / 1000);
    }
  };
  // What was called for a frame that is not drawn: a loop of the page has its turn once.
  let served = new WeakSet();
  const loop = globalThis.__fragdexSources.loops();
  const serve = (again, undrawn) => {
    const due = [...frames].filter(([, callback]) => again || !served.has(callback));
    for (const [number, callback] of due) {
      frames.delete(number);
      if (undrawn) served.add(callback);
    }
    for (const [, callback] of due) {
      if (undrawn) loop.call(callback, () => call(callback, [since()]));
      else call(callback, [since()]);
    }
  };
  const inner = (work) => {
    for (const element of document.querySelectorAll("iframe")) {
      let clock;
      try { clock = element.contentWindow.__fragdexClock; } catch {}
      if (clock) work(clock);
    }
  };
  put(globalThis, "__fragdexClock", {
    // Before time 0: timers alone.
    run(ms) {
      const until = now + ms;
      fire(until);
      now = until;
      inner((clock) => clock.run(ms));
    },
    // As `__fragdexGo` of steady.js.
    go() {
      goes ??= now;
      inner((clock) => clock.go());
    },
    start() {
      zero = now;
      begun = true;
      served = new WeakSet();
      inner((clock) => clock.start());
    },
    to(ms) {
      fire(zero + ms);
      now = Math.max(now, zero + ms);
      hold();
      inner((clock) => clock.to(ms));
    },
    serve(again) {
      serve(again, true);
      inner((clock) => clock.serve(again));
    },
    // As `__fragdexHold` and `__fragdexGoOn` of steady.js: timers wait for the same time as before.
    hold() {
      held = start = now;
      inner((clock) => clock.hold());
    },
    goOn(ms) {
      if (ms > 0) now = start;
      held = null;
      inner((clock) => clock.goOn(ms));
    },
    frame() {
      // one that is drawn again, at the same instant, is the page's own once
      if (now !== drawn) {
        serve(false, false);
        served = new WeakSet();
      }
      drawn = now;
      hold();
      inner((clock) => clock.frame());
    },
    // The second frame after this one shows it; a page that the browser takes for hidden gets none.
    drawn: () => new Promise((done) => {
      realFrame(() => realFrame(() => done(true)));
      // one that is seen gets its frames, however busy the machine is
      realTimeout(() => done(false), document.hidden ? 1000 : 30000);
    }),
  });
})();
