"""piff_senc: initialization vectors of samples, as bytes like those of senc (PIFF 1.1, 5.3.2)."""

from fragdex.boxes.layout import raw, rest, u8, u24, u32, uuid_box, where

PIFF_SENC = uuid_box(
    "a2394f52-5a9b-4f14-a244-6c427c648df4",
    "PIFF Sample Encryption",
    "PIFF 1.1, 5.3.2",
    full=True,
    AlgorithmID=where(u24, flag=1),
    IV_size=where(u8, flag=1),
    KID=where(raw(16), flag=1),
    sample_count=u32,
    samples=rest,
)
