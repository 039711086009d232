"""Films whose index is lost or wrong: their samples found again, and the film as a view.

syntax         what a walk asks of a codec
window         the bytes of a source, a block at a time
nal_units      samples of AVC and HEVC
avc, hevc      their slices and parameter sets
av1            temporal units of OBUs
aac            frames of AAC, bit by bit
sound          sound whose frames say where they end
between        sound that does not say it
walk           sample by sample, each confirmed by what follows
pattern        what a good film says
media_data     what boxes still say
times          times of what was found
film           the mended film
repair         `fragdex.repair`
"""
