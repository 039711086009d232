/** What a moov says of its tracks, in the words of docs/index-format.md. */
import { Box, isMisplaced } from "./boxes.js";

const KINDS = {
  vide: "video", auxv: "video", pict: "video", soun: "audio", text: "text", sbtl: "text", subt: "text",
  subp: "text", clcp: "text", meta: "metadata", tmcd: "timecode", hint: "hint",
};
const ENCRYPTED = ["encv", "enca", "enct", "encs", "encm", "encu", "drms", "drmi"];
const MOST_TRACKS = 4096;
const MOST_EDITS = 4096;

/** The movie of a moov: `timescale`, `duration`, `fragmented`, and `tracks` with `info`, `stbl`. */
export function readMoov(bytes, origin) {
  const moov = Box.whole(bytes, origin);
  moov.one("cmov")?.refuse("the moov is compressed");
  const mvhd = moov.one("mvhd") ?? moov.refuse("there is no mvhd");
  const mvex = moov.one("mvex");
  const defaults = new Map();
  for (const trex of mvex?.all("trex") ?? []) {
    trex.version(0);
    const id = trex.need(24).u32(4);
    if (defaults.has(id)) trex.refuse(`a second trex of track ${id}`);
    defaults.set(id, { entry: trex.u32(8), duration: trex.u32(12), size: trex.u32(16), flags: trex.u32(20) });
  }
  const mehd = mvex?.one("mehd");
  const traks = moov.all("trak");
  if (traks.length > MOST_TRACKS) moov.refuse(`the moov has ${traks.length} tracks`);
  const tracks = traks.map((trak) => readTrack(trak, defaults));
  const ids = new Set(tracks.map(({ info }) => info.id));
  if (ids.size < tracks.length) moov.refuse("two tracks have one track_ID");
  const long = mvhd.version(1);
  return {
    timescale: mvhd.need(long ? 112 : 100).u32(long ? 20 : 12),
    duration: mehd ? duration(mehd, 4, mehd.version(1)) : duration(mvhd, long ? 24 : 16, long),
    fragmented: Boolean(mvex),
    tracks,
    defaults,
  };
}

/** A duration; all ones, and what no column has room for, stand for an unknown one. */
function duration(box, at, long) {
  if (!long) {
    const value = box.need(at + 4).u32(at);
    return value === 0xffffffff ? 0 : value;
  }
  if (box.need(at + 8).u8(at) >= 0x80) return 0;
  const value = box.u64(at);
  return value === 0xffffffff ? 0 : value;
}

function readTrack(trak, defaults) {
  const tkhd = trak.one("tkhd") ?? trak.refuse("there is no tkhd");
  const wide = tkhd.version(1);
  tkhd.need(wide ? 96 : 84);
  const id = tkhd.u32(wide ? 20 : 12) || tkhd.refuse("the track_ID is 0");
  const mdia = trak.one("mdia");
  const mdhd = mdia?.one("mdhd");
  const long = mdhd?.version(1);
  const hdlr = mdia?.one("hdlr");
  hdlr?.version(0);
  const handler = hdlr?.need(24).text(8) ?? "";
  const stbl = mdia?.find("minf/stbl");
  const stsd = stbl?.one("stsd");
  const entries = entriesOf(stsd, KINDS[handler]);
  const info = {
    id,
    handler,
    kind: KINDS[handler] ?? "other",
    timescale: mdhd?.need(long ? 36 : 24).u32(long ? 20 : 12) ?? 0,
    media_duration: mdhd ? duration(mdhd, long ? 24 : 16, long) : 0,
    enabled: Boolean(tkhd.flags & 1),
    alternate_group: tkhd.u16(wide ? 46 : 34),
    ...turned(Array.from({ length: 5 }, (_, n) => tkhd.i32((wide ? 52 : 40) + 4 * n))),
    edits: readEdits(trak.one("edts")?.one("elst")),
    ...described(entries[0], handler),
  };
  const extended = defaults.get(id);
  if (extended) {
    const { entry: _, ...values } = extended;
    info.defaults = values;
  }
  const isEncrypted = entries.map((one) => ENCRYPTED.includes(one.type));
  const isMixed = isEncrypted.includes(true) && isEncrypted.includes(false);
  return {
    info, stbl, stsd, entries: entries.length, isMixed,
    refuseElsewhere: () => refuseElsewhere(mdia?.find("minf/dinf/dref"), entries),
  };
}

/** The sample entries, each with the fields that its kind of track has. */
function entriesOf(stsd, kind) {
  if (!stsd) return [];
  stsd.version(1);
  const entries = stsd.need(8).children(8);
  if (entries.length !== stsd.u32(4)) stsd.refuse(`there are ${entries.length} entries of ${stsd.u32(4)}`);
  for (const one of entries) {
    if (isMisplaced(one.type, "")) one.refuse("the box is not a sample entry");
    one.need({ video: 78, audio: 28 }[kind] ?? 8);
  }
  return entries;
}

