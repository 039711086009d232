"""colr: what the colours mean (ISO/IEC 14496-12, 12.1.5)."""

from fragdex.boxes.layout import Fields, bits, box, fourcc, rest, u16, where


def _coded(fields: Fields) -> bool:
    return fields["colour_type"] in ("nclx", "nclc")


COLR = box(
    "colr",
    "Colour Information",
    "ISO/IEC 14496-12, 12.1.5",
    colour_type=where(fourcc, default="nclx"),
    colour_primaries=where(u16, when=_coded),
    transfer_characteristics=where(u16, when=_coded),
    matrix_coefficients=where(u16, when=_coded),
    range=where(
        bits(1, full_range_flag=1, reserved=7),
        when=lambda fields: fields["colour_type"] == "nclx",
    ),
    ICC_profile=where(rest, when=lambda fields: not _coded(fields)),
)
