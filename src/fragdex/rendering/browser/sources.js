// What tells chance and the time of day, on pages and in workers: seeded, and by the page's clock.
// Runs first; the scripts that know the clock call it, and take it away before the page's begin.
// `fps`: frames a second; `told`: the same number as a page writes it (29.97); `late`: milliseconds
// below which an instant is that of the frame before it.
((rate) => {
  "use strict";
  const [fps, told, late] = rate;
  const put = (object, name, value) => {
    if (object) Object.defineProperty(object, name, { value, configurable: true, writable: true });
  };

  // What a clock tells at an instant, both in milliseconds since frame 0. Frames happen on a grid of
  // 100 µs, but no rounding to a grid keeps `floor((now - start) * fps / 1000)` right from any frame
  // on. So in a frame clocks tell its exact time and a billionth more, which no rounding of doubles
  // takes away; between frames, the instant. Where pages write a rate a millionth lower than it is,
  // the time of all clocks is as much longer: a frame in a million of them.
  const BILLIONTH = 2 ** -30;
  const frameAt = (ms) => {
    const i = Math.floor((ms * fps) / 1000 + 1e-6);
    return ms - (i * 1000) / fps < late ? i : null;
  };
  const exact = (ms) => {
    const i = frameAt(ms);
    return i === null ? ms * exact.longer : ((i * 1000) / told) * (1 + BILLIONTH);
  };
  exact.longer = fps / told;
  // A timer of `delay` that is set at an instant is due at this one: from a frame on, from its exact
  // time on, so that what is set for the time of a frame rings in each.
  exact.due = (ms, delay) => {
    const i = frameAt(ms);
    return (i === null ? ms : (i * 1000) / fps) + delay / exact.longer;
  };
  put(globalThis, "__fragdexExact", exact);

  // xorshift128, seeded alike everywhere
  const chance = () => {
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
    if (!globalThis.Crypto) return;
    put(Crypto.prototype, "getRandomValues", function getRandomValues(array) {
      if (!integers.some((kind) => array instanceof kind)) fail("TypeMismatchError", "not an array of integers");
      if (array.byteLength > 65536) fail("QuotaExceededError", "more than 65536 bytes");
      const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
      for (let i = 0; i < bytes.length; i += 1) bytes[i] = next() >>> 13;
      return array;
    });
    if (!Crypto.prototype.randomUUID) return;
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
  };

  // `today`: milliseconds since 1970, whole.
  const dates = (today) => {
    const RealDate = Date;
    const FakeDate = function Date(...given) {
      if (!new.target) return new RealDate(today()).toString();
      return Reflect.construct(RealDate, given.length ? given : [today()], new.target);
    };
    FakeDate.prototype = RealDate.prototype;
    FakeDate.now = () => today();
    FakeDate.parse = RealDate.parse;
    FakeDate.UTC = RealDate.UTC;
    put(RealDate.prototype, "constructor", FakeDate);
    put(globalThis, "Date", FakeDate);

    // Formats of dates that are given none.
    const formats = Intl.DateTimeFormat.prototype;
    const { get } = Object.getOwnPropertyDescriptor(formats, "format");
    const bound = new WeakMap();
    Object.defineProperty(formats, "format", { configurable: true, get() {
      const real = get.call(this);
      if (!bound.has(this)) bound.set(this, (date) => real(date === undefined ? today() : date));
      return bound.get(this);
    } });
    const { formatToParts } = formats;
    put(formats, "formatToParts", function parts(date) {
      return formatToParts.call(this, date === undefined ? today() : date);
    });

    const Temporal = globalThis.Temporal;
    if (Temporal) {
      const { timeZoneId } = Temporal.Now;
      const instant = () => Temporal.Instant.fromEpochMilliseconds(today());
      const zoned = (zone) => instant().toZonedDateTimeISO(zone ?? timeZoneId());
      for (const [name, value] of Object.entries({
        instant,
        zonedDateTimeISO: zoned,
        plainDateTimeISO: (zone) => zoned(zone).toPlainDateTime(),
        plainDateISO: (zone) => zoned(zone).toPlainDate(),
        plainTimeISO: (zone) => zoned(zone).toPlainTime(),
      })) put(Temporal.Now, name, value);
    }

    if (globalThis.File) {
      const Real = File;
      const Fake = new Proxy(Real, { construct(real, [bits, name, options, ...rest], as) {
        const own = { lastModified: today(), ...options };
        if (own.lastModified === undefined) own.lastModified = today();
        const given = bits === undefined || name === undefined ? [bits, name].filter((one) => one !== undefined) : [bits, name, own, ...rest];
        return Reflect.construct(real, given, as === Fake ? real : as);
      } });
      put(Real.prototype, "constructor", Fake);
      put(globalThis, "File", Fake);
    }
  };

  // Loops of a page, which request a frame in each frame: with the same function, or with another
  // one of the same text.
  const loops = () => {
    const before = new WeakMap();
    const text = (callback) => Function.prototype.toString.call(callback);
    let calling = null;
    return {
      call(callback, run) {
        calling = callback;
        run();
        calling = null;
      },
      // what is called now, if a request for a frame continues a loop of it; else null
      continued(callback) {
        if (calling === null || typeof callback !== "function") return null;
        const texts = before.get(calling) ?? new Set([text(calling)]);
        if (texts.has(text(callback))) return calling;
        before.set(callback, new Set(texts).add(text(callback)));
        return null;
      },
    };
  };
  const value = { chance, dates, loops };
  Object.defineProperty(globalThis, "__fragdexSources", { value, configurable: true });
})
