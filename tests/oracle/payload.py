"""Whether the bytes at the positions of an index are what a sample has to be.

The media itself is the one witness that depends on no rule for positions.
"""

from __future__ import annotations

from collections.abc import Iterator

import fragdex


def length_sizes(init: bytes) -> dict[int, int]:
    """track_ID → bytes of a NAL unit's length, of clear tracks (ISO/IEC 14496-15, 5.3.3, 8.3.3)."""
    sizes = {}
    for moov in fragdex.boxes.parse(init):
        for trak in moov.find_all("trak") if moov.type == "moov" else ():
            header, stsd = trak.find("tkhd"), trak.find("mdia/minf/stbl/stsd")
            for entry in stsd or ():
                configuration = entry.find("avcC") or entry.find("hvcC")
                if header and configuration and entry.type != "encv":
                    sizes[header["track_ID"]] = configuration["lengthSizeMinusOne"] + 1
    return sizes


def nal_units_add_up(sample: bytes, length_size: int) -> bool:
    """Whether a sample is NAL units behind their lengths, without a byte too many or too few."""
    at = 0
    while at < len(sample):
        length = int.from_bytes(sample[at : at + length_size], "big")
        if not length:
            return False
        at += length_size + length
    return at == len(sample) > 0


def payloads(data: bytes, samples: fragdex.tables.SampleTable) -> Iterator[bytes]:
    """The bytes of each sample."""
    for offset, size in zip(samples.offset.tolist(), samples.size.tolist(), strict=True):
        yield data[offset : offset + size]


def misplaced(data: bytes, index: fragdex.Index) -> list[str]:
    """The AVC and HEVC tracks of which a sample is not a sequence of NAL units."""
    wrong = []
    for period in index.periods:
        init = b"".join(data[part.start : part.stop] for part in period.init)
        for track_id, length_size in length_sizes(init).items():
            samples = period.track(track_id).samples
            if not all(nal_units_add_up(one, length_size) for one in payloads(data, samples)):
                wrong.append(f"track {track_id} of period {period.number}")
    return wrong


def inside_mdat(data: bytes, samples: fragdex.tables.SampleTable) -> bool:
    """Whether every sample lies within the payload of one mdat."""
    spans = [
        (box.offset + box.header_size, box.offset + box.size)
        for box in fragdex.boxes.parse(data)
        if box.type == "mdat"
    ]
    return all(
        any(start <= offset and offset + size <= stop for start, stop in spans)
        for offset, size in zip(samples.offset.tolist(), samples.size.tolist(), strict=True)
    )
