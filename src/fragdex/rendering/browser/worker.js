// Runs in a worker before its own script: timers, frames, Date and performance.now follow the clock
// of the page, which leads them on by `__fragdexTo` and `__fragdexFrame`. How long a worker computes
// takes real time.
(() => {
  "use strict";
  const EPOCH = 1700000000000;
  const TICK = 10; // to a millisecond
  const OFTEN = 10000;
  const LITTLE = 2 ** -10; // as on the page
  const exact = globalThis.__fragdexExact;
  const timers = new Map();
  let [now, zero, numbers, firing] = [0, null, 0, false];
  const put = (object, name, value) =>
    Object.defineProperty(object, name, { value, configurable: true, writable: true });

  // As on the page: a script that waits for the clock to move sees it move at last.
  let [looks, seen, ahead] = [0, 0, 0];
  const since = () => {
    const ms = zero === null ? 0 : exact(Math.max(0, now - zero)) + LITTLE;
    if (ms !== seen) [looks, seen, ahead] = [0, ms, Math.max(0, seen + ahead - ms)];
    else if ((looks += 1) >= OFTEN) [looks, ahead] = [0, ahead + 1 / TICK];
    return ms + ahead;
  };
  put(performance, "now", since);
  const { chance, dates } = globalThis.__fragdexSources;
  delete globalThis.__fragdexSources;
  chance();
  dates(() => Math.floor(EPOCH + since()));

  // Its own clock is the machine's: what it stamps has the time at which it is looked at first.
  const stamps = new WeakMap();
  const stamped = (kind, name) => {
    if (!kind) return;
    Object.defineProperty(kind.prototype, name, { configurable: true, enumerable: true, get() {
      if (!stamps.has(this)) stamps.set(this, since());
      return stamps.get(this);
    } });
  };
  stamped(globalThis.Event, "timeStamp");
  stamped(globalThis.PerformanceEntry, "startTime");
  Object.defineProperty(Performance.prototype, "timeOrigin", { configurable: true, get: () => EPOCH });
  for (const [name, value] of [["hardwareConcurrency", 4], ["deviceMemory", 8]]) {
    if (name in navigator) {
      Object.defineProperty(WorkerNavigator.prototype, name, { configurable: true, get: () => value });
    }
  }

  const timer = (again) => (callback, delay, ...given) => {
    // one that is set by another is later, or there would be no end of them
    const wait = Math.max(again || firing ? 1 : 0, Number(delay) || 0);
    const due = zero === null ? now + wait : zero + exact.due(now - zero, wait);
    timers.set((numbers += 1), { callback, wait: wait / exact.longer, due, given, again });
    return numbers;
  };
  const forget = (number) => { timers.delete(number); };
  put(globalThis, "setTimeout", timer(false));
  put(globalThis, "setInterval", timer(true));
  put(globalThis, "clearTimeout", forget);
  put(globalThis, "clearInterval", forget);

  // What a timer has promised happens before the next one.
  const { port1, port2 } = new MessageChannel();
  let go = null;
  port1.onmessage = () => go();
  const breathe = () => new Promise((done) => { go = done; port2.postMessage(0); });
  // what adding up fractions of milliseconds (1000 / 30) may be too much
  const HAIR = 1e-6;
  const first = (until) => {
    let found = null;
    for (const [number, one] of timers) {
      if (one.due <= until + HAIR && (found === null || one.due < found[1].due)) found = [number, one];
    }
    return found;
  };
  const call = ({ callback, given }) => {
    firing = true;
    try {
      if (typeof callback === "function") callback(...given);
      else (0, eval)(String(callback));
    } catch (error) {
      reportError(error);
    }
    firing = false;
  };
  // The script of a worker of a worker is available only to what loads scripts in it: so it
  // begins with a blob: that does. What is relative to it is so to the script.
  let base = null;
  const full = (url) => (base === null || typeof url === "object" && "method" in url ? url : new URL(url, base).href);
  const changed = (object, name, change) => {
    const real = object?.[name];
    if (real) put(object, name, { [name](...given) { return real.apply(this, change(given)); } }[name]);
  };
  changed(globalThis, "importScripts", (urls) => urls.map(full));
  changed(globalThis, "fetch", ([url, ...rest]) => [full(url), ...rest]);
  changed(globalThis.XMLHttpRequest?.prototype, "open", ([how, url, ...rest]) => [how, full(url), ...rest]);
  put(globalThis, "Request", new Proxy(Request, {
    construct: (real, [url, ...rest], as) => Reflect.construct(real, [full(url), ...rest], as),
  }));
  put(globalThis, "__fragdexAt", (url) => {
    base = url;
    put(globalThis, "location", new URL(url));
  });
  if (globalThis.Worker) {
    put(globalThis, "Worker", new Proxy(Worker, { construct(real, [url, options, ...rest], as) {
      const found = new URL(url, base ?? location.href);
      if (!found.protocol.startsWith("http")) return Reflect.construct(real, [url, options, ...rest], as);
      const name = JSON.stringify(found.href);
      const begin = options?.type === "module"
        ? `import "data:text/javascript,${encodeURIComponent(`__fragdexAt(${name})`)}";\nimport ${name};`
        : `__fragdexAt(${name});\nimportScripts(${name});`;
      const blob = new Blob([begin], { type: "text/javascript" });
      return Reflect.construct(real, [URL.createObjectURL(blob), options, ...rest], as);
    } }));
  }

  // Waits of Atomics block: afterwards the clock is where it should be.
  const { wait } = Atomics;
  put(Atomics, "wait", (array, index, value, ms = Infinity) => {
    const told = wait(array, index, value, ms);
    if (told === "timed-out") ahead += Number(ms);
    return told;
  });

  // Frames: requests from before this one happen now.
  let frames = new Map();
  put(globalThis, "requestAnimationFrame", (callback) => {
    if (typeof callback !== "function") throw new TypeError("not a function");
    frames.set((numbers += 1), callback);
    return numbers;
  });
  put(globalThis, "cancelAnimationFrame", (number) => { frames.delete(number); });
  put(globalThis, "__fragdexFrame", async () => {
    const due = frames;
    frames = new Map();
    for (const callback of due.values()) {
      try {
        callback(since());
      } catch (error) {
        reportError(error);
      }
    }
    await breathe();
  });
  put(globalThis, "__fragdexTo", async (until, from) => {
    zero = from;
    for (let due = first(until); due !== null; due = first(until)) {
      const [number, one] = due;
      now = Math.max(now, Math.min(one.due, until));
      if (one.again) one.due += one.wait;
      else timers.delete(number);
      call(one);
      await breathe();
    }
    now = until;
    await breathe();
  });
})();
