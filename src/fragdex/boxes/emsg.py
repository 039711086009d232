"""emsg: an event on the presentation's timeline (ISO/IEC 23009-1, 5.10.3.3)."""

from fragdex.boxes.layout import cstring, fullbox, rest, u32, u64, where

EMSG = fullbox(
    "emsg",
    "Event Message",
    "ISO/IEC 23009-1, 5.10.3.3",
    scheme_id_uri=where(cstring, version=(0,)),
    value=where(cstring, version=(0,)),
    timescale=u32,
    presentation_time_delta=where(u32, version=(0,)),
    presentation_time=where(u64, version=(1,)),
    event_duration=u32,
    id=u32,
    scheme_id_uri_1=where(cstring, version=(1,), name="scheme_id_uri"),
    value_1=where(cstring, version=(1,), name="value"),
    message_data=rest,
)
