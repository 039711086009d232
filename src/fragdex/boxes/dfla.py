"""dfLa: the metadata blocks of a FLAC stream (FLAC in ISOBMFF, 3.3.2)."""

from fragdex.boxes.layout import bits, fullbox, greedy, record, sized, u24

DFLA = fullbox(
    "dfLa",
    "FLAC Specific",
    "FLAC in ISOBMFF, 3.3.2",
    metadata_blocks=greedy(
        record(kind=bits(1, LastMetadataBlockFlag=1, BlockType=7), BlockData=sized(u24))
    ),
)
