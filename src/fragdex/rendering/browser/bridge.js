// What a page finds that renders itself when a renderer is there: it is not played against a clock,
// each frame is requested from it. Pages that do not want that see nothing of it. A page in a frame of
// another is an ordinary one: nobody would ask it.
(() => {
  "use strict";
  if (globalThis !== globalThis.top) return;
  const PIECE = 0x6000; // bytes at once, a whole number of groups of base64
  const asked = { initialize: null, beginFrame: null, triggerCanvas: null };
  let failure = null;
  let waiting = null; // the present request to the page
  let told = []; // frames that it gave without a request
  let sound = new Uint8Array();

  const text = (one) => {
    if (typeof one === "string") return one;
    try { return JSON.stringify(one) ?? String(one); } catch { return String(one); }
  };
  const fail = (...what) => {
    const own = what.find((one) => one instanceof Error);
    failure ??= own ?? new Error(what.map(text).join(" ").slice(0, 1000) || "it does not say why");
    waiting?.reject(failure);
  };
  const ask = (what, call) => new Promise((resolve, reject) => {
    if (failure) throw failure;
    told = [];
    waiting = { ...what, resolve, reject };
    // one that is not async throws here
    Promise.resolve(call()).catch(fail);
  });
  const bytesOf = (buffer) => {
    if (ArrayBuffer.isView(buffer)) return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
    try { return new Uint8Array(buffer ?? 0); } catch { return new Uint8Array(); }
  };
  const callback = (name) => (call) => { asked[name] = typeof call === "function" ? call : null; };

  Object.defineProperty(globalThis, "FRAMEGEN_BRIDGE", {
    configurable: true,
    writable: true,
    value: {
      onInitialize: callback("initialize"),
      onBeginFrame: callback("beginFrame"),
      onTriggerCanvas: callback("triggerCanvas"),
      initialized() {
        if (waiting?.frame !== null) return;
        waiting.resolve();
        waiting = null;
      },
      frameReady(frame, buffer) {
        if (waiting === null || waiting.frame !== frame) {
          told.push(frame);
          return;
        }
        const { resolve, last } = waiting;
        waiting = null;
        if (last) sound = bytesOf(buffer).slice();
        try { asked.triggerCanvas?.(); } catch (error) { fail(error); }
        if (failure) throw failure;
        resolve();
      },
      error: fail,
      syncLog(sequence, message, done) { if (typeof done === "function") queueMicrotask(done); },
    },
  });

  globalThis[Symbol.for("fragdex.bridge")] = {
    isAsked: () => asked.beginFrame !== null,
    // The element that such a page consists of, once it knows how long its media are.
    async measure() {
      const root = document.querySelector("ef-timegroup");
      await root?.waitForMediaDurations?.();
      const number = (value) => (Number.isFinite(value) && value > 0 ? Number(value) : null);
      return [number(root?.clientWidth), number(root?.clientHeight), number(root?.durationMs)];
    },
    initialize(options) {
      if (asked.initialize === null) return null;
      return ask({ frame: null }, () => asked.initialize(options, undefined, ""));
    },
    frame: (frame, last) => ask({ frame, last }, () => asked.beginFrame(frame, last)),
    told: () => told.slice(0, 10).map(String).join(", "),
    size: () => sound.length,
    sound(first, stop) {
      let found = "";
      for (let at = first; at < stop; at += PIECE) {
        found += btoa(String.fromCharCode(...sound.subarray(at, Math.min(at + PIECE, stop))));
      }
      return found;
    },
  };
})();
