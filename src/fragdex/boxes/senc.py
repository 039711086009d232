"""senc: initialization vectors and protected ranges of samples (ISO/IEC 23001-7, 7.2).

How long a vector is stands in tenc or in a sample group, so the samples are kept as bytes;
flag 2: each is followed by its subsamples.
"""

from fragdex.boxes.layout import fullbox, rest, u32

SENC = fullbox(
    "senc",
    "Sample Encryption",
    "ISO/IEC 23001-7, 7.2",
    versions=(0,),
    sample_count=u32,
    samples=rest,
)
