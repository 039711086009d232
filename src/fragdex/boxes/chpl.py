"""chpl: starts and titles of chapters (Nero chapters).

start in units of 100 ns.
"""

from fragdex.boxes.layout import fullbox, items, pascal, record, u8, u32, u64, where

CHPL = fullbox(
    "chpl",
    "Chapter List",
    "Nero chapters",
    reserved=where(u32, version=(1,)),
    chapters=items(u8, record(start=u64, title=pascal(u8)), 9),
)
