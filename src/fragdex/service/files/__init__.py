"""One family for all: videos, images and captions under one kind of record.

model        what requests and answers say
rows         the records of the other families, as one list
operations   what can be done with them; no HTTP
routes       over HTTP

There is no table of files: a video is an unprocessed file and the ISOBMFF file of the same bytes,
an image an image file, captions a caption file. Their ids are the same here and there.
"""
