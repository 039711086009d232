"""cslg: span of composition times against decode times (ISO/IEC 14496-12, 8.6.1.4)."""

from fragdex.boxes.layout import fullbox, i32, i64

CSLG = fullbox(
    "cslg",
    "Composition to Decode",
    "ISO/IEC 14496-12, 8.6.1.4",
    compositionToDTSShift={0: i32, 1: i64},
    leastDecodeToDisplayDelta={0: i32, 1: i64},
    greatestDecodeToDisplayDelta={0: i32, 1: i64},
    compositionStartTime={0: i32, 1: i64},
    compositionEndTime={0: i32, 1: i64},
)
