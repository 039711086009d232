"""mhaC: profile and configuration of MPEG-H 3D audio (ISO/IEC 23008-3, 20.5)."""

from fragdex.boxes.layout import box, sized, u8, u16, where

MHAC = box(
    "mhaC",
    "MHA Configuration",
    "ISO/IEC 23008-3, 20.5",
    configurationVersion=where(u8, default=1),
    mpegh3daProfileLevelIndication=u8,
    referenceChannelLayout=u8,
    mpegh3daConfig=sized(u16),
)
