"""ISOBMFF files: what is registered, indexed and looked up, and the tracks whose bytes are served.

A file has tracks apart, each a file of its own, and its index tells offsets in those; or it has
none, and the index tells offsets in the file itself, whose bytes the service may never see.

model          what requests and answers say
operations     files: create, find, list, delete
tracks         tracks: create, upload, find, delete; a file with all of its tracks
indexing       an index that comes in: held against its rules and the sizes that are known
opened         indexes that are open, those with all samples too
forms          the forms of an index that are asked for
single_flight  what several ask for at once is made once
seeking        which bytes a moment of a track needs, by its boxes or by its pictures
routes         HTTP in and out
"""
