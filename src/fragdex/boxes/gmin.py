"""gmin: how base media are drawn and heard (QuickTime File Format, Base Media)."""

from fragdex.boxes.layout import array, fullbox, i16, u16

GMIN = fullbox(
    "gmin",
    "Base Media Info",
    "QuickTime File Format, Base Media",
    graphicsmode=u16,
    opcolor=array(3, u16),
    balance=i16,
    reserved=u16,
)
