"""A box of ours in the words of pymp4, to be held against what pymp4 says of the same bytes.

Every field that pymp4 names has to be found here: a box type or field without a rule is a
KeyError, not a pass. Boxes that pymp4 does not declare are compared byte for byte, by building ours
from its fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fragdex
from fragdex.boxes import build

Fields = dict[str, Any]
Box = fragdex.boxes.Box

PIFF_TENC = "8974dbce7be74c5184f97148f9882554"
TFHD_FLAGS = {
    "base_data_offset_present": 0x000001,
    "sample_description_index_present": 0x000002,
    "default_sample_duration_present": 0x000008,
    "default_sample_size_present": 0x000010,
    "default_sample_flags_present": 0x000020,
    "duration_is_empty": 0x010000,
    "default_base_is_moof": 0x020000,
}
TRUN_FLAGS = {
    "data_offset_present": 0x000001,
    "first_sample_flags_present": 0x000004,
    "sample_duration_present": 0x000100,
    "sample_size_present": 0x000200,
    "sample_flags_present": 0x000400,
    "sample_composition_time_offsets_present": 0x000800,
}
# Bits of sample flags (ISO/IEC 14496-12, 8.8.3.1), and pymp4's names of the values.
SAMPLE_FLAGS: dict[str, tuple[int, int, tuple[str, ...]]] = {
    "is_leading": (26, 3, ("UNKNOWN", "LEADINGDEP", "NOTLEADING", "LEADINGNODEP")),
    "sample_depends_on": (24, 3, ("UNKNOWN", "DEPENDS", "NOTDEPENDS", "RESERVED")),
    "sample_is_depended_on": (22, 3, ("UNKNOWN", "NOTDISPOSABLE", "DISPOSABLE", "RESERVED")),
    "sample_has_redundancy": (20, 3, ("UNKNOWN", "REDUNDANT", "NOTREDUNDANT", "RESERVED")),
    "sample_padding_value": (17, 7, ()),
    "sample_is_non_sync_sample": (16, 1, ()),
    "sample_degradation_priority": (0, 0xFFFF, ()),
}


def in_pymp4_words(box: Box) -> Fields:
    """The fields that pymp4 must give for this box."""
    if box.type not in WORDS:
        return {"data": body(box)}
    return WORDS[box.type](box)


def body(box: Box) -> str:
    return bytes(build(box))[box.header_size :].hex()


def plain(box: Box, *names: str, **renamed: str) -> Fields:
    """Version, flags and the named fields; `renamed` maps pymp4's word to the standard's."""
    words = {**{name: name for name in ("version", "flags", *names)}, **renamed}
    return {word: listed(box.fields[name]) for word, name in words.items()}


def listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def optional(box: Box, *names: str) -> Fields:
    """Fields that flags may leave out; pymp4 gives null for them."""
    return {name: box.fields.get(name) for name in names}


def flag_words(box: Box, bits: dict[str, int]) -> Fields:
    known = sum(bits.values())
    assert not box["flags"] & ~known, "flags that pymp4 has no name for"
    return {name: bool(box["flags"] & bit) for name, bit in bits.items()}


def sample_flags(value: int | None) -> Fields | None:
    if value is None:
        return None
    fields: Fields = {}
    for name, (shift, mask, words) in SAMPLE_FLAGS.items():
        number = int(value) >> shift & mask
        fields[name] = words[number] if words else number
    fields["sample_is_non_sync_sample"] = bool(fields["sample_is_non_sync_sample"])
    return fields


def columns(rows: Any, **words: str) -> dict[str, list[Any]]:
    """A table as columns; an empty one has none, as in pymp4's list of rows."""
    return {word: rows[name].tolist() for word, name in words.items()} if len(rows) else {}


def entries(*names: str) -> Callable[[Box], Fields]:
    def say(box: Box) -> Fields:
        return plain(box) | {"entries": columns(box["entries"], **{n: n for n in names})}

    return say


