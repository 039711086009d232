"""ISOBMFF files: what is registered, indexed and looked up, and the tracks whose bytes are served.

A file has tracks apart, each a file of its own, and its index tells offsets in those; or it has
none, and the index tells offsets in the file itself, whose bytes the service may never see.

model       what requests and answers say
operations  files: create, find, list, delete
tracks      tracks: create, upload, find, delete
indexing    an index that comes in: held against its rules and the sizes that are known
opened      indexes that are open, and the forms of them that were asked for
single_flight
            what several ask for at once is made once
seeking     which bytes a moment of a track needs
true_sync   the same by its pictures; what reads much of them, in a process (true_sync_child)
router, routes, track_routes, index_routes
            HTTP in and out
"""
