"""dOps: channels and pre-skip of Opus (samples at 48 kHz) (Opus in ISOBMFF, 4.3.2)."""

from fragdex.boxes.layout import Fields, box, i16, raw, u8, u16, u32, where


def _mapped(fields: Fields) -> bool:
    return bool(fields["ChannelMappingFamily"] != 0)


DOPS = box(
    "dOps",
    "Opus Specific",
    "Opus in ISOBMFF, 4.3.2",
    Version=u8,
    OutputChannelCount=u8,
    PreSkip=u16,
    InputSampleRate=u32,
    OutputGain=i16,
    ChannelMappingFamily=u8,
    StreamCount=where(u8, when=_mapped),
    CoupledCount=where(u8, when=_mapped),
    ChannelMapping=where(raw(lambda fields: fields["OutputChannelCount"]), when=_mapped),
)