def tfhd(box: Box) -> Fields:
    names = (
        "base_data_offset",
        "sample_description_index",
        "default_sample_duration",
        "default_sample_size",
    )
    return {
        **plain(box, "track_ID"),
        **optional(box, *names),
        "flags": flag_words(box, TFHD_FLAGS),
        "default_sample_flags": sample_flags(box.fields.get("default_sample_flags")),
    }


def trun(box: Box) -> Fields:
    rows = box["samples"]
    present = rows.dtype.names or ()

    def column(name: str) -> list[Any]:
        return rows[name].tolist() if name in present else [None] * box["sample_count"]

    info = {
        "sample_duration": column("sample_duration"),
        "sample_size": column("sample_size"),
        "sample_flags": [sample_flags(value) for value in column("sample_flags")],
        "sample_composition_time_offsets": column("sample_composition_time_offset"),
    }
    return {
        **plain(box, "sample_count"),
        **optional(box, "data_offset", "first_sample_flags"),
        "flags": flag_words(box, TRUN_FLAGS),
        "sample_info": info if box["sample_count"] else {},
    }


def trex(box: Box) -> Fields:
    fields = plain(
        box,
        "track_ID",
        "default_sample_description_index",
        "default_sample_duration",
        "default_sample_size",
    )
    return fields | {"default_sample_flags": sample_flags(box["default_sample_flags"])}


def sidx(box: Box) -> Fields:
    rows = box["references"]
    fields = columns(
        rows,
        reference_type="reference_type",
        referenced_size="referenced_size",
        segment_duration="subsegment_duration",
        starts_with_SAP="starts_with_SAP",
        SAP_type="SAP_type",
        SAP_delta_time="SAP_delta_time",
    )
    if fields:
        fields["reference_type"] = [("MEDIA", "INDEX")[kind] for kind in fields["reference_type"]]
        fields["starts_with_SAP"] = [bool(starts) for starts in fields["starts_with_SAP"]]
    return {
        **plain(
            box,
            "reference_ID",
            "timescale",
            "earliest_presentation_time",
            "first_offset",
            "reference_count",
        ),
        "references": fields,
    }


def mdhd(box: Box) -> Fields:
    packed = box["language"]
    code = (chr((packed >> shift & 31) + 0x60) for shift in (10, 5, 0))
    fields = plain(box, "creation_time", "modification_time", "timescale", "duration")
    return fields | {"language": "".join(code)}


def hdlr(box: Box) -> Fields:
    handler = box["handler_type"].encode("latin-1").hex()
    return plain(box, "name") | {"handler_type": handler}


def vmhd(box: Box) -> Fields:
    opcolor = dict(zip(("red", "green", "blue"), box["opcolor"], strict=True))
    return plain(box, graphics_mode="graphicsmode") | {"opcolor": opcolor}


def dref(box: Box) -> Fields:
    entries = [
        {
            "type": entry.type.encode("latin-1").hex(),
            "version": entry["version"],
            "flags": {"self_contained": bool(entry["flags"] & 1)},
            **optional(entry, *(("name", "location") if entry.type == "urn " else ("location",))),
        }
        for entry in box
    ]
    return plain(box) | {"data_entries": entries}


def stsz(box: Box) -> Fields:
    each = None if box["sample_size"] else box["entries"]["entry_size"].tolist()
    return plain(box, "sample_size", "sample_count") | {"entry_sizes": each}


def stz2(box: Box) -> Fields:
    sizes = np.asarray(box["entry_size"]).tolist()
    table = {"entry_size": sizes} if sizes else {}
    return plain(box, "field_size", "sample_count") | {"entries": table}


def auxiliary(box: Box) -> Fields:
    kind = box.fields.get("aux_info_type")
    return {
        "version": box["version"],
        "flags": {"has_aux_info_type": bool(box["flags"] & 1)},
        "aux_info_type": kind and int.from_bytes(kind.encode("latin-1"), "big"),
        **optional(box, "aux_info_type_parameter"),
    }


