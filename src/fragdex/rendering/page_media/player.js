// One media element, played on the clock of the render: what HTML calls a media element (4.8.11),
// without the browser's own playing, which follows the clock of the machine.
(() => {
  "use strict";
  const room = window[Symbol.for("fragdex.media")];
  const { Loader } = window[Symbol.for("fragdex.loader")];
  const later = setTimeout.bind(window);
  const forget = clearTimeout.bind(window);

  class Player extends Loader {
    get ended() {
      return this.readyState > 0 && !this.loops && !this.seeking && this.time >= this.duration && !this.moving;
    }

    // Rounded up to a microsecond, so that a page which counts frames by it counts right.
    position(at = room.clock()) {
      if (!this.moving) return this.time;
      const spent = Math.max(0, at - this.at) * this.rate * 1000;
      let place = this.time + Math.ceil(spent - 1e-3) / 1e6;
      if (place >= this.duration) {
        const { begin, duration } = this;
        place = this.loops ? begin + ((place - begin) % (duration - begin)) : duration;
      }
      return place;
    }

    // From now on it continues from `time`, as fast as it goes now.
    settle(time, at = room.exact(room.clock())) {
      time ??= this.position(this.paused ? room.clock() : at);
      this.time = time;
      this.at = at;
      const goes = !this.paused && this.readyState >= 3
        && (this.time < this.duration || (this.loops && this.duration > 0));
      this.moving = goes;
      this.log(at);
      this.schedule();
    }

    schedule() {
      this.timers.forEach(forget);
      this.timers = [];
      if (!this.moving) return;
      this.timers.push(later(() => this.tick(), 250));
      const stop = Math.min(this.duration, this.until);
      if (this.rate > 0 && stop < Infinity) {
        const left = Math.ceil(((stop - this.time) / this.rate) * 1000 - (room.clock() - this.at));
        this.timers.push(later(() => this.reached(), Math.min(Math.max(left, 0), 2 ** 31 - 1)));
      }
    }

    tick() {
      if (!this.moving) return;
      this.say("timeupdate");
      this.timers[0] = later(() => this.tick(), 250);
    }

    reached() {
      if (!this.moving) return;
      // Before frame 0 the clock of the render stands.
      if (!room.begun()) return this.schedule();
      const place = this.position();
      if (this.until < this.duration && this.time < this.until) {
        if (place < this.until - 1e-6) return this.schedule();
        this.time = this.until;
        this.until = Infinity;
        this.moving = false;
        return this.pause();
      }
      if (this.loops) {
        const at = room.clock();
        const spent = ((at - this.at) / 1000) * this.rate;
        if (this.time + spent < this.duration) return this.schedule();
        const [place, length] = [this.time - this.begin, this.duration - this.begin];
        const rounds = Math.floor((place + spent) / length);
        // The sound continues without a seam: only its position is computed again.
        this.at += ((rounds * length - place) / this.rate) * 1000;
        this.time = this.begin;
        this.say("seeking", "timeupdate", "seeked");
        return this.schedule();
      }
      if (place < this.duration) return this.schedule();
      const end = this.at + ((this.duration - this.time) / this.rate) * 1000;
      this.moving = false;
      this.time = this.duration;
      this.log(end);
      this.schedule();
      this.say("timeupdate");
      this.paused = true;
      this.say("pause", "ended");
      this.settlePromises("AbortError");
    }

    // -- what is heard

    log(at) {
      const wanted = this.moving && this.rate > 0 && Boolean(this.facts?.audio);
      const last = this.sounds.at(-1);
      if (last && last.stop === null) last.stop = Math.max(at, last.start);
      if (this.routed) this.routed(wanted ? this.sound(at) : null);
      else if (wanted) this.sounds.push(this.sound(at));
    }

    sound(at) {
      return {
        voice: `${this.id}.${this.load}`, source: this.source, start: at, stop: null,
        media: this.time, rate: this.rate, gains: [[at, this.gain]], loop: this.loops, pitch: this.pitch,
      };
    }

    get gain() {
      return this.muted ? 0 : this.volume;
    }

    loudness() {
      const last = this.sounds.at(-1);
      if (last && last.stop === null) last.gains.push([room.exact(room.clock()), this.gain]);
      else if (this.routed) this.routed(undefined);
      this.say("volumechange");
    }

    // -- playing

    need() {
      if (this.networkState === 0) this.select();
      const waiting = this.waiting;
      this.waiting = null;
      this.wanted = true;
      if (waiting) waiting();
    }

    play() {
      if (this.error !== null) return Promise.reject(new DOMException("no source", "NotSupportedError"));
      const promise = new Promise((resolve, reject) => this.promises.push({ resolve, reject }));
      if (this.readyState > 0 && !this.moving && this.time >= this.duration && !this.loops) this.seek(0);
      this.autoplaying = false;
      const began = this.paused;
      this.paused = false;
      if (began) this.asked = room.exact(room.clock());
      this.need();
      if (began) {
        this.showPoster = false;
        this.say("play");
        if (this.readyState >= 3) this.say("playing");
        else this.say("waiting");
      }
      if (this.readyState >= 3) {
        if (began) this.settle();
        room.task(() => this.settlePromises());
      }
      return promise;
    }

    pause() {
      if (this.networkState === 0) this.select();
      this.autoplaying = false;
      if (this.paused) return;
      this.paused = true;
      this.settle();
      this.say("timeupdate", "pause");
      const waiting = this.promises;
      this.promises = [];
      room.task(() => {
        for (const promise of waiting) promise.reject(new DOMException("paused", "AbortError"));
      });
    }

    seek(time) {
      if (this.readyState === 0) {
        this.startAt = time;
        return;
      }
      this.showPoster = false;
      this.seeking = true;
      this.settle(Math.min(Math.max(time, this.begin), this.duration));
      this.say("seeking");
      const load = this.load;
      this.seeks = (this.seeks ?? 0) + 1;
      const seeks = this.seeks;
      room.task(() => {
        if (load !== this.load || seeks !== this.seeks) return;
        this.seeking = false;
        this.fire("timeupdate");
        this.fire("seeked");
      });
    }

  }

  // What is heard, and when the last of what plays now has ended (milliseconds of the render).
  room.sounds ??= () => room.players.flatMap((player) => player.sounds);
  room.longest ??= () => {
    const ends = room.players
      .filter((player) => player.moving && player.rate > 0 && !player.loops)
      .map((player) => player.at + ((Math.min(player.duration, player.until) - player.time) / player.rate) * 1000)
      .filter(Number.isFinite);
    return ends.length ? Math.max(...ends) : null;
  };

  Object.defineProperty(window, Symbol.for("fragdex.player"), { value: Player });
})
