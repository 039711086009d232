"""name: a name as plain text (QuickTime File Format, User Data)."""

from fragdex.boxes.layout import box, text_rest

NAME = box(
    "name",
    "Name",
    "QuickTime File Format, User Data",
    name=text_rest,
)