def saiz(box: Box) -> Fields:
    each = box["entries"]["sample_info_size"].tolist() if "entries" in box.fields else None
    sizes = {"default_sample_info_size": box["default_sample_info_size"]}
    return auxiliary(box) | sizes | {"sample_count": box["sample_count"], "sample_info_sizes": each}


def saio(box: Box) -> Fields:
    return auxiliary(box) | {"offsets": box["entries"]["offset"].tolist()}


def uuid(box: Box) -> Fields:
    if box.fields.get("user_type") == PIFF_TENC:
        # It reads the 24 bits of AlgorithmID as the bytes of a tenc, of which the last is not 0.
        data = plain(box, is_encrypted="default_AlgorithmID", iv_size="default_IV_size")
        data |= {"type": None, "default_byte_blocks": 0, "constant_iv": None}
        return {
            "extended_type": PIFF_TENC,
            "data": data | {"key_ID": bytes(box["default_KID"]).hex()},
        }
    return {"extended_type": box["user_type"], "data": body(box)}


def pssh(box: Box) -> Fields:
    keys = [bytes(key).hex() for key in box["KIDs"]] if box["version"] else None
    return {
        **plain(box),
        "system_ID": bytes(box["SystemID"]).hex(),
        "key_IDs": keys,
        "init_data": bytes(box["Data"]).hex(),
    }


def letters(text: str) -> str:
    return text.encode("latin-1").rstrip(b" ").hex()


def btrt(box: Box) -> Fields:
    return {
        "bufferSizeDB": box["bufferSizeDB"],
        "maxBitrate": box["maxBitrate"],
        "avgBirate": box["avgBitrate"],
    }


def schm(box: Box) -> Fields:
    return {
        **plain(box, "scheme_version"),
        "scheme_type": letters(box["scheme_type"]),
        "schema_uri": box.fields.get("scheme_uri"),
    }


def tenc(box: Box) -> Fields:
    constant = box.fields.get("default_constant_IV")
    pattern = {
        "crypt": box.fields.get("default_crypt_byte_block"),
        "skip": box.fields.get("default_skip_byte_block"),
    }
    return {
        **plain(
            box,
            is_encrypted="default_isProtected",
            iv_size="default_Per_Sample_IV_Size",
        ),
        "default_byte_blocks": pattern if box["version"] else box["reserved_2"],
        "key_ID": bytes(box["default_KID"]).hex(),
        "constant_iv": None if constant is None else list(constant),
    }


WORDS: dict[str, Callable[[Box], Fields]] = {
    "mvhd": lambda box: plain(
        box,
        *("creation_time", "modification_time", "timescale", "duration", "rate", "volume"),
        *("matrix", "pre_defined", "next_track_ID"),
    ),
    "tkhd": lambda box: plain(
        box,
        *("creation_time", "modification_time", "track_ID", "duration", "layer"),
        *("alternate_group", "volume", "matrix", "width", "height"),
    ),
    "mdhd": mdhd,
    "hdlr": hdlr,
    "vmhd": vmhd,
    "smhd": lambda box: plain(box, "balance", "reserved"),
    "dref": dref,
    "stsz": stsz,
    "stz2": stz2,
    "stts": entries("sample_count", "sample_delta"),
    "stss": entries("sample_number"),
    "stsc": entries("first_chunk", "samples_per_chunk", "sample_description_index"),
    "stco": entries("chunk_offset"),
    "co64": entries("chunk_offset"),
    "mfhd": lambda box: plain(box, "sequence_number"),
    "tfdt": lambda box: plain(box, "baseMediaDecodeTime"),
    "tfhd": tfhd,
    "trun": trun,
    "mehd": lambda box: plain(box, "fragment_duration"),
    "trex": trex,
    "sidx": sidx,
    "saiz": saiz,
    "saio": saio,
    "uuid": uuid,
    "pssh": pssh,
    # inside sample entries (oracle/pymp4_entries.py)
    "btrt": btrt,
    "frma": lambda box: {"original_format": letters(box["data_format"])},
    "schm": schm,
    "tenc": tenc,
    "vttC": lambda box: {"config": box["config"]},
}
