// Whether `random()` of CSS stands anywhere in a frame of the page, as it is now: an expression. Its
// values have no seed of ours, unless they are `fixed`.
(() => {
  "use strict";
  const CHANCE = /(?<![-\w.])random(?:-item)?\((?!\s*fixed\b)/i;
  const has = (text) => CHANCE.test(text);
  const inSheet = (sheet) => {
    try {
      return [...sheet.cssRules].some((rule) => (rule.styleSheet ? inSheet(rule.styleSheet) : has(rule.cssText)));
    } catch {
      return false; // of another origin: its text was looked at when it came
    }
  };
  const roots = globalThis.__fragdexRoots();
  if (roots.some((root) => [...root.styleSheets, ...root.adoptedStyleSheets].some(inSheet))) return true;
  if (globalThis.__fragdexAnimations().some(({ effect }) => has(JSON.stringify(effect?.getKeyframes?.() ?? [])))) return true;
  // style, presentation attributes of SVG, and whatever attr() may read
  const attributes = './/@*[contains(translate(., "RANDOM", "random"), "random") and not(starts-with(name(), "on"))]';
  return roots.flatMap((root) => (root === document ? [root] : [...root.children])).some((root) => {
    const found = document.evaluate(attributes, root, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE);
    for (let i = 0; i < found.snapshotLength; i += 1) if (has(found.snapshotItem(i).value)) return true;
    return false;
  });
})()
