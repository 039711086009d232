"""ISOBMFF files: what is registered, indexed and looked up, and the tracks whose bytes are served.

A file has tracks apart, each a file of its own, and its index tells offsets in those; or it has
none, and the index tells offsets in the file itself, whose bytes the service may never see.

operations     what requests and answers say; files: create, find, list, delete
tracks         tracks: create, upload, find, delete; a file with all of its tracks; seeks in it
indexing       an index that comes in: held against its rules and the sizes that are known
opened         indexes that are open, those with all samples too, and the forms made of them
routes         HTTP in and out
"""
