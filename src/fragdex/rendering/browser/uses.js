// Runs before the page's own scripts where a page is checked: tells what it uses that may come out
// otherwise in another run, and where. Nothing of it works otherwise than without this.
(() => {
  "use strict";
  const tell = globalThis.__fragdexTell;
  if (!tell) return;
  const write = JSON.stringify;
  // Our own scripts have no URL; the first line of the stack that has one is the page's.
  const place = () => {
    const found = /(https?:\/\/[^\s()]*?):(\d+):\d+/.exec(String(new Error().stack));
    return found ? `${found[1]}:${found[2]}` : "";
  };
  const told = new Set();
  const use = (what) => {
    try {
      const one = write({ uses: String(what).slice(0, 500), at: place() });
      if (told.has(one) || told.size > 200) return;
      told.add(one);
      tell(one);
    } catch {}
  };
  const watch = (object, name, what) => {
    const real = object?.[name];
    if (typeof real !== "function") return;
    const value = { [name](...given) {
      const words = what.call(this, ...given);
      if (words) use(words);
      return real.apply(this, given);
    } }[name];
    Object.defineProperty(object, name, { value, configurable: true, writable: true });
  };
  const always = (words) => () => words;

  const EMPTY = "each render begins with an empty one";
  for (const name of ["getItem", "setItem"]) {
    watch(globalThis.Storage?.prototype, name, function () {
      return `${this === globalThis.sessionStorage ? "sessionStorage" : "localStorage"}: ${EMPTY}`;
    });
  }
  watch(globalThis.IDBFactory?.prototype, "open", always(`IndexedDB: ${EMPTY}, and the machine decides when it answers`));
  watch(globalThis.CacheStorage?.prototype, "open", always(`CacheStorage: ${EMPTY}, and the machine decides when it answers`));
  watch(globalThis.StorageManager?.prototype, "getDirectory", always(`a file system: ${EMPTY}, and the machine decides when it answers`));

  for (const name of ["generateKey", "sign", "encrypt"]) {
    watch(globalThis.SubtleCrypto?.prototype, name, (kind) => {
      const algorithm = String(kind?.name ?? kind).toUpperCase();
      const isChance = name === "generateKey" || ["ECDSA", "RSA-PSS", "RSA-OAEP"].includes(algorithm);
      return isChance && `crypto.subtle.${name}: its chance has no seed`;
    });
  }
  // A page that renders itself has what it fetches before it answers.
  const isAsked = () => globalThis[Symbol.for("fragdex.bridge")]?.isAsked();
  const late = () => performance.now() > 0 && !isAsked();
  watch(globalThis, "fetch", (what) => late() && `fetch after time 0: ${what?.url ?? what}`);
  watch(globalThis.XMLHttpRequest?.prototype, "open", (_, url) => late() && `XMLHttpRequest after time 0: ${url}`);
  // Codecs take the machine's time.
  for (const [kind, name] of [
    ["VideoDecoder", "decode"], ["AudioDecoder", "decode"],
    ["VideoEncoder", "encode"], ["AudioEncoder", "encode"],
  ]) {
    watch(globalThis[kind]?.prototype, name, () => late() && `${kind}.${name} after time 0: the machine decides when it answers`);
  }
  watch(globalThis.Geolocation?.prototype, "getCurrentPosition", always("geolocation"));
  watch(globalThis.Geolocation?.prototype, "watchPosition", always("geolocation"));
  if (globalThis.EventSource) {
    globalThis.EventSource = new Proxy(EventSource, {
      construct(real, given, as) {
        use(`EventSource: ${given[0]}: its events have no time of the page`);
        return Reflect.construct(real, given, as);
      },
    });
  }
})();
