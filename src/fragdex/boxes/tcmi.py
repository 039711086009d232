"""tcmi: font and colours of a shown time code (QuickTime File Format, Timecode Media)."""

from fragdex.boxes.layout import array, fullbox, pascal, u8, u16

TCMI = fullbox(
    "tcmi",
    "Time Code Media Info",
    "QuickTime File Format, Timecode Media",
    text_font=u16,
    text_face=u16,
    text_size=u16,
    reserved=u16,
    text_color=array(3, u16),
    background_color=array(3, u16),
    font_name=pascal(u8),
)
