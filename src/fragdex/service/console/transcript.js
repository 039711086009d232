// The transcript next to a video: spoken words are marked, a click seeks, and it can be corrected.

import { post, send } from "./api.js";
import { attach, captionsOf, edited } from "./captions.js";
import { attempt, clean, complain, h, tell } from "./dom.js";
import { follow } from "./events.js";
import { clock, count } from "./format.js";
import { upload } from "./upload.js";
import { arrived, stemOf } from "./uploads.js";

const ENGINES = ["moonshine", "pocketsphinx", "faster-whisper", "sherpa-onnx"];

// `select`: the player's choice of captions. `sounds`: whether there is anything to hear.
export function transcript(video, file, { select, seek, sounds }, signal) {
  let sources = [];
  let segments = [];
  let webvtt = ""; // whose cues they are
  let words = [];
  let speakers = [];
  let here = null;
  const list = h("ol#said", { tabIndex: 0, "aria-label": "Phrases" });
  const search = h("input", { type: "search", placeholder: "Search the transcript", "aria-label": "Search the transcript" });
  const found = h("p.soft", { role: "status" });
  const edit = h("button.quiet.writes", { type: "button", onclick: () => correct() }, "Edit");
  const stop = h("button.quiet", { type: "button", hidden: true, onclick: () => end() }, "Cancel");
  const language = h("input#language", { type: "text", placeholder: "en", size: 6, maxLength: 35, "aria-label": "Spoken language" });
  const engine = h("select#engine", { "aria-label": "Engine" }, h("option", { value: "" }, "Default engine"),
    ENGINES.map((one) => h("option", { value: one }, one)));
  const apart = h("input#apart", { type: "checkbox" });
  const terms = h("textarea#vocabulary", { rows: 2, placeholder: "One a line", "aria-label": "Names and terms" });
  const hear = h("button.writes", { type: "button", onclick: () => attempt(transcribe) }, "Transcribe");
  const how = h("details.how.writes", {}, h("summary", {}, "Transcribe"), h("div.fields", {},
    h("label", {}, h("span", {}, "Language (if empty: the engine’s)"), language),
    h("label", {}, h("span", {}, "Engine"), engine), h("label", {}, h("span", {}, "Tell who speaks"), apart),
    h("label", {}, h("span", {}, "Names and terms"), terms), hear));
  const bar = h("progress", { max: 1, value: 0, "aria-label": "Transcribing", hidden: true });
  const none = h("p.soft", {}, sounds ? "Nothing yet. Transcribe the sound, or drop a .vtt, .srt or .json file here."
    : "Nothing yet. Drop a .vtt, .srt or .json file here.");
  const doubts = h("p.soft", { hidden: true }, "Underlined words were probably not said: the sound is like another language.");
  const nobodys = h("p.soft", { hidden: true }, "Phrases with ? have no speaker: no voice was found there.");
  const cast = h("div.cast", { hidden: true });
  const element = h("section#transcript.card", { "aria-label": "Transcript" },
    h("div.heading", {}, h("h2", {}, "Transcript"), h("span.gap"), stop, edit), sounds && how, search, found, bar, none, doubts, nobodys, cast, list);

  async function refresh(wanted) {
    sources = await captionsOf(file, signal);
    const now = wanted ?? select.value;
    select.replaceChildren(h("option", { value: "" }, "No captions"),
      ...sources.map(({ id, name }) => h("option", { value: id }, name)));
    select.value = sources.some(({ id }) => id === now) ? now : "";
    await use();
  }

  // The captions that are chosen, or else the newest that there are, read but not shown.
  async function use() {
    const source = sources.find(({ id }) => id === select.value) ?? sources[0];
    ({ cues: segments, text: webvtt } = await attach(video, source, Boolean(select.value), signal));
    ({ words, speakers } = source?.words ? await source.words({ signal }) : { words: [], speakers: [] });
    introduce(source?.id);
    for (const one of [search, edit]) one.hidden = !segments.length;
    none.hidden = segments.length > 0;
    doubts.hidden = !words.some((one) => one.doubted);
    nobodys.hidden = !words.some((one) => one.unattributed);
    again();
    draw();
  }

  // Each speaker has a colour, and a name that is given once for all that they say.
  function introduce(id) {
    cast.hidden = !speakers.length;
    cast.replaceChildren(...speakers.map((one, n) => h(`input.voice.voice${n % 6}`, {
      type: "text", value: one.name ?? "", placeholder: one.id, maxLength: 60, "aria-label": `Name of ${one.id}`,
      onchange: ({ target }) => attempt(async () => {
        one.name = target.value.trim() || null;
        const names = Object.fromEntries(speakers.filter(({ name }) => name).map(({ id: who, name }) => [who, name]));
        await send("PUT", `transcriptions/${id}/speakers`, { names }, { signal });
        await use();
      }),
    })));
  }

  // An earlier transcription stays next to a new one.
  function again() {
    const heard = sources.some((one) => one.words);
    how.open = !heard && !segments.length;
    how.firstChild.textContent = hear.textContent = heard ? "Transcribe again" : "Transcribe";
  }

  function draw() {
    here = null;
    let next = 0;
    let before = null;
    let spoken = null;
    list.replaceChildren(...segments.map((segment, n) => {
      const own = [];
      while (next < words.length && (words[next].start < segment.end || n === segments.length - 1)) own.push(words[next++]);
      const text = own.length ? own.flatMap(({ text, start, end, doubted }) =>
        [h(`span${doubted ? ".doubted" : ""}`, { "data-start": start, "data-end": end }, text.trim()), " "]) : [segment.text];
      const who = own[0]?.unattributed ? -2 : speakers.findIndex(({ id }) => id === own[0]?.speaker);
      const voice = who >= 0 ? `.voice${who % 6}` : "";
      const called = who >= 0 ? speakers[who].name ?? speakers[who].id : who === -2 && "?";
      const name = called && who !== before ? h(`span.who${voice}`, {}, `${called}: `) : null;
      const lang = own[0]?.language;
      const language = lang && lang !== spoken ? h("span.soft.language", {}, `${lang} `) : null;
      [before, spoken] = [who, lang];
      return h(`li${voice}`, { "data-start": segment.start, "data-end": segment.end, lang },
        h("button.moment", { type: "button", "aria-label": `Go to ${clock(segment.start, 0)}` }, clock(segment.start, 0)),
        h("span.text", { "data-start": segment.start }, language, name, text));
    }));
    find();
    mark();
  }

  function find() {
    const wanted = search.value.trim().toLowerCase();
    let hits = 0;
    for (const item of list.children) {
      item.hidden = Boolean(wanted) && !item.querySelector(".text")?.textContent.toLowerCase().includes(wanted);
      hits += !item.hidden;
    }
    found.textContent = wanted ? `${count(hits)} of ${count(segments.length)}` : "";
  }

  function mark() {
    const now = video.currentTime;
    const item = [...list.children].findLast((one) => Number(one.dataset.start) <= now + 0.01);
    const said = item && now < Number(item.dataset.end) ? item : null;
    if (said !== here) {
      here?.removeAttribute("aria-current");
      said?.setAttribute("aria-current", "true");
      here = said;
      if (said && !video.paused && !list.matches(":hover")) {
        list.scrollTo({ top: said.offsetTop - list.offsetTop - list.clientHeight / 3 });
      }
    }
    for (const word of list.querySelectorAll(".spoken")) word.classList.remove("spoken");
    const word = said && [...said.querySelectorAll("span[data-end]")].find((one) =>
      Number(one.dataset.start) <= now + 0.01 && now < Number(one.dataset.end));
    word?.classList.add("spoken");
  }

  // Each segment as text to change; saving makes new captions, and keeps the old ones.
  function correct() {
    if (list.classList.contains("editing")) return save();
    list.classList.add("editing");
    edit.textContent = "Save";
    stop.hidden = false;
    search.hidden = how.hidden = true;
    select.disabled = true;
    list.replaceChildren(...segments.map((segment) => h("li", {}, h("span.moment", {}, clock(segment.start, 0)),
      h("textarea", { rows: 2, value: segment.text.trim(), "aria-label": `Text at ${clock(segment.start, 0)}` }))));
    list.querySelector("textarea")?.focus();
  }

  function end() {
    list.classList.remove("editing");
    edit.textContent = "Edit";
    stop.hidden = true;
    search.hidden = select.disabled = how.hidden = false;
    draw();
    edit.focus();
  }

  async function save() {
    const texts = [...list.querySelectorAll("textarea")].map((one) => one.value);
    const text = edited(webvtt, segments.map((segment, n) => (texts[n] === segment.text.trim() ? null : texts[n])));
    const blob = new File([text], `${stemOf(file.filename)}.edited.vtt`, { type: "text/vtt", lastModified: Date.now() });
    edit.disabled = true;
    try {
      const record = await upload(blob, { filename: blob.name, type: "caption" }, () => {}, signal);
      end();
      clean();
      await refresh(record.id);
      tell("Saved as captions.");
    } catch (error) {
      complain(error);
    }
    edit.disabled = false;
  }

  async function transcribe() {
    hear.disabled = true;
    const vocabulary = terms.value.split("\n").map((line) => line.trim()).filter(Boolean);
    const wanted = { language: language.value.trim(), engine: engine.value, speakers: apart.checked, vocabulary };
    const given = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value && value.length !== 0));
    try {
      // always a new one: that is what "again" means
      const { id } = await post("transcriptions", { file_id: file.id, ...given }, { signal });
      let size = 1;
      bar.hidden = false;
      await follow(`transcriptions/${id}/progress`, (name, data) => {
        if (name === "size") size = data.size || 1;
        if (name === "completion") bar.value += data.count / size;
      }, signal);
      await refresh(id);
    } finally {
      bar.hidden = true;
      bar.value = 0;
      hear.disabled = false;
    }
  }

  list.addEventListener("click", ({ target }) => {
    const place = target.closest("[data-start]");
    if (place && !list.classList.contains("editing")) seek(Number(place.dataset.start));
  });
  list.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && list.classList.contains("editing")) end();
  });
  search.addEventListener("input", find);
  select.addEventListener("change", () => use().catch(complain));
  for (const name of ["timeupdate", "seeked"]) video.addEventListener(name, mark, { signal });
  arrived.addEventListener("change", ({ detail }) => {
    if (detail === "caption" && !list.classList.contains("editing")) refresh().catch(complain);
  }, { signal });

  // c: captions on and off
  const turn = () => {
    if (select.disabled) return;
    select.value = select.value ? "" : sources[0]?.id ?? "";
    use().catch(complain);
  };
  return { element, turn, refresh };
}
