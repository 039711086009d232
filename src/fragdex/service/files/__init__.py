"""Files of all types under one address: videos, images and captions.

They stand in one table, by their type, and their ids are the same here and at the address of their
type. A video is listed once with the ISOBMFF file that it became. That is a record of its own: two
videos of the same bytes become one, and one may be registered whose bytes are never sent.
"""
