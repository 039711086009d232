"""Unprocessed files: media of any kind, on its way to become an ISOBMFF file.

model        what requests and answers say
arrival      looks at the bytes as they come: indexes them, or says why they are no media
as_it_came   whether a file needs no work at all, and its publication then
operations   the records of the files
processing   the making of ISOBMFF files
progress     how far something is, as events
keeping      what the media work made, on its way to rows that name it
scrubbing    the job that makes a scrub track for what was published as it came
worker       the job that does the rest of the work
routes       all of it over HTTP
"""
