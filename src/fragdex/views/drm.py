"""Which keys decrypt a track, as playlists and manifests say it, never the keys themselves."""

from __future__ import annotations

import uuid
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from fragdex.boxes import Box, build, find_all

__all__ = ["Keys", "System", "keys_of"]

_PLAYREADY: Final = "9a04f079-9840-4286-ab92-e65be0885f95"
_METHODS: Final = {"cenc": "SAMPLE-AES-CTR", "cbcs": "SAMPLE-AES"}
"""Schemes that HLS has a method for (RFC 8216, 4.3.2.4; 8216bis, 4.4.4.4)."""


@dataclass(frozen=True, slots=True)
class System:
    """What one protection system needs (ISO/IEC 23001-7, 8.1).

    Attributes:
        id: SystemID as a UUID.
        data: of the pssh.
        pssh: the whole box.
    """

    id: str
    data: bytes
    pssh: bytes

    @property
    def base64(self) -> str:
        """The box in base64."""
        return b64encode(self.pssh).decode()


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a track.

    Attributes:
        scheme: cenc, cens, cbc1 or cbcs.
        default_kid: 32 hex digits of the key's identifier.
        systems: whose pssh boxes the moov has.
    """

    scheme: str
    default_kid: str
    systems: tuple[System, ...]

    @property
    def uuid(self) -> str:
        """The identifier of the key as DASH writes it."""
        return str(uuid.UUID(self.default_kid))

    def lines(self) -> Iterator[str]:
        """The attributes of EXT-X-KEY, for each protection system.

        A system without a pssh has no URI here, and a scheme that HLS does not know no method: then
        there is no line.
        """
        method = _METHODS.get(self.scheme)
        for one in self.systems if method is not None else ():
            form, uri = f"urn:uuid:{one.id}", f"data:text/plain;base64,{one.base64}"
            if one.id == _PLAYREADY:
                form = "com.microsoft.playready"
                uri = f"data:text/plain;charset=UTF-16;base64,{b64encode(one.data).decode()}"
            yield (
                f'METHOD={method},URI="{uri}",KEYID=0x{self.default_kid.upper()},'
                f'KEYFORMAT="{form}",KEYFORMATVERSIONS="1"'
            )


def keys_of(moov: Sequence[Box], trak: Box) -> Keys | None:
    """The keys of a track; None: it is clear.

    Args:
        moov: the boxes of the initialization segment.
        trak: of the track.
    """
    for entry in trak.find_all("mdia/minf/stbl/stsd/*"):
        scheme, tenc = entry.find("sinf/schm"), entry.find("sinf/schi/tenc")
        if scheme is None or tenc is None or tenc.opaque:
            continue
        systems = tuple(
            System(str(uuid.UUID(bytes=bytes(box["SystemID"]))), bytes(box["Data"]), build(box))
            for box in find_all(moov, "moov/pssh")
            if not box.opaque
        )
        return Keys(str(scheme["scheme_type"]), bytes(tenc["default_KID"]).hex(), systems)
    return None
