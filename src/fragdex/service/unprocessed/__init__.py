"""Unprocessed files: media of any kind, on its way to become an ISOBMFF file.

model        what requests and answers say
records      the rows of files and processes, as records and events
inspection   looks at the bytes as they come: indexes them, or says why they are not media
passthrough  whether a file needs no work at all
operations   the records of the files, and the making of ISOBMFF files
worker       the jobs that do the work: all tracks, or a scrub track afterwards; rows that name it
routes       all of it over HTTP
"""
