"""mere: how two meta boxes relate (ISO/IEC 14496-12, 8.11.8)."""

from fragdex.boxes.layout import fourcc, fullbox, u8

MERE = fullbox(
    "mere",
    "Metabox Relation",
    "ISO/IEC 14496-12, 8.11.8",
    first_metabox_handler_type=fourcc,
    second_metabox_handler_type=fourcc,
    metabox_relation=u8,
)
