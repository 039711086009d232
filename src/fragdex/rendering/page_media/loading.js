// How a media element comes to know what it plays: sources, facts, errors, the page's poster (HTML,
// 4.8.11.5). Bytes are read by whoever answers the scripts, never by the browser.
(() => {
  "use strict";
  const room = window[Symbol.for("fragdex.media")];
  const Video = HTMLVideoElement.prototype;
  const own = (proto, key) => Object.getOwnPropertyDescriptor(proto, key);
  const getAttribute = Element.prototype.getAttribute;
  const removeAttribute = Element.prototype.removeAttribute;
  const hasAttribute = Element.prototype.hasAttribute;
  const listen = EventTarget.prototype.addEventListener;
  const dispatch = EventTarget.prototype.dispatchEvent;
  const poster = own(Video, "poster");
  const shadows = new WeakMap();

  const EVENTS = ("abort canplay canplaythrough durationchange emptied ended error loadeddata " +
    "loadedmetadata loadstart pause play playing progress ratechange resize seeked seeking " +
    "stalled suspend timeupdate volumechange waiting encrypted").split(" ");
  // What the browser itself says of its idle engine is not for the page.
  const silence = (event) => {
    const from = event.target;
    const media = from instanceof HTMLMediaElement
      || (from instanceof HTMLSourceElement && from.parentNode instanceof HTMLMediaElement);
    if (event.isTrusted && media) event.stopImmediatePropagation();
  };
  for (const kind of EVENTS) listen.call(window, kind, silence, true);

  // The browser decodes data: and blob: without asking anyone, so it must not see them.
  const hide = (element) => {
    const url = getAttribute.call(element, "src");
    if (url !== null && /^\s*(data|blob):/i.test(url)) {
      shadows.set(element, url);
      removeAttribute.call(element, "src");
    }
  };
  const shadowed = (element, key) =>
    (key === "src" ? shadows.get(element) : undefined) ?? getAttribute.call(element, key);

  class Loader {
    constructor(element) {
      Object.assign(this, {
        element, id: room.players.length, video: element instanceof HTMLVideoElement,
        networkState: 0, readyState: 0, error: null, url: "", source: null, facts: null,
        paused: true, seeking: false, rate: 1, defaultRate: 1, volume: 1, pitch: true,
        muted: hasAttribute.call(element, "muted"),
        // Where it is: `time` seconds of media at `at` milliseconds of the render.
        time: 0, at: 0, moving: false, until: Infinity, startAt: 0,
        autoplaying: true, showPoster: true, userPoster: null,
        load: 0, asked: 0, promises: [], timers: [], sounds: [], routed: null,
        drawn: "", held: "", presented: null, shown: 0, callbacks: new Map(), exhausted: false,
      });
      room.players.push(this);
      for (const kind of EVENTS) listen.call(element, kind, silence);
      if (this.video && hasAttribute.call(element, "poster")) this.takePoster(poster.get.call(element));
    }

    get duration() {
      return this.facts === null ? NaN : (this.facts.duration ?? Infinity);
    }

    // A file that begins late is played from there at once, as browsers do.
    get begin() {
      return this.facts?.start ?? 0;
    }

    get loops() {
      return hasAttribute.call(this.element, "loop");
    }

    // Events are tasks of their own; those of a source that was replaced do not come.
    say(...kinds) {
      const load = this.load;
      for (const kind of kinds) {
        room.task(() => {
          if (load === this.load || kind === "emptied" || kind === "abort") this.fire(kind);
        });
      }
    }

    fire(kind, at = this.element) {
      dispatch.call(at, new Event(kind));
    }

    settlePromises(error) {
      const waiting = this.promises;
      this.promises = [];
      for (const promise of waiting) {
        if (error) promise.reject(new DOMException("the media cannot be played", error));
        else promise.resolve();
      }
    }

    // -- loading (HTML, 4.8.11.5)

    select() {
      this.load += 1;
      const load = this.load;
      this.asked = room.exact(room.clock());
      this.networkState = 3;
      this.showPoster = true;
      this.exhausted = false;
      room.loads();
      queueMicrotask(() => {
        room.loaded();
        if (load !== this.load) return;
        const url = this.attribute("src");
        const first = this.element.querySelector(":scope > source");
        if (url === null && first === null) {
          this.networkState = 0;
          return;
        }
        this.networkState = 2;
        this.say("loadstart");
        if (url !== null) this.fetch(url, () => this.fail());
        else this.candidate(first);
      });
    }

    candidate(source) {
      if (source === null) {
        this.networkState = 3;
        this.exhausted = true;
        return;
      }
      const next = () => {
        let other = source.nextElementSibling;
        while (other && !(other instanceof HTMLSourceElement)) other = other.nextElementSibling;
        this.candidate(other);
      };
      const failed = () => {
        room.task(() => this.fire("error", source));
        next();
      };
      const url = shadowed(source, "src");
      const type = getAttribute.call(source, "type");
      if (!url || (type && !this.element.canPlayType(type))) failed();
      else this.fetch(url, failed);
    }

    fetch(given, failed) {
      const load = this.load;
      let url;
      try {
        url = new URL(given, document.baseURI);
      } catch {
        return failed();
      }
      if (given === "") return failed();
      const whole = url.href;
      const lazy = getAttribute.call(this.element, "preload") === "none"
        && !hasAttribute.call(this.element, "autoplay") && this.paused;
      this.url = whole;
      if (lazy && !this.wanted) {
        this.networkState = 1;
        this.say("suspend");
        this.waiting = () => {
          this.networkState = 2;
          this.fetch(given, failed);
        };
        return undefined;
      }
      room.loads();
      room.task(() => {
        room.loaded();
        if (load !== this.load) return;
        const facts = this.factsOf(whole);
        if (facts === null) failed();
        else this.known(facts, url.hash);
      });
      return undefined;
    }

    factsOf(whole) {
      const plain = whole.startsWith("data:") ? whole : whole.replace(/#.*$/s, "");
      let facts = room.sources.get(plain);
      if (facts === null) room.refuse("MediaSource");
      if (facts === undefined) {
        const question = { url: plain, video: this.video };
        if (plain.startsWith("blob:")) question.bytes = room.bytes(plain);
        const answer = question.bytes === null ? null : room.ask("facts", question);
        facts = answer === null ? null : JSON.parse(answer);
        if (facts !== null || !plain.startsWith("blob:")) room.sources.set(plain, facts ?? undefined);
      }
      return facts && (facts.audio || facts.video) ? facts : null;
    }

    fail() {
      this.error = Object.create(MediaError.prototype, {
        code: { value: 4 }, message: { value: "the media cannot be decoded" },
      });
      this.networkState = 3;
      this.showPoster = true;
      this.say("error");
      room.task(() => this.settlePromises("NotSupportedError"));
    }

    known(facts, hash) {
      this.facts = facts;
      this.source = facts.key;
      this.readyState = 1;
      const part = /[#&]t=(?:npt:)?([\d:.]*)(?:,([\d:.]+))?/.exec(hash);
      const seconds = (text) => text.split(":").reduce((sum, piece) => sum * 60 + Number(piece), 0);
      const from = this.startAt || (part && part[1] ? seconds(part[1]) : 0);
      this.until = part && part[2] && seconds(part[2]) > from ? seconds(part[2]) : Infinity;
      this.startAt = 0;
      this.time = Math.min(Math.max(from, this.begin), this.duration);
      this.size();
      this.fire("durationchange");
      if (this.video && facts.video) this.fire("resize");
      this.fire("loadedmetadata");
      if (this.time > this.begin) this.say("seeking", "timeupdate", "seeked");
      const load = this.load;
      const step = (run) => {
        room.loads();
        room.task(() => {
          room.loaded();
          if (load === this.load) run();
        });
      };
      step(() => {
        this.readyState = 2;
        this.fire("loadeddata");
      });
      step(() => {
        this.readyState = 4;
        this.networkState = 1;
        this.say("progress", "suspend");
        this.fire("canplay");
        if (!this.paused) this.say("playing");
        else if (this.autoplaying && hasAttribute.call(this.element, "autoplay")) {
          this.paused = false;
          this.showPoster = false;
          this.say("play", "playing");
        }
        // Loading takes no time here, but for that of its tasks: it plays since it was asked to.
        this.settle(undefined, this.asked);
        if (!this.paused) room.task(() => this.settlePromises());
        this.fire("canplaythrough");
      });
    }

    reload() {
      if (this.networkState === 1 || this.networkState === 2) this.say("abort");
      if (this.networkState !== 0) {
        this.say("emptied");
        this.moving = false;
        this.log(room.exact(room.clock()));
        this.schedule();
        this.readyState = 0;
        this.facts = this.source = null;
        this.paused = true;
        this.seeking = false;
        if (this.time > 0) this.say("timeupdate");
        this.time = this.startAt = 0;
        this.drawn = "";
        this.presented = null;
      }
      this.waiting = null;
      this.wanted = false;
      this.settlePromises("AbortError");
      this.rate = this.defaultRate;
      this.error = null;
      this.autoplaying = true;
      this.select();
    }

    // -- attributes, and the element's size

    attribute(key) {
      return shadowed(this.element, key);
    }

    takePoster(url) {
      this.userPoster = url || null;
      this.drawn = "";
      if (this.facts?.video) this.size();
    }

    // The natural size of the element is that of its poster: a clear one in the video's own size,
    // until the first picture comes. A poster of the page is put on a sheet of that size.
    size() {
      if (!this.video || !this.facts?.video) return;
      const wanted = this.userPoster;
      if (wanted === null || !this.showPoster) return void this.show(this.facts.video.blank);
      const { width, height } = this.facts.video;
      const picture = new Image();
      room.loads();
      const done = (found) => {
        room.loaded();
        if (wanted !== this.userPoster || !this.facts?.video) return;
        if (!found) this.userPoster = null;
        else if (this.showPoster && picture.naturalWidth > 0) {
          const sheet = document.createElement("canvas");
          [sheet.width, sheet.height] = [width, height];
          const scale = Math.min(width / picture.naturalWidth, height / picture.naturalHeight);
          const [wide, high] = [picture.naturalWidth * scale, picture.naturalHeight * scale];
          try {
            sheet.getContext("2d").drawImage(picture, (width - wide) / 2, (height - high) / 2, wide, high);
            this.show(sheet.toDataURL());
          } catch {
            // one of another origin may be shown, but not copied: it keeps its own size
          }
        }
      };
      listen.call(picture, "load", () => done(true));
      listen.call(picture, "error", () => done(false));
      picture.src = wanted;
    }

    show(picture) {
      this.held = "";
      poster.set.call(this.element, picture);
    }
  }

  Object.defineProperty(window, Symbol.for("fragdex.loader"), { value: { Loader, hide, shadows, shadowed } });
})
