"""sgpd: what the groups are (ISO/IEC 14496-12, 8.9.3).

In version 0 no length is told: entries stand one behind the other in data.
"""

from fragdex.boxes.layout import fourcc, fullbox, items, raw, record, rest, u32, where

_ENTRY = record(
    description_length=where(u32, when=lambda fields: fields["default_length"] == 0),
    data=raw(lambda fields: fields["default_length"] or fields["description_length"]),
)

SGPD = fullbox(
    "sgpd",
    "Sample Group Description",
    "ISO/IEC 14496-12, 8.9.3",
    versions=(0, 1, 2, 3),
    grouping_type=fourcc,
    default_length=where(u32, version=(1, 2, 3)),
    default_group_description_index=where(u32, version=(2, 3)),
    entry_count=where(u32, version=(0,)),
    data=where(rest, version=(0,)),
    entries=where(items(u32, _ENTRY, 0), version=(1, 2, 3)),
)
