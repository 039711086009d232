"""C2PA manifests that prove the bytes of a file and are stored next to it; the file stays as it is.

A manifest store is a tree of JUMBF boxes (ISO/IEC 19566-5) that hold CBOR (RFC 8949): assertions,
a claim with the digest of each assertion, and a COSE signature (RFC 9052) of the claim. The hash
assertion is `c2pa.hash.bmff.v3` (C2PA 2.1, 18.7): one SHA-256 of everything outside of the media
data, and the digests of blocks of the mdat, so that a reader can check the part that it reads.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from fragdex.byterange import ByteRange
from fragdex.errors import BuildError
from fragdex.muxing.embed import walked
from fragdex.sources import Source, SourceLike, open_source

__all__ = ["SIGNATURES", "hash_assertion", "manifest"]

SIGNATURES: Final = {"ES256": -7, "ES384": -35, "ES512": -36, "PS256": -37, "EdDSA": -8}
"""Algorithms of COSE (RFC 9053) that C2PA allows, by name."""
_LABEL: Final = "c2pa.hash.bmff.v3"
_C2PA_UUID: Final = bytes.fromhex("d8fec3d61b0e483c92975828877ec481")
"""The type of the uuid box that holds a manifest inside of a file (C2PA 2.1, A.5)."""
_BLOCK: Final = 1 << 20
"""Bytes of mdat of each digest."""
_HEADER: Final = 16
"""Bytes in front of an mdat's blocks, whatever its header: it may have 8 or 16."""
_EXCLUDED: Final = frozenset(("ftyp", "mfra"))


def hash_assertion(what: SourceLike, *, blocks: bool | None = None) -> dict[str, Any]:
    """The content of the assertion `c2pa.hash.bmff.v3` of a file, as CBOR values.

    Args:
        what: the file, in any form that `fragdex.open_source` takes; all of it is read.
        blocks: a digest of each MiB of the media data; False: one digest of everything; None:
            blocks if there is one mdat. Of several, as fragments have them, the published library
            refuses blocks ("Incorrect number of fragments hashes", c2pa-rs 0.91.3).

    Raises:
        BuildError: its size is unknown, or its boxes do not fill it.
        SourceError: it cannot be read.
    """
    source = open_source(what)
    try:
        return _hashed(source, blocks=blocks)
    finally:
        if source is not what:
            source.close()


def _hashed(source: Source, *, blocks: bool | None) -> dict[str, Any]:
    if source.size is None:
        raise BuildError("the size of the file is unknown")
    whole = sha256()
    merkle: list[dict[str, Any]] = []
    boxes = list(walked(source.read, 0, source.size))
    if blocks is None:
        blocks = [kind for kind, _ in boxes].count("mdat") == 1
    for kind, place in boxes:
        if kind in _EXCLUDED or (kind == "uuid" and _is_c2pa(source, place)):
            continue
        # Each box is hashed with its place, so that none can be moved.
        whole.update(place.start.to_bytes(8, "big"))
        kept = place
        if blocks and kind == "mdat":
            kept = ByteRange(place.start, min(place.start + _HEADER, place.stop))
            leaves = _leaves(source, ByteRange(kept.stop, place.stop))
            merkle.append(
                {
                    "uniqueId": 0,
                    "localId": len(merkle),
                    "count": len(leaves),
                    "alg": "sha256",
                    "hashes": leaves,
                    "fixedBlockSize": _BLOCK,
                }
            )
        for piece in source.pieces(kept):
            whole.update(piece)
    exclusions: list[dict[str, Any]] = [
        {"xpath": "/uuid", "data": [{"offset": 8, "value": _C2PA_UUID}]},
        {"xpath": "/ftyp"},
        {"xpath": "/mfra"},
    ]
    if merkle:
        exclusions.append({"xpath": "/mdat", "subset": [{"offset": _HEADER, "length": 0}]})
    assertion: dict[str, Any] = {"exclusions": exclusions, "alg": "sha256", "hash": whole.digest()}
    assertion["name"] = "fragdex"
    return assertion | ({"merkle": merkle} if merkle else {})


def _is_c2pa(source: Source, place: ByteRange) -> bool:
    return place.size >= 24 and source.read(ByteRange.of(place.start + 8, 16)) == _C2PA_UUID


def _leaves(source: Source, media: ByteRange) -> list[bytes]:
    """The digest of each block; the last one may be shorter."""
    leaves = []
    for start in range(media.start, media.stop, _BLOCK):
        running = sha256()
        for piece in source.pieces(ByteRange(start, min(start + _BLOCK, media.stop))):
            running.update(piece)
        leaves.append(running.digest())
    return leaves


