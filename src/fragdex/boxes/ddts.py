"""ddts: rate and channels of DTS (ETSI TS 102 114, E.2)."""

from fragdex.boxes.layout import bits, box, u8, u32

DDTS = box(
    "ddts",
    "DTS Specific",
    "ETSI TS 102 114, E.2",
    DTSSamplingFrequency=u32,
    maxBitrate=u32,
    avgBitrate=u32,
    pcmSampleDepth=u8,
    stream=bits(
        7,
        FrameDuration=2,
        StreamConstruction=5,
        CoreLFEPresent=1,
        CoreLayout=6,
        CoreSize=14,
        StereoDownmix=1,
        RepresentationType=3,
        ChannelLayout=16,
        MultiAssetFlag=1,
        LBRDurationMod=1,
        ReservedBoxPresent=1,
        Reserved=5,
    ),
)
