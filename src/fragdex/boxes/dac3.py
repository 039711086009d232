"""dac3: rate and channels of AC-3 (ETSI TS 102 366, F.4)."""

from fragdex.boxes.layout import bits, box

DAC3 = box(
    "dac3",
    "AC-3 Specific",
    "ETSI TS 102 366, F.4",
    stream=bits(3, fscod=2, bsid=5, bsmod=3, acmod=3, lfeon=1, bit_rate_code=5, reserved=5),
)
