"""Encryption: how samples are protected, and what a player needs to read them."""

from __future__ import annotations

from fragdex.boxes.kinds import bits, cstring, fourcc, items, raw, rest, sized, u8, u24, u32
from fragdex.boxes.layout import Fields, box, fullbox, uuid_box, where

SINF = box("sinf", "Protection Scheme Information", "ISO/IEC 14496-12, 8.12.1", children=True)
"""How samples are protected, and what they were before."""

FRMA = box("frma", "Original Format", "ISO/IEC 14496-12, 8.12.2", data_format=fourcc)
"""The sample entry type before protection."""

SCHM = fullbox(
    "schm",
    "Scheme Type",
    "ISO/IEC 14496-12, 8.12.5",
    scheme_type=fourcc,
    scheme_version=u32,
    scheme_uri=where(cstring, flag=1),
)
"""The scheme of protection."""

SCHI = box("schi", "Scheme Information", "ISO/IEC 14496-12, 8.12.6", children=True)
"""What the scheme needs."""


def _is_constant(fields: Fields) -> bool:
    return bool(fields["default_isProtected"] == 1 and fields["default_Per_Sample_IV_Size"] == 0)


TENC = fullbox(
    "tenc",
    "Track Encryption",
    "ISO/IEC 23001-7, 8.2",
    reserved=u8,
    reserved_2=where(u8, version=(0,)),
    pattern=where(bits(1, default_crypt_byte_block=4, default_skip_byte_block=4), version=(1,)),
    default_isProtected=u8,
    default_Per_Sample_IV_Size=u8,
    default_KID=raw(16),
    default_constant_IV=where(sized(u8), when=_is_constant),
)
"""How samples are encrypted unless said otherwise."""

PSSH = fullbox(
    "pssh",
    "Protection System Specific Header",
    "ISO/IEC 23001-7, 8.1",
    SystemID=raw(16),
    KIDs=where(items(u32, raw(16), 16), version=(1,)),
    Data=sized(u32),
)
"""What one protection system needs."""

SENC = fullbox(
    "senc",
    "Sample Encryption",
    "ISO/IEC 23001-7, 7.2",
    structure=True,
    versions=(0,),
    sample_count=u32,
    samples=rest,
)
"""Initialization vectors and protected ranges of samples.

How long a vector is stands in tenc or in a sample group, so the samples are kept as bytes;
flag 2: each is followed by its subsamples.
"""

PIFF_TENC = uuid_box(
    "8974dbce-7be7-4c51-84f9-7148f9882554",
    "PIFF Track Encryption",
    "PIFF 1.1, 5.3.3",
    full=True,
    default_AlgorithmID=u24,
    default_IV_size=u8,
    default_KID=raw(16),
)
"""How samples are encrypted unless said otherwise."""

PIFF_PSSH = uuid_box(
    "d08a4f18-10f3-4a82-b6c8-32d8aba183d3",
    "PIFF Protection System Specific Header",
    "PIFF 1.1, 5.3.1",
    full=True,
    SystemID=raw(16),
    Data=sized(u32),
)
"""What one protection system needs."""

PIFF_SENC = uuid_box(
    "a2394f52-5a9b-4f14-a244-6c427c648df4",
    "PIFF Sample Encryption",
    "PIFF 1.1, 5.3.2",
    structure=True,
    full=True,
    AlgorithmID=where(u24, flag=1),
    IV_size=where(u8, flag=1),
    KID=where(raw(16), flag=1),
    sample_count=u32,
    samples=rest,
)
"""Initialization vectors of samples, as bytes like those of senc."""
