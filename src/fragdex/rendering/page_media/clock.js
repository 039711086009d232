// What the scripts of the page's media share: the time of the render, and questions to who plays it.
// Every frame of the page gets these scripts; all use the room of the topmost that can be reached.
((settings) => {
  "use strict";
  const name = Symbol.for("fragdex.media");
  const now = window.__fragdexPassed;
  delete window.__fragdexPassed;
  const { XMLHttpRequest, JSON, Math, __fragdexWorking: work } = window;
  delete window.__fragdexWorking;
  const open = XMLHttpRequest.prototype.open;
  const send = XMLHttpRequest.prototype.send;
  const text = Object.getOwnPropertyDescriptor(XMLHttpRequest.prototype, "responseText").get;
  const status = Object.getOwnPropertyDescriptor(XMLHttpRequest.prototype, "status").get;

  let room = null;
  try {
    room = window.top[name] ?? null;
  } catch {
    // a frame of another origin plays by itself, and hears nothing of the stage
  }
  if (room === null) {
    let began = null;
    // A channel, as timers that set timers are late.
    const tasks = [];
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => tasks.shift()();
    room = {
      settings,
      // Milliseconds since frame 0, on the grid of 100 µs; 0 until then.
      clock: () => (began === null ? 0 : Math.max(0, Math.round((now() - began) * 10) / 10)),
      begin() {
        began = now();
        for (const player of room.players) player.schedule();
      },
      begun: () => began !== null,
      // A frame's instant is rounded up to the grid. What begins at one begins at the exact time,
      // or it would be late by up to a tick at each frame that follows.
      exact(at) {
        const [over, under] = settings.fps;
        const frame = Math.floor((at * over) / (under * 1000) + 1e-6);
        const ideal = (frame * under * 1000) / over;
        return at - ideal < 0.15 ? ideal : at;
      },
      // Tasks in the order they were put.
      task(run) {
        tasks.push(run);
        port2.postMessage(0);
      },
      // The page waits for the answer, and its clock with it: the answer comes at no time.
      ask(what, body) {
        const request = new XMLHttpRequest();
        open.call(request, "POST", settings.endpoint + what, false);
        try {
          send.call(request, typeof body === "string" ? body : JSON.stringify(body));
        } catch {
          return null;
        }
        return status.call(request) === 200 ? text.call(request) : null;
      },
      // Bytes of a blob: URL, as base64; null where it is no longer there.
      bytes(url) {
        const request = new XMLHttpRequest();
        try {
          open.call(request, "GET", url, false);
          request.overrideMimeType("text/plain; charset=x-user-defined");
          send.call(request);
        } catch {
          return null;
        }
        const found = text.call(request);
        const parts = [];
        for (let at = 0; at < found.length; at += 24576) {
          const part = found.slice(at, at + 24576);
          const codes = new Array(part.length);
          for (let n = 0; n < part.length; n++) codes[n] = part.charCodeAt(n) & 255;
          parts.push(btoa(String.fromCharCode.apply(null, codes)));
        }
        return parts.join("");
      },
      refuse(what) {
        if (!room.refused.has(what)) {
          room.refused.add(what);
          room.ask("refused", what);
        }
      },
      refused: new Set(),
      players: [],
      contexts: [],
      sources: new Map(),
      // What elements have begun to load; a frame waits for it as for all that the page began.
      loading: 0,
      loads() {
        room.loading += 1;
        work?.begin();
      },
      loaded() {
        room.loading -= 1;
        work?.end();
      },
    };
  }
  Object.defineProperty(window, name, { value: room });

  // Live input: there is nobody before the camera of a render.
  const denied = () => Promise.reject(new DOMException("live input is refused", "NotAllowedError"));
  const devices = {
    getUserMedia() {
      room.refuse("getUserMedia");
      return denied();
    },
    getDisplayMedia() {
      room.refuse("getDisplayMedia");
      return denied();
    },
    enumerateDevices: () => Promise.resolve([]),
    getSupportedConstraints: () => ({}),
    addEventListener() {},
    removeEventListener() {},
  };
  Object.defineProperty(Navigator.prototype, "mediaDevices", { configurable: true, get: () => devices });
  for (const old of ["getUserMedia", "webkitGetUserMedia"]) {
    Navigator.prototype[old] = function (_wanted, _done, failed) {
      room.refuse("getUserMedia");
      if (failed) room.task(() => failed(new DOMException("live input is refused", "NotAllowedError")));
    };
  }
  if (window.MediaSource) {
    const make = URL.createObjectURL;
    URL.createObjectURL = function (thing) {
      const url = make.call(URL, thing);
      if (thing instanceof MediaSource) room.sources.set(url, null);
      return url;
    };
  }
})
