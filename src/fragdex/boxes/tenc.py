"""tenc: how samples are encrypted unless said otherwise (ISO/IEC 23001-7, 8.2)."""

from fragdex.boxes.layout import Fields, bits, fullbox, raw, sized, u8, where


def _constant(fields: Fields) -> bool:
    return bool(fields["default_isProtected"] == 1 and fields["default_Per_Sample_IV_Size"] == 0)


TENC = fullbox(
    "tenc",
    "Track Encryption",
    "ISO/IEC 23001-7, 8.2",
    reserved=u8,
    reserved_2=where(u8, version=(0,)),
    pattern=where(bits(1, default_crypt_byte_block=4, default_skip_byte_block=4), version=(1,)),
    default_isProtected=u8,
    default_Per_Sample_IV_Size=u8,
    default_KID=raw(16),
    default_constant_IV=where(sized(u8), when=_constant),
)
