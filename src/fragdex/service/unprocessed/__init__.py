"""Unprocessed files: media of any kind, on its way to become an ISOBMFF file.

model        what requests and answers say
arrival      looks at the bytes as they come: indexes them, or says why they are no media
structure    the boxes of a file that an index is made of, gathered as it comes
indexing     what is large of it is indexed in a process of its own
looked       what was seen of files as they came, for whoever asks next
as_it_came   whether a file needs no work at all, and its publication then
operations   the records of the files
processing   the making of ISOBMFF files
progress     how far something is, as events
staging      what the media work made, on its way to rows that name it
scrubbing    the job that makes a scrub track for what was published as it came
worker       the job that does the rest of the work
routes       all of it over HTTP
"""
