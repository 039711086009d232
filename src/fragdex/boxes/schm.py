"""schm: the scheme of protection (ISO/IEC 14496-12, 8.12.5)."""

from fragdex.boxes.layout import cstring, fourcc, fullbox, u32, where

SCHM = fullbox(
    "schm",
    "Scheme Type",
    "ISO/IEC 14496-12, 8.12.5",
    scheme_type=fourcc,
    scheme_version=u32,
    scheme_uri=where(cstring, flag=1),
)
