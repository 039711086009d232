"""Speech becomes words with times, and captions.

words       a word, what is heard in a slice, and slices as one transcript
cutting     where sound is quiet: thresholds, cuts, utterances
engines     what recognizes speech, behind one contract
slices      one slice of a track, heard by itself, equal to the same part of the whole
cues        words become captions of readable length and speed
writing     captions as WebVTT, SubRip and JSON
process     an engine as a process of its own
listening   those of a service, which stay for the next slice
readiness   which engines are ready, and what the others lack
copying     a copy with captions; its structure is read in a process (copying_child)
whole       a whole file without a service, slice by slice, in several processes

A track of captions in a copy of an MP4 is `fragdex.formats.captions_track`.

Times are milliseconds of the file's presentation, but in the JSON that published players read.
Engines and decoders read hostile bytes with native code: they run in processes of their own.
"""
