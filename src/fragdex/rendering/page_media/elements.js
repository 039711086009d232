// The interface of media elements, as pages know it, over the players of player.js.
(() => {
  "use strict";
  const room = window[Symbol.for("fragdex.media")];
  const { hide, shadows, shadowed } = window[Symbol.for("fragdex.loader")];
  const Player = window[Symbol.for("fragdex.player")];
  const Media = HTMLMediaElement.prototype;
  const Video = HTMLVideoElement.prototype;
  const own = (proto, key) => Object.getOwnPropertyDescriptor(proto, key);
  const elementOwn = Element.prototype;
  const players = new WeakMap();

  const adopt = (element) => {
    let player = players.get(element);
    if (player === undefined) {
      player = new Player(element);
      players.set(element, player);
      hide(element);
      for (const source of element.querySelectorAll(":scope > source")) hide(source);
      if (shadowed(element, "src") !== null || element.querySelector(":scope > source")) player.select();
    }
    return player;
  };
  room.adopt ??= adopt;

  // -- properties and methods

  const ranges = (stop) => {
    const inside = (n) => {
      if (n !== 0 || !(stop > 0)) throw new DOMException("no such range", "IndexSizeError");
    };
    return {
      length: stop > 0 ? 1 : 0,
      start: (n) => (inside(n), 0),
      end: (n) => (inside(n), stop),
    };
  };
  const number = (value) => {
    const found = Number(value);
    if (!Number.isFinite(found)) throw new TypeError("the value is no finite number");
    return found;
  };
  const get = (proto, key, read, write) => {
    const set = write && function (value) {
      write(adopt(this), value, this);
    };
    Object.defineProperty(proto, key, {
      configurable: true, enumerable: true, set, get() {
        return read(adopt(this), this);
      },
    });
  };
  const rated = (key) => (player, value) => {
    const rate = number(value);
    if (rate < 0 || (rate !== 0 && (rate < 0.0625 || rate > 16))) {
      throw new DOMException(`a rate of ${rate} cannot be played`, "NotSupportedError");
    }
    if (player[key] === rate) return;
    const place = player.position();
    player[key] = rate;
    if (key === "rate") player.settle(place);
    player.say("ratechange");
  };

  for (const key of ["paused", "ended", "duration", "readyState", "networkState", "seeking", "error"]) {
    get(Media, key, (player) => player[key]);
  }
  get(Media, "currentTime", (player) => (player.readyState ? player.position() : player.startAt),
    (player, value) => player.seek(number(value)));
  get(Media, "playbackRate", (player) => player.rate, rated("rate"));
  get(Media, "defaultPlaybackRate", (player) => player.defaultRate, rated("defaultRate"));
  get(Media, "volume", (player) => player.volume, (player, value) => {
    const volume = number(value);
    if (volume < 0 || volume > 1) throw new DOMException("a volume is 0 to 1", "IndexSizeError");
    if (volume === player.volume) return;
    player.volume = volume;
    player.loudness();
  });
  get(Media, "muted", (player) => player.muted, (player, value) => {
    if (player.muted === Boolean(value)) return;
    player.muted = Boolean(value);
    player.loudness();
  });
  for (const key of ["preservesPitch", "webkitPreservesPitch"]) {
    get(Media, key, (player) => player.pitch, (player, value) => {
      const place = player.position();
      player.pitch = Boolean(value);
      player.settle(place);
    });
  }
  get(Media, "currentSrc", (player) => player.url);
  get(Media, "buffered", (player) => ranges(player.duration));
  get(Media, "seekable", (player) => ranges(player.duration));
  get(Media, "played", (player) => ranges(player.position()));
  get(Media, "srcObject", () => null, (player, value) => {
    if (value === null || value === undefined) return;
    room.refuse(value instanceof Blob ? "srcObject" : (value.constructor?.name ?? "srcObject"));
    player.fail();
  });
  const nativeSrc = own(Media, "src");
  get(Media, "src", (_player, element) => {
    const hidden = shadows.get(element);
    return hidden === undefined ? nativeSrc.get.call(element) : hidden;
  }, (_player, value, element) => element.setAttribute("src", value));
  const nativeLoop = own(Media, "loop");
  get(Media, "loop", (_player, element) => nativeLoop.get.call(element), (player, value, element) => {
    const place = player.position();
    nativeLoop.set.call(element, value);
    player.settle(place);
  });

  const methods = {
    play() {
      return adopt(this).play();
    },
    pause() {
      adopt(this).pause();
    },
    load() {
      adopt(this).reload();
    },
    fastSeek(time) {
      adopt(this).seek(number(time));
    },
    captureStream() {
      room.refuse("captureStream");
      throw new DOMException("live streams are refused", "NotSupportedError");
    },
    setSinkId: () => Promise.resolve(),
    setMediaKeys: () => Promise.reject(new DOMException("no keys", "NotSupportedError")),
  };
  for (const [key, value] of Object.entries(methods)) Media[key] = value;

  // What is decoded here, not what this build of the browser could.
  const PLAYED = /^(video|audio)\/(mp4|webm|ogg|quicktime|x-matroska|x-m4v|x-m4a|m4a|mpeg|mp3|aac|wav|wave|x-wav|flac|x-flac|3gpp|mp2t|x-msvideo)$/;
  const native = Media.canPlayType;
  Media.canPlayType = function (type) {
    const known = native.call(this, type);
    const [kind, ...rest] = String(type).toLowerCase().split(";");
    if (known || !PLAYED.test(kind.trim())) return known;
    return rest.some((part) => part.includes("codecs")) ? "probably" : "maybe";
  };

  get(Video, "videoWidth", (player) => player.facts?.video?.width ?? 0);
  get(Video, "videoHeight", (player) => player.facts?.video?.height ?? 0);
  const nativePoster = own(Video, "poster");
  get(Video, "poster", (player) => player.userPoster ?? "", (_player, value, element) =>
    element.setAttribute("poster", value));
  Video.requestVideoFrameCallback = function (call) {
    const player = adopt(this);
    room.lastCallback = (room.lastCallback ?? 0) + 1;
    player.callbacks.set(room.lastCallback, call);
    return room.lastCallback;
  };
  Video.cancelVideoFrameCallback = function (handle) {
    adopt(this).callbacks.delete(handle);
  };
  Video.getVideoPlaybackQuality = function () {
    const shown = adopt(this).shown;
    return { creationTime: room.clock(), totalVideoFrames: shown, droppedVideoFrames: 0, corruptedVideoFrames: 0 };
  };
  Video.requestPictureInPicture = () => Promise.reject(new DOMException("no screen", "NotSupportedError"));

  // -- attributes

  const changed = (element, key) => {
    const player = adopt(element);
    if (key === "src") player.reload();
    else if (key === "loop" || key === "autoplay") {
      if (key === "autoplay" && player.readyState === 4 && player.paused && player.autoplaying) {
        if (element.hasAttribute("autoplay")) element.play().catch(() => undefined);
      } else if (key === "loop") player.settle();
    } else if (key === "preload" && player.waiting && element.getAttribute("preload") !== "none") player.need();
  };
  Media.getAttribute = function (key) {
    const name = String(key).toLowerCase();
    if (name === "poster" && players.has(this)) return players.get(this).userPoster;
    return name === "src" ? shadowed(this, name) : elementOwn.getAttribute.call(this, key);
  };
  Media.hasAttribute = function (key) {
    const name = String(key).toLowerCase();
    if (name === "src" || name === "poster") return this.getAttribute(name) !== null;
    return elementOwn.hasAttribute.call(this, key);
  };
  const changing = (run) => function (key, ...rest) {
    const name = String(key).toLowerCase();
    const player = adopt(this);
    if (name === "poster" && player.video) {
      const url = rest.length ? String(rest[0]) : null;
      if (url) {
        // through the browser once, so that it is resolved as the page means it
        nativePoster.set.call(this, url);
        player.takePoster(nativePoster.get.call(this));
      } else {
        elementOwn.removeAttribute.call(this, "poster");
        player.takePoster(null);
      }
      return;
    }
    seen.takeRecords().forEach(look);
    if (name === "src") shadows.delete(this);
    run.call(this, key, ...rest);
    if (name === "src") hide(this);
    seen.takeRecords();  // what was just done
    if (name !== "src" || rest.length) changed(this, name);
  };
  Media.setAttribute = changing(elementOwn.setAttribute);
  Media.removeAttribute = changing(elementOwn.removeAttribute);
  Media.toggleAttribute = changing(elementOwn.toggleAttribute);

  // -- elements that come and go

  const each = (nodes, run) => {
    for (const node of nodes) {
      if (node instanceof HTMLMediaElement) run(node);
      if (node instanceof Element) node.querySelectorAll("video, audio").forEach(run);
    }
  };
  const gone = (element) => {
    if (!element.isConnected && players.has(element)) players.get(element).pause();
  };
  const look = (record) => {
    if (record.type === "attributes") {
      const { target, attributeName: key } = record;
      if (!(target instanceof HTMLMediaElement)) return;
      // set in another way than by its methods: by its properties, or as an attribute node
      if (key === "src") {
        if (elementOwn.getAttribute.call(target, "src") === null) return;
        shadows.delete(target);
        hide(target);
      }
      changed(target, key);
      return;
    }
    each(record.addedNodes, adopt);
    for (const node of record.addedNodes) {
      const parent = node.parentNode;
      if (!(node instanceof HTMLSourceElement) || !(parent instanceof HTMLMediaElement)) continue;
      hide(node);
      const player = adopt(parent);
      if (shadowed(parent, "src") !== null) continue;
      if (player.networkState === 0) player.select();
      else if (player.exhausted) {
        player.exhausted = false;
        player.networkState = 2;
        player.candidate(node);
      }
    }
    each(record.removedNodes, gone);
  };
  const seen = new MutationObserver((records) => records.forEach(look));
  const watch = (root) => seen.observe(root, {
    childList: true, subtree: true, attributes: true,
    attributeFilter: ["src", "autoplay", "loop", "preload"],
  });
  watch(document);
  const attach = elementOwn.attachShadow;
  elementOwn.attachShadow = function (options) {
    const root = attach.call(this, options);
    watch(root);
    return root;
  };

  const create = Document.prototype.createElement;
  Document.prototype.createElement = function (...given) {
    const element = create.apply(this, given);
    if (element instanceof HTMLMediaElement) adopt(element);
    return element;
  };
  const NativeAudio = window.Audio;
  window.Audio = function Audio(url) {
    const element = document.createElement("audio");
    element.setAttribute("preload", "auto");
    if (url !== undefined) element.setAttribute("src", url);
    return element;
  };
  window.Audio.prototype = NativeAudio.prototype;
  const listen = EventTarget.prototype.addEventListener;
  EventTarget.prototype.addEventListener = function (...given) {
    // before the page's own listener stands the one that keeps the browser's events from it
    if (this instanceof HTMLMediaElement) adopt(this);
    return listen.apply(this, given);
  };
  // Controls show the browser's idle engine.
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("video::-webkit-media-controls, audio::-webkit-media-controls { display: none !important }");
  document.adoptedStyleSheets.push(sheet);
})
