// Uploads a file by a published client: node upload.mjs CLIENT ENDPOINT KEY FILE CHUNK.
// Prints a line of JSON for each progress, and one with the URL at the end.
import { readFile } from "node:fs/promises";
import process from "node:process";

import Uppy from "@uppy/core";
import UppyTus from "@uppy/tus";
import * as tus from "tus-js-client";

const [client, endpoint, key, path, chunk] = process.argv.slice(2);
const data = await readFile(path);
const say = (told) => process.stdout.write(`${JSON.stringify(told)}\n`);
const options = {
  endpoint,
  chunkSize: Number(chunk),
  retryDelays: Array(240).fill(500), // a busy machine takes its time to start the service again
  headers: { Authorization: `Bearer ${key}` },
};
const fail = (error) => {
  say({ error: String(error?.message ?? error) });
  process.exit(1);
};

if (client === "uppy") {
  const uppy = new Uppy({ allowMultipleUploadBatches: false });
  uppy.use(UppyTus, { ...options, limit: 1 });
  uppy.on("upload-progress", (_, { bytesUploaded }) => say({ sent: bytesUploaded }));
  uppy.on("upload-error", (_, error) => fail(error));
  uppy.on("upload-success", (_, { uploadURL }) => say({ url: uploadURL }));
  uppy.addFile({ name: "film.bin", type: "video/mp4", data: Object.assign(data, { size: data.length }) });
  await uppy.upload();
} else {
  const upload = new tus.Upload(data, {
    ...options,
    parallelUploads: client === "parallel" ? 3 : 1,
    uploadDataDuringCreation: client === "creation",
    metadata: { filename: "film.bin", filetype: "video/mp4" },
    onProgress: (sent) => say({ sent }),
    onError: fail,
    onSuccess: () => say({ url: upload.url }),
  });
  upload.start();
}
