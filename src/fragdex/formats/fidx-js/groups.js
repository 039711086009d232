/** Access-point groups (`rap ` and `roll`; ISO/IEC 14496-12, 8.9, 10.1 and 10.4). */
const TYPES = ["rap ", "roll"];
const LOCAL = 0x10000;

/** The boxes of a stbl or traf that speak of access points: sgpd, and sbgp. */
export function groupBoxes(around) {
  const named = (type) => around.all(type).filter((one) => one.room >= 8 && TYPES.includes(one.text(4)));
  named("csgp")[0]?.refuse("sample groups by patterns");
  return { descriptions: described(named("sgpd")), runs: named("sbgp") };
}

/** Grouping type → value of each description; UNKNOWN (null) where it is too short to have one. */
function described(boxes) {
  const found = new Map();
  for (const sgpd of boxes) {
    const type = sgpd.text(4);
    if (found.has(type)) sgpd.refuse("the box comes again for one grouping type");
    found.set(type, values(sgpd, type));
  }
  return found;
}

function values(sgpd, type) {
  const version = sgpd.version(3);
  const least = type === "roll" ? 2 : 1;
  const valueOf = (at, length) => {
    if (length < least) return null;
    if (type === "roll") return (sgpd.u16(at) << 16) >> 16;
    return sgpd.u8(at) & 0x80 ? sgpd.u8(at) & 0x7f : 0;
  };
  sgpd.need(12);
  if (!version) {
    const count = Math.floor((sgpd.room - 12) / least);
    return Array.from({ length: count }, (_, n) => valueOf(12 + n * least, least));
  }
  let at = version > 1 ? 16 : 12;
  const [each, count] = [sgpd.u32(8), sgpd.need(at + 4).u32(at)];
  at += 4;
  if (count > (sgpd.room - at) / (each || 4)) sgpd.refuse(`${count} descriptions do not fit into the box`);
  return Array.from({ length: count }, () => {
    let length = each;
    if (!each) {
      length = sgpd.need(at + 4).u32(at);
      at += 4;
    }
    sgpd.need(at + length);
    at += length;
    return valueOf(at - length, length);
  });
}

/** Runs of samples in a group: `[type, first, samples, value]`, of an sbgp whose first sample is given. */
function* runsOf(sbgp, first, known, local) {
  const version = sbgp.version(1);
  const type = sbgp.text(4);
  const at = version ? 12 : 8;
  const count = sbgp.need(at + 4).u32(at);
  if (count > (sbgp.room - at - 4) / 8) sbgp.refuse(`${count} runs do not fit into the box`);
  for (let row = 0; row < count; row++) {
    const [samples, index] = [sbgp.u32(at + 4 + 8 * row), sbgp.u32(at + 8 + 8 * row)];
    const described = index > LOCAL ? local : known;
    const value = described?.get(type)?.[(index > LOCAL ? index - LOCAL : index) - 1] ?? null;
    if (value !== null && samples) yield [type, first, samples, value];
    first += samples;
  }
}

/** The groups of the samples that a moov names. */
export function movieGroups(stbl) {
  const { descriptions, runs } = groupBoxes(stbl);
  return runs.flatMap((sbgp) => [...runsOf(sbgp, 0, descriptions, undefined)]);
}

/** The groups of the trafs of one track, those that continue each other joined. */
export function fragmentGroups(trafs, stbl) {
  const known = stbl ? groupBoxes(stbl).descriptions : undefined;
  const found = trafs.flatMap(({ groups, firstSample }) =>
    groups.runs.flatMap((sbgp) => [...runsOf(sbgp, firstSample, known, groups.descriptions)]),
  );
  const kind = ([type]) => TYPES.indexOf(type);
  found.sort((a, b) => kind(a) - kind(b) || a[3] - b[3] || a[1] - b[1]);
  const joined = [];
  for (const one of found) {
    const last = joined.at(-1);
    if (last && last[0] === one[0] && last[3] === one[3] && last.stop === one[1]) last[2] += one[2];
    else joined.push(one);
    joined.at(-1).stop = one[1] + one[2];
  }
  return joined.sort((a, b) => a[1] - b[1] || kind(a) - kind(b));
}
