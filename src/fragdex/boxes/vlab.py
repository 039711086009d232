"""vlab: where a WebVTT text comes from (ISO/IEC 14496-30, 7.5)."""

from fragdex.boxes.layout import box, text_rest

VLAB = box(
    "vlab",
    "WebVTT Source Label",
    "ISO/IEC 14496-30, 7.5",
    source_label=text_rest,
)
