"""assp: how early playing can start (ISO/IEC 14496-12, 8.8.16)."""

from fragdex.boxes.layout import fullbox, i32, items, record, u32, where

ASSP = fullbox(
    "assp",
    "Alternative Startup Sequence Properties",
    "ISO/IEC 14496-12, 8.8.16",
    min_initial_alt_startup_offset=where(i32, version=(0,)),
    entries=where(
        items(u32, record(grouping_type_parameter=u32, min_initial_alt_startup_offset=i32), 8),
        version=(1,),
    ),
)
