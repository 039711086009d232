// In a world next to the page's, which the page can neither see nor change: whether the page may be
// one canvas, and the pixels of that canvas, as the worker of canvas_worker.js writes them.
(() => {
  "use strict";
  const ELEMENTS = 100;
  const CHARACTERS = 2 ** 18;
  const FORMATS = ["BGRA", "BGRX", "RGBA", "RGBX"];
  const SRGB = { primaries: "bt709", transfer: "iec61966-2-1", matrix: "rgb", fullRange: true };
  let worker = null;
  const free = [];
  return {
    // Whether it is worth a look: of large pages a look takes longer than their pictures.
    isLikely: () => document.getElementsByTagName("canvas").length > 0 &&
      document.getElementsByTagName("*").length <= ELEMENTS &&
      document.documentElement.outerHTML.length <= CHARACTERS,
    // Of an empty script: what the worker does is told it in a way of our own.
    url: () => URL.createObjectURL(new Blob([], { type: "text/javascript" })),
    start: (url) => {
      worker = new Worker(url);
      worker.onmessage = ({ data }) => { free.push(data); };
    },
    // Hand the pixels of a canvas to the worker. How they lie, and null where they are not what a
    // picture of the canvas shows.
    async read(canvas, number, width, height) {
      const isPlain = document.designMode === "off" && getSelection()?.type !== "Range" &&
        visualViewport.scale === 1 && !document.activeViewTransition;
      if (!isPlain) return null;
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
        return format;
      } catch {
        return null; // such as pixels of another origin, which scripts may not read
      } finally {
        frame?.close();
      }
    },
  };
})()
