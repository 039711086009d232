// A walk with the client that @hey-api/openapi-ts writes: `node walk.js URL KEY SOUND BROWSER`.
import { readFile } from "node:fs/promises";
import { createHash } from "node:crypto";
import { client } from "./client/client.gen";
import * as api from "./client";
import type { Problem, RenderRecord, TranscriptionRecord, UnprocessedFile } from "./client";

const [url, key, sound, browser] = process.argv.slice(2);
client.setConfig({ baseUrl: url, auth: key });

function need<T>(found: { data?: T; error?: unknown }): T {
  if (found.data === undefined) throw new Error(JSON.stringify(found.error));
  return found.data;
}

function check(right: boolean, what: string): void {
  if (!right) throw new Error(what);
}

async function until<T extends { status: string }>(
  ask: () => Promise<{ data?: T; error?: unknown }>,
): Promise<T> {
  for (;;) {
    const record = need(await ask());
    if (["complete", "failed"].includes(record.status)) return record;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function upload(): Promise<UnprocessedFile> {
  // another file than that of the walk in Python: a free box at its end
  const mark = Buffer.from("0000000c6672656574736372", "hex");
  const data = Buffer.concat([await readFile(sound), mark]);
  const md5 = createHash("md5").update(data).digest("hex");
  const body = { md5, filename: "speech.mp4", byte_size: data.length };
  const { id } = need(await api.createUnprocessedFile({ body }));
  const send = (start: number, stop: number) => api.uploadUnprocessedFile({
    path: { id },
    body: new Blob([data.subarray(start, stop)]),
    headers: { "Content-Range": `bytes ${start}-${stop - 1}/${data.length}` },
  });
  const first = await send(0, 5000);
  check(first.response?.status === 202 && !need(first).complete, "the first chunk");
  const missing = await api.getUnprocessedFileUpload({ path: { id } });
  const problem = missing.error as Problem;
  check(problem.status === 404 && problem.next_byte === 5000, "where to go on");
  const last = need(await send(problem.next_byte ?? 0, data.length));
  check(last.complete, "the last chunk");
  return last;
}

async function transcription(file: UnprocessedFile): Promise<void> {
  const path = { id: file.id };
  const begun = need(await api.processUnprocessedFile({ path }));
  const made = await until(() => api.getProcess({ path: { id: begun.id } }));
  check(made.status === "complete", JSON.stringify(made.problem));
  const id = made.isobmff_file_id as string;
  const index = need(await api.getIsobmffFileIndex({ path: { id } }));
  check(Object.keys(index).length > 0, "an index");
  const words = need(await api.transcribeIsobmffFile({ path: { id } }));
  const heard: TranscriptionRecord = await until(
    () => api.getTranscription({ path: { id: words.id } }),
  );
  check(heard.status === "complete" && (heard.words ?? 0) > 10, JSON.stringify(heard));
  const slice = need(await api.getTranscriptionFragment({ path: { id: words.id, n: "0" } }));
  check(slice.word_segments.every((word) => word.start <= word.end), "words in order");
  const captions = need(await api.downloadTranscriptionVtt({ path: { id: words.id } }));
  check((captions as string).startsWith("WEBVTT"), "captions");
}

async function render(): Promise<void> {
  const body = {
    html: "<h1>Hi", width: 64, height: 48, output: { container: "png" as const },
    metadata: { walk: "typescript" },
  };
  const { id } = need(await api.createRender({ body }));
  const events: string[] = [];
  const { stream } = await api.getRenderProgress({
    path: { id }, onSseEvent: (event) => { events.push(event.event ?? ""); },
  });
  for await (const _ of stream) if (events.at(-1) === "complete") break;
  check(events[0] === "size" && events.at(-1) === "complete", events.join(" "));
  const record: RenderRecord = need(await api.getRender({ path: { id } }));
  check(record.output.container === "png" && record.metadata.walk === "typescript", "the record");
  const picture = need(await api.downloadRenderPng({ path: { id } })) as Blob;
  check((await picture.slice(1, 4).text()) === "PNG" && picture.size === record.byte_size, "a PNG");
  const deleted = await api.deleteRender({ path: { id } });
  check(deleted.response?.status === 204, "deleted");
}

async function walk(): Promise<void> {
  const file = await upload();
  await transcription(file);
  if (browser === "browser") await render();
  console.log(`walked ${file.id}`);
}

walk().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
