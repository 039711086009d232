"""sbgp: the group of each sample, run by run (ISO/IEC 14496-12, 8.9.2).

Index 0: no group; above 0x10000: a description in this fragment's own sgpd.
"""

from fragdex.boxes.layout import fourcc, fullbox, rows, u32, where

SBGP = fullbox(
    "sbgp",
    "Sample to Group",
    "ISO/IEC 14496-12, 8.9.2",
    grouping_type=fourcc,
    grouping_type_parameter=where(u32, version=(1,)),
    entry_count=u32,
    entries=rows("entry_count", ("sample_count", ">u4"), ("group_description_index", ">u4")),
)
