// The characters that a page shows and no font has, each told once. An expression whose value is a
// string; it runs in a world next to the page's, which keeps what was looked at already.
(() => {
  "use strict";
  const SIDE = 32;
  const MOST_CHARACTERS = 200_000; // of a page, at once
  const MOST_LOOKS = 2_000;
  // No character is there, nor will be soon: what a font shows for those that it has not.
  const NONE = "\u0378";
  // Blank by design, and parts of other characters; of the private ones those of icons count.
  const PASSED = /[\s\p{M}\p{Cc}\p{Cf}\p{Cs}\p{Cn}\u115f\u1160\u2800\u3164\uffa0]/u;
  globalThis.seen ??= new Map();
  globalThis.looked ??= new WeakMap();
  globalThis.canvas ??= Object.assign(document.createElement("canvas"), { width: SIDE, height: SIDE });
  globalThis.context ??= canvas.getContext("2d", { willReadFrequently: true });
  const pixels = (text) => {
    context.clearRect(0, 0, SIDE, SIDE);
    context.fillText(text, SIDE / 8, (3 * SIDE) / 4);
    return context.getImageData(0, 0, SIDE, SIDE).data.join();
  };
  const fontOf = (element) => {
    const { fontStyle, fontWeight, fontFamily } = getComputedStyle(element);
    return `${fontStyle} ${fontWeight} ${SIDE / 2}px ${fontFamily}`;
  };
  const found = new Set();
  let [left, looks] = [MOST_CHARACTERS, MOST_LOOKS];
  const look = (element, text) => {
    const font = fontOf(element);
    let known = seen.get(font);
    if (!known) seen.set(font, (known = { characters: new Set(), none: null }));
    for (const one of text) {
      if (known.characters.has(one) || PASSED.test(one)) continue;
      if ((looks -= 1) < 0) return;
      known.characters.add(one);
      context.font = font;
      known.none ??= pixels(NONE);
      if (pixels(one) === known.none) found.add(one);
    }
  };
  const walk = (root) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    for (let node = walker.nextNode(); node && left > 0 && looks > 0; node = walker.nextNode()) {
      if (node.nodeType === Node.ELEMENT_NODE) {
        if (node.shadowRoot) walk(node.shadowRoot);
        continue;
      }
      const text = node.data;
      if (looked.get(node) === text) continue;
      left -= text.length;
      const element = node.parentElement ?? root.host;
      // What is not shown may be in a font that the page has not loaded.
      if (!element?.checkVisibility({ visibilityProperty: true })) continue;
      looked.set(node, text);
      look(element, text.slice(0, MOST_CHARACTERS));
    }
  };
  if (document.body) walk(document.body);
  return [...found].join("");
})()