/** Refuses a track whose samples are in another file (8.7.2). */
function refuseElsewhere(dref, entries) {
  const references = dref?.need(8).children(8) ?? [];
  for (const entry of entries) {
    const one = references[entry.need(8).u16(6) - 1];
    if (!one || !["url ", "urn ", "alis"].includes(one.type) || one.flags & 1) continue;
    const names = one.bytes.subarray(one.start + 4, one.stop);
    if (names.some(Boolean)) one.refuse("the samples are in another file");
  }
}

/** Degrees clockwise by which a matrix a b u c d turns, and whether it mirrors afterwards (8.3.2). */
function turned([a, b, , c, d]) {
  const mirrored = a * d < b * c;
  if (mirrored) [a, c] = [-a, -c];
  const one = Math.max(...[a, b, c, d].map(Math.abs)) || 1;
  const places = [a, b, c, d].map((value) => value / one);
  if (a === d && a > 0 && b === 0 && c === 0) return { rotation: 0, mirrored };
  const turns = ["1,0,0,1", "0,1,-1,0", "-1,0,0,-1", "0,-1,1,0"];
  const turn = turns.indexOf(places.map((value) => value + 0).join());
  return { rotation: turn < 0 ? null : 90 * turn, mirrored: mirrored && turn >= 0 };
}

function readEdits(elst) {
  if (!elst) return [];
  const long = elst.version(1);
  const count = elst.need(8).u32(4);
  const each = long ? 20 : 12;
  if (count > (elst.room - 8) / each) elst.refuse(`${count} edits do not fit into the box`);
  return Array.from({ length: Math.min(count, MOST_EDITS) }, (_, row) => {
    const at = 8 + row * each;
    const rate = at + each - 4;
    const isHuge = long && elst.u8(at) >= 0x80;
    return {
      duration: isHuge ? 0 : long ? elst.u64(at) : elst.u32(at),
      media_time: long ? elst.i64(at + 8) : elst.i32(at + 4),
      rate: (elst.u16(rate) << 16 >> 16) + elst.u16(rate + 2) / 65536,
    };
  });
}

/** What a sample entry says that a decoder needs: format, codec (RFC 6381), size of pictures. */
function described(entry, handler) {
  if (!entry) return { format: "", codec: null };
  const kind = KINDS[handler];
  const format = formatOf(entry, kind);
  const found = { format, codec: codecOf(entry, kind, format) };
  if (kind === "video" && entry.room >= 28) {
    [found.width, found.height] = [entry.u16(24), entry.u16(26)];
  }
  return found;
}

/** The boxes of a sample entry of pictures or sound. */
function inside(entry, kind) {
  const ofSound = [28, 44, 64][entry.u16(8)] ?? 28; // QuickTime's have more fields
  const skipped = { video: 78, audio: ofSound }[kind];
  return skipped ? entry.need(skipped).children(skipped) : [];
}

function formatOf(entry, kind) {
  if (![...ENCRYPTED, "resv"].includes(entry.type)) return entry.type;
  const around = inside(entry, kind).find((one) => one.type === "sinf" || one.type === "rinf");
  const frma = around?.one("frma") ?? entry.refuse("there is no frma");
  return frma.need(4).text(0);
}

const hex = (value, width = 2) => value.toString(16).toUpperCase().padStart(width, "0");
const two = (value) => String(value).padStart(2, "0");

/** The codec string of the usual formats; null where nothing here makes one. */
function codecOf(entry, kind, format) {
  const boxes = inside(entry, kind);
  const config = (type, least) => boxes.find((one) => one.type === type && one.room >= least);
  const one = CODECS[format];
  if (one) return one(config, format, boxes) || null;
  return /^[A-Za-z0-9_+-]{4}$/.test(format) && !UNDECIDED.includes(format) ? format : null;
}

// Their strings say more than the format, and are not made here.
const UNDECIDED = [
  "vvc1", "vvi1", "dvh1", "dvhe", "dva1", "dvav", "dav1", "ac-4", "mha1", "mha2", "mhm1", "mhm2", "stpp", "mp4s",
];

function avc(config, format) {
  const record = config("avcC", 4);
  return record?.u8(0) === 1 && `${format}.${hex(record.u8(1))}${hex(record.u8(2))}${hex(record.u8(3))}`;
}

function hevc(config, format) {
  const record = config("hvcC", 13);
  if (!record) return undefined;
  let compatible = 0;
  for (let bit = 0; bit < 32; bit++) compatible += ((record.u32(2) >>> bit) & 1) * 2 ** (31 - bit);
  const constraints = Array.from({ length: 6 }, (_, n) => record.u8(6 + n));
  while (constraints.at(-1) === 0) constraints.pop();
  const space = ["", "A", "B", "C"][record.u8(1) >> 6];
  const tier = record.u8(1) & 0x20 ? "H" : "L";
  const rest = constraints.map((byte) => `.${byte.toString(16).toUpperCase()}`).join("");
  return `${format}.${space}${record.u8(1) & 31}.${hex(compatible, 1)}.${tier}${record.u8(12)}${rest}`;
}

