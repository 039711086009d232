"""Sample entries in the words of pymp4, as far as it reads them."""

from __future__ import annotations

from typing import Any

import fragdex
from oracle.pymp4_words import Fields, body, in_pymp4_words, letters, plain

Box = fragdex.boxes.Box


def comparable(box: Box, theirs: Fields) -> tuple[Fields, Fields]:
    """What we and what pymp4 say of a box, in its words: the two must be equal.

    Of an stsd that is the first entry, and in it the boxes that pymp4 gets to. It does not skip to
    the end of a box that it has read in part, such as an avcC with the fields of the High profiles
    or an audio entry with boxes in it, and loses what comes behind.
    """
    if box.type != "stsd":
        return in_pymp4_words(box), theirs
    ours = plain(box) | {"entries": [sample_entry(entry) for entry in box.children[:1]]}
    theirs = theirs | {"entries": placeless(theirs["entries"][:1])}
    for entry, other in zip(ours["entries"], theirs["entries"], strict=True):
        if "sample_info" in other:
            entry["sample_info"] = entry["sample_info"][: len(other["sample_info"])]
    return ours, theirs


def sample_entry(entry: Box) -> Fields:
    # Six reserved bytes and the index stand first in every entry (8.5.2.2), also in opaque ones.
    fields: Fields = {
        "format": letters(entry.type),
        "data_reference_index": int(body(entry)[12:16], 16),
    }
    if entry.type in ("mp4a", "enca", "ec-3"):
        return fields | audio(entry)
    if entry.type in ("avc1", "encv"):
        return fields | video(entry)
    if entry.type == "wvtt":
        return fields | {"children": [nested(child) for child in entry]}
    return fields | {"data": body(entry)[16:]}


def nested(box: Box) -> Fields:
    """A box inside a sample entry, as pymp4 gives it there, less the places."""
    if box.type in ("sinf", "schi"):
        return {"type": letters(box.type), "children": [nested(child) for child in box]}
    return {"type": letters(box.type), **in_pymp4_words(box)}


def placeless(value: Any) -> Any:
    """What pymp4 says, without the places that it counts from the stsd."""
    if isinstance(value, list):
        return [placeless(item) for item in value]
    if isinstance(value, dict):
        return {k: placeless(item) for k, item in value.items() if k not in ("offset", "end")}
    return value


def audio(entry: Box) -> Fields:
    return {
        "version": entry["entry_version"],
        "revision": 0,
        "vendor": 0,
        "channels": entry["channelcount"],
        "bits_per_sample": entry["samplesize"],
        "compression_id": entry["pre_defined"],
        "packet_size": 0,
        "sampling_rate": entry["samplerate"] >> 16,
    }


def video(entry: Box) -> Fields:
    quality = entry["pre_defined_2"]
    return {
        "version": entry["pre_defined"],
        "revision": entry["reserved_2"],
        "vendor": quality[0].to_bytes(4, "big").rstrip(b" ").hex(),
        "temporal_quality": quality[1],
        "spatial_quality": quality[2],
        "width": entry["width"],
        "height": entry["height"],
        "horizontal_resolution": entry["horizresolution"] >> 16,
        "vertical_resolution": entry["vertresolution"] >> 16,
        "data_size": entry["reserved_3"],
        "frame_count": entry["frame_count"],
        "compressor_name": bytes(entry["compressorname"]).rstrip(b" ").hex(),
        "depth": entry["depth"],
        "color_table_id": entry["pre_defined_3"],
        "avc_data": configuration(entry.children[0]),
        "sample_info": [nested(child) for child in entry.children[1:]],
    }


def configuration(box: Box) -> Fields:
    if box.type != "avcC":
        return {"type": letters(box.type), "data": body(box)}
    return {
        "type": letters(box.type),
        "version": box["configurationVersion"],
        "profile": box["AVCProfileIndication"],
        "compatibility": box["profile_compatibility"],
        "level": box["AVCLevelIndication"],
        "nal_unit_length_field": box["lengthSizeMinusOne"],
        "sps": [bytes(unit).hex() for unit in box["sequenceParameterSets"]],
        "pps": [bytes(unit).hex() for unit in box["pictureParameterSets"]],
    }
