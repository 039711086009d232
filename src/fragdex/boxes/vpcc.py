"""vpcC: profile, level and colours of VP8 and VP9 (VP Codec ISO Media File Format Binding)."""

from fragdex.boxes.layout import bits, fullbox, sized, u8, u16

VPCC = fullbox(
    "vpcC",
    "VP Codec Configuration",
    "VP Codec ISO Media File Format Binding",
    versions=(1,),
    profile=u8,
    level=u8,
    format=bits(1, bitDepth=4, chromaSubsampling=3, videoFullRangeFlag=1),
    colourPrimaries=u8,
    transferCharacteristics=u8,
    matrixCoefficients=u8,
    codecInitializationData=sized(u16),
)
