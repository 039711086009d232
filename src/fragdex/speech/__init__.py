"""Speech becomes words with times, and captions.

words       a word, what is heard in a slice, and slices as one transcript
cutting     where sound is quiet: thresholds, cuts, utterances
engines     what recognizes speech, with one contract
plan        how a track is cut into slices
slices      one slice of a track, heard by itself, equal to the same part of the whole
captions    words become captions of readable length and speed, as WebVTT, SubRip, JSON or a track
acoustics   how well sound fits each phone of English
alignment   when each word of a text is said
process     an engine as a process of its own
transcribe  a whole file, slice by slice, in several processes

A track of captions in a copy of an MP4 is `fragdex.muxing.captions`.

Times are milliseconds of the file's presentation, but in the JSON that published players read.
Engines and decoders read hostile bytes with native code: they run in processes of their own.
"""
