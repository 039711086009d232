// node render.mjs bundle FOLDER
// node render.mjs film FOLDER PAGE OUT BROWSER FRAMES CONCURRENCY: prints the seconds it took.
import { bundle } from "@remotion/bundler";
import { renderMedia, selectComposition } from "@remotion/renderer";

const [work, folder, id, outputLocation, browserExecutable, frames, concurrency] = process.argv.slice(2);
if (work === "bundle") {
  await bundle({ entryPoint: new URL("root.jsx", import.meta.url).pathname, outDir: folder });
} else {
  const began = performance.now();
  const options = {
    serveUrl: folder,
    browserExecutable,
    chromeMode: "headless-shell",
    logLevel: "error",
  };
  const composition = await selectComposition({ ...options, id });
  await renderMedia({
    ...options,
    composition: { ...composition, durationInFrames: Number(frames) },
    codec: "h264",
    muted: true,
    outputLocation,
    concurrency: Number(concurrency),
  });
  console.log((performance.now() - began) / 1000);
}
