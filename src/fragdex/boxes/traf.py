"""traf: what a movie fragment holds of one track (ISO/IEC 14496-12, 8.8.6)."""

from fragdex.boxes.layout import box

TRAF = box("traf", "Track Fragment", "ISO/IEC 14496-12, 8.8.6", children=True)
