"""tlou: measured loudness (ISO/IEC 14496-12, 12.2.7)."""

from fragdex.boxes.layout import array, bits, fullbox, items, record, u8, where

_MEASUREMENT = record(
    method_definition=u8,
    method_value=u8,
    source=bits(1, measurement_system=4, reliability=4),
)
_LOUDNESS = record(
    eq=where(bits(1, reserved=2, EQ_set_ID=6), when=lambda base: base["version"] >= 1),
    base=bits(
        6,
        reserved_2=3,
        downmix_ID=7,
        DRC_set_ID=6,
        bs_sample_peak_level=12,
        bs_true_peak_level=12,
        measurement_system_for_TP=4,
        reliability_for_TP=4,
    ),
    measurements=items(u8, _MEASUREMENT, 3),
)

LOUDNESS = fullbox(
    "tlou",
    "Loudness Base",
    "ISO/IEC 14496-12, 12.2.7",
    count=where(bits(1, loudness_info_type=2, loudness_base_count=6), version=(1,)),
    loudness=array(lambda fields: fields.get("loudness_base_count", 1), _LOUDNESS),
)
