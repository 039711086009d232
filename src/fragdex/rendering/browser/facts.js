// What a page says about itself: the size of its root element, how long it goes, whether it can
// be jumped into. An expression whose value is JSON.
(() => {
  "use strict";
  const told = globalThis.fragdex ?? {};
  const number = (value) => (typeof value === "number" && Number.isFinite(value) && value > 0 ? value : null);
  const IGNORED = new Set(["SCRIPT", "STYLE", "TEMPLATE", "LINK", "META", "AUDIO", "NOSCRIPT"]);
  // Only lengths that the page set itself: `auto` and shares of the window tell nothing.
  const sized = (element) => {
    if (!element?.computedStyleMap) return null;
    const style = element.computedStyleMap();
    const length = (name) => {
      const value = style.get(name);
      return value instanceof CSSUnitValue && value.unit === "px" ? Math.round(value.value) : null;
    };
    const [width, height] = [length("width"), length("height")];
    if (!(width >= 2 && height >= 2)) return null;
    const box = element.getBoundingClientRect();
    return [Math.round(box.width), Math.round(box.height)];
  };
  // What grows, turns or is scaled has a size of this moment, which is nobody's.
  const RESIZES = new Set(["width", "height", "inlineSize", "blockSize", "scale", "rotate", "transform", "zoom"]);
  const animations = globalThis.__fragdexAnimations?.() ?? document.getAnimations();
  const steady = (element) =>
    !animations.some(({ effect }) => effect?.target === element
      && effect.getKeyframes().some((frame) => Object.keys(frame).some((name) => RESIZES.has(name))))
    && !element.querySelector(':scope > :is(animate[attributeName="width"], animate[attributeName="height"], animateTransform)');
  const body = document.body;
  const children = [...(body?.children ?? [])].filter((one) => !IGNORED.has(one.tagName));
  const size =
    (number(told.width) && number(told.height) && [Math.round(told.width), Math.round(told.height)]) ||
    sized(document.documentElement) || sized(body) ||
    (children.length === 1 && steady(children[0]) ? sized(children[0]) : null);

  let longest = 0;
  const take = (ms) => { if (Number.isFinite(ms) && ms > longest) longest = ms; };
  for (const animation of animations) {
    const timing = animation.effect?.getComputedTiming();
    if (timing && animation.timeline === document.timeline && animation.playbackRate > 0) {
      take(timing.endTime / animation.playbackRate);
    }
  }
  for (const one of document.querySelectorAll("animate, animateTransform, animateMotion, set")) {
    try {
      const simple = one.getSimpleDuration();
      const count = one.getAttribute("repeatCount");
      const whole = one.getAttribute("repeatDur");
      if (whole || count === "indefinite") continue;
      take(1000 * (one.getStartTime() + simple * (count ? Number(count) : 1)));
    } catch {}
  }
  return {
    size,
    duration: number(told.duration),
    longest: longest || null,
    seeks: typeof told.seek === "function",
    seekable: typeof told.seek === "function" || document.querySelector('meta[name="fragdex:seekable"]') !== null,
  };
})()
