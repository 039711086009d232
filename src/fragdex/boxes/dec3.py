"""dec3: rate and channels of Enhanced AC-3 (ETSI TS 102 366, F.6).

chan_loc has nine bits where a stream has dependent substreams: chan_loc_8 is the highest; without
them it is reserved.
"""

from fragdex.boxes.layout import array, bits, box, record, rest, u8, where

_SUBSTREAM = record(
    stream=bits(
        3,
        fscod=2,
        bsid=5,
        reserved=1,
        asvc=1,
        bsmod=3,
        acmod=3,
        lfeon=1,
        reserved_2=3,
        num_dep_sub=4,
        chan_loc_8=1,
    ),
    chan_loc=where(u8, when=lambda substream: substream["num_dep_sub"] > 0),
)

DEC3 = box(
    "dec3",
    "EC-3 Specific",
    "ETSI TS 102 366, F.6",
    rate=bits(2, data_rate=13, num_ind_sub=3),
    substreams=array(lambda fields: fields["num_ind_sub"] + 1, _SUBSTREAM),
    extension=rest,
)
