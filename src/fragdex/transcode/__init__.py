"""What needs FFmpeg's libraries: any video or audio file becomes tracks that players append.

probe       what a file holds, what can be copied, what must be encoded; refuses what is not media
track_writers
            writes one track: copied packets, or encoded frames, as a fragmented file
tracks      what comes of it
process     a whole file: every track, the scrub track, the indexes
seams       pictures at a cut, encoded again with the settings of their video
smart_cut   clips that hide no pictures
encoders    x264 held to bytes that repeat, SVT-AV1 kept from changing the process
running     the same in a process of its own

FFmpeg's libraries read hostile bytes here, so they never run in a process of the service: a crash,
a hang or a flood of memory in them ends a child process and one job.
"""
