// In a world next to the page's, which the page can neither see nor change: whether the page may be
// one canvas, and the pixels of that canvas, as the worker of canvas_worker.js writes them.
(() => {
  "use strict";
  const ELEMENTS = 100;
  const CHARACTERS = 2 ** 18;
  const FORMATS = ["BGRA", "BGRX", "RGBA", "RGBX"];
  const SRGB = { primaries: "bt709", transfer: "iec61966-2-1", matrix: "rgb", fullRange: true };
  const names = [...getComputedStyle(document.documentElement)];
  let worker = null;
  let [styles, known, context] = ["", null, null];
  const free = [];
  const allStyles = () => {
    const values = [];
    for (const one of document.getElementsByTagName("*")) {
      if (!one.getClientRects().length) continue;
      const style = getComputedStyle(one);
      for (const name of names) values.push(style.getPropertyValue(name));
    }
    return values.join("\n");
  };
  return {
    names,
    // Whether it is worth a look: of large pages a look takes longer than their pictures.
    isLikely: () => document.getElementsByTagName("canvas").length > 0 &&
      document.getElementsByTagName("*").length <= ELEMENTS &&
      document.documentElement.outerHTML.length <= CHARACTERS,
    // Of an empty script: the worker's own comes another way.
    url: () => URL.createObjectURL(new Blob([], { type: "text/javascript" })),
    start: (url) => {
      worker = new Worker(url);
      worker.onmessage = ({ data }) => { free.push(data); };
    },
    // The styles of the page are those that it had when the canvas was read last. It was opaque, so
    // it has a context, and another kind of one is null. Whether what is drawn on it stays.
    know: (canvas) => {
      context = null;
      for (const kind of ["2d", "webgl2", "webgl"]) context ??= canvas.getContext(kind);
      const { desynchronized, preserveDrawingBuffer } = context?.getContextAttributes() ?? {};
      known = context && !desynchronized ? styles : null;
      return context instanceof CanvasRenderingContext2D || preserveDrawingBuffer === true;
    },
    // Hand the pixels of a canvas to the worker. How they lie, and whether the page's styles are
    // known; null where they are not what a picture of the canvas shows.
    async read(canvas, number, width, height) {
      const isPlain = document.designMode === "off" && getSelection()?.type !== "Range" &&
        visualViewport.scale === 1 && !document.activeViewTransition;
      // of WebGL the frame tells sRGB whatever it is
      const isSrgb = (context?.drawingBufferColorSpace ?? "srgb") === "srgb";
      if (!isPlain || !isSrgb || context?.isContextLost?.()) return null;
      let frame = null;
      try {
        frame = new VideoFrame(canvas, { timestamp: 0 });
        const { format, visibleRect, colorSpace } = frame;
        const fits = visibleRect.width === width && visibleRect.height === height &&
          FORMATS.includes(format) && Object.keys(SRGB).every((key) => colorSpace[key] === SRGB[key]);
        if (!fits) return null;
        const bytes = free.pop() ?? new ArrayBuffer(width * height * 4);
        await frame.copyTo(bytes);
        worker.postMessage([number, bytes], [bytes]);
        styles = allStyles();
        return [format, styles === known];
      } catch {
        return null; // such as pixels of another origin, which scripts may not read
      } finally {
        frame?.close();
      }
    },
  };
})()
