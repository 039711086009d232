"""One family for all: videos, images and captions under one kind of record.

There is no table of files: a video is an unprocessed file and the ISOBMFF file of the same bytes,
an image an image file, captions a caption file. Their ids are the same here and there.
"""
