"""Files whose index is lost or wrong: their samples found again, and the file as a view.

syntax         what a walk asks of a codec, and of a source
nal_units      samples of AVC, HEVC and VVC
avc, hevc, vvc their slices and parameter sets
av1            temporal units of OBUs
sound          sound whose frames say where they end
flac           frames of FLAC, which end where their checksum is right
between        sound that does not say it
vp9            frames of VP9, which do not say it either
walk           sample by sample, each confirmed by what follows; their times
pattern        what a good file says
media_data     what boxes still say of where samples are
stream         what a stream says of itself, and a moov for it
rates          pictures a second: clock timestamps, telemetry of cameras, what several say
tables         a moov that is wrong, and parts of a file that are not where it says
fragment_order fragments whose decode times are stale, or whose order is wrong
film           the repaired file
repair         `fragdex.repair`
"""