def manifest(
    assertion: Mapping[str, Any],
    sign: Callable[[bytes], bytes],
    certificates: Sequence[bytes],
    *,
    algorithm: str = "ES256",
    source_type: str,
    generator: str = "fragdex",
) -> bytes:
    """A manifest store with one signed manifest, as a file next to the media (`.c2pa`).

    Args:
        assertion: of the media, from `hash_assertion`.
        sign: gives the signature of bytes in the form of COSE: for ES256, r and s with 32 bytes
            each, one after the other. The key stays with the caller.
        certificates: of the key, and those that issued it up to the trust anchor, in DER.
        algorithm: of the signature, a key of `SIGNATURES`.
        source_type: what the media is, a digital source type of IPTC's code list, such as
            `http://cv.iptc.org/newscodes/digitalsourcetype/digitalCapture`.
        generator: name of the program that makes the claim.

    Raises:
        ValueError: there is no such algorithm, or no certificate.
        And what `sign` raises.
    """
    if algorithm not in SIGNATURES:
        raise ValueError(f"no algorithm {algorithm!r}: expected one of {', '.join(SIGNATURES)}")
    if not certificates:
        raise ValueError("a signature needs its certificate")
    label = f"urn:c2pa:{uuid.uuid4()}"
    action = {"action": "c2pa.created", "digitalSourceType": source_type}
    assertions = {
        _LABEL: _described("cbor", _LABEL, _cbor_box(assertion)),
        "c2pa.actions.v2": _described("cbor", "c2pa.actions.v2", _cbor_box({"actions": [action]})),
    }
    claim = cbor(
        {
            "instanceID": f"xmp:iid:{uuid.uuid4()}",
            "claim_generator_info": {"name": generator},
            "signature": f"self#jumbf=/c2pa/{label}/c2pa.signature",
            "created_assertions": [
                # The digest is of the box without its own header.
                {"url": f"self#jumbf=c2pa.assertions/{name}", "hash": sha256(box[8:]).digest()}
                for name, box in assertions.items()
            ],
            "alg": "sha256",
        }
    )
    chain = list(certificates)
    protected = cbor({1: SIGNATURES[algorithm], 33: chain[0] if len(chain) == 1 else chain})
    signature = sign(cbor(["Signature1", protected, b"", claim]))
    signed = bytes([0xD2]) + cbor([protected, {}, None, signature])  # tag 18: COSE_Sign1
    manifest = _described(
        "c2ma",
        label,
        _described("c2as", "c2pa.assertions", *assertions.values()),
        _described("c2cl", "c2pa.claim.v2", _box(b"cbor", claim)),
        _described("c2cs", "c2pa.signature", _box(b"cbor", signed)),
    )
    return _described("c2pa", "c2pa", manifest)


_REQUESTABLE: Final = 3
"""Toggles of a description box: it has a label, and can be referred to."""


def _described(kind: str, label: str, *content: bytes) -> bytes:
    """A JUMBF superbox: its type (ISO/IEC 19566-5, A.3), its label, its boxes."""
    type_id = kind.encode() + bytes.fromhex("00110010800000aa00389b71")
    description = type_id + bytes([_REQUESTABLE]) + label.encode() + b"\0"
    return _box(b"jumb", _box(b"jumd", description) + b"".join(content))


def _cbor_box(value: Any) -> bytes:
    return _box(b"cbor", cbor(value))


def _box(kind: bytes, content: bytes) -> bytes:
    return (8 + len(content)).to_bytes(4, "big") + kind + content


def cbor(value: Any) -> bytes:
    """A value as CBOR with definite lengths (RFC 8949, 3)."""
    return b"".join(_items(value))


def _items(value: Any) -> Iterator[bytes]:
    if value is None:
        yield b"\xf6"
    elif isinstance(value, int):
        yield _head(0, value) if value >= 0 else _head(1, -1 - value)
    elif isinstance(value, bytes):
        yield _head(2, len(value)) + value
    elif isinstance(value, str):
        text = value.encode()
        yield _head(3, len(text)) + text
    elif isinstance(value, Mapping):
        yield _head(5, len(value))
        for key, inner in value.items():
            yield from _items(key)
            yield from _items(inner)
    else:
        yield _head(4, len(value))
        for inner in value:
            yield from _items(inner)


def _head(major: int, number: int) -> bytes:
    """Major type and argument, in the fewest bytes."""
    for extra, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 24:
            return bytes([major << 5 | number])
        if number < 1 << 8 * size:
            return bytes([major << 5 | extra]) + number.to_bytes(size, "big")
    raise BuildError("a number has more than 64 bits")