function av1(config, format, boxes) {
  const record = config("av1C", 4);
  if (record?.u8(0) !== 0x81) return undefined;
  const [profile, level, bits] = [record.u8(1) >> 5, record.u8(1) & 31, record.u8(2)];
  const depth = bits & 0x40 ? (profile === 2 && bits & 0x20 ? 12 : 10) : 8;
  // Other than 4:2:0 in the usual colours has a longer string.
  if ((bits & 0x1f) !== 0x0c || boxes.some((one) => one.type === "colr")) return undefined;
  return `${format}.${profile}.${two(level)}${bits & 0x80 ? "H" : "M"}.${two(depth)}`;
}

function vp(config, format) {
  const record = config("vpcC", 10);
  if (record?.u8(0) !== 1) return undefined;
  const [bits, primaries, transfer, matrix] = [6, 7, 8, 9].map((at) => record.u8(at));
  const text = `${format}.${[record.u8(4), record.u8(5), bits >> 4].map(two).join(".")}`;
  const chroma = (bits >> 1) & 7;
  const isWritten = primaries > 0 && primaries < 100 && transfer > 0 && transfer < 100 && matrix < 100;
  if (chroma > 3 || !isWritten || (!matrix && chroma !== 3)) return text;
  return `${text}.${[chroma, primaries, transfer, matrix, bits & 1].map(two).join(".")}`;
}

/** Of an ES_Descriptor the object type and the DecoderSpecificInfo (ISO/IEC 14496-1, 7.2.6). */
function esds(config, format, boxes) {
  let box = config("esds", 5);
  box ??= boxes.find((one) => one.type === "wave")?.all("esds").find((one) => one.room >= 5);
  if (!box) return undefined;
  const descriptor = (bytes) => {
    let [size, at] = [0, 1];
    for (; at < 5; at++) {
      size = (size << 7) | (bytes[at] & 0x7f);
      if (!(bytes[at] & 0x80)) break;
    }
    return { tag: bytes[0], body: bytes.subarray(at + 1, at + 1 + size), rest: bytes.subarray(at + 1 + size) };
  };
  const { tag, body: es } = descriptor(box.bytes.subarray(box.start + 4, box.stop));
  if (tag !== 3 || es.length < 3) return undefined;
  let at = 3 + (es[2] & 0x80 ? 2 : 0);
  if (es[2] & 0x40) at += 1 + (es[at] ?? 0);
  if (es[2] & 0x20) at += 2;
  const decoder = descriptor(es.subarray(at));
  if (decoder.tag !== 4 || decoder.body.length < 13) return undefined;
  const type = decoder.body[0];
  let specific = new Uint8Array(0);
  for (let inner = decoder.body.subarray(13); inner.length; ) {
    const next = descriptor(inner);
    if (next.tag === 5) specific = next.body;
    if (next.tag === 5) break;
    inner = next.rest;
  }
  const text = `${format}.${hex(type)}`;
  if (format === "mp4a" && type === 0x40) {
    const object = aacObject(specific);
    return object && `${text}.${object}`;
  }
  if (format === "mp4v" && type === 0x20 && [0, 0, 1, 0xb0].every((byte, n) => specific[n] === byte)) {
    return specific.length > 4 ? `${text}.${specific[4]}` : undefined;
  }
  return text;
}

/** The audio object type of an AudioSpecificConfig; undefined where more would have to be read. */
function aacObject(bytes) {
  const kind = bytes[0] >> 3;
  if (bytes.length < 2 || kind === 31) return undefined;
  if (kind > 4 || bytes.length < 4) return kind;
  const [rate, channels] = [((bytes[0] & 7) << 1) | (bytes[1] >> 7), (bytes[1] >> 3) & 15];
  if (bytes.length !== 5 || rate === 15 || !channels || bytes[1] & 3) return undefined;
  // Spectral bands may be said after the plain configuration (ISO/IEC 14496-3, 1.6.6.1).
  const isSaid = ((bytes[2] << 3) | (bytes[3] >> 5)) === 0x2b7 && (bytes[3] & 31) === 5;
  return isSaid && bytes[4] & 0x80 ? 5 : kind;
}

const CODECS = {
  avc1: avc, avc2: avc, avc3: avc, avc4: avc, hvc1: hevc, hev1: hevc, hvc2: hevc, hev2: hevc, av01: av1,
  vp08: vp, vp09: vp, mp4a: esds, mp4v: esds, ".mp3": () => "mp3",
};
