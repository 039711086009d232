"""Names in sentences, and words that sound like them: what a vocabulary is measured by.

The voices are flite's; each sentence is said by each of them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import recorded
import tracks

Sound = tracks.Sound

VOICES = ("rms", "slt", "awb")
NAMES = (
    "fragdex", "Kubernetes", "Postgres", "Lovelace", "Nguyen", "Tchaikovsky", "Reykjavik",
    "Wozniak", "Kowalski", "Okafor", "Haverstock", "Brindley", "Zuckerman", "Fibonacci",
    "Dijkstra", "Erlang", "Grafana", "Prometheus", "Terraform", "Ansible", "Debian", "Ostrander",
    "Maplethorpe", "Quillfeather", "Velmora", "Zantrix", "Bellwether", "Kestrelton", "Drovik",
    "Synthara", "Lumetra", "Pyxaris", "Ada Lovelace", "Grace Hopper", "Smyth", "Catherine",
)  # fmt: skip
_SENTENCES = (
    "please ask {} about the report before the end of the week",
    "we met {} in the office on monday morning",
    "the committee told {} that the meeting had moved",
    "this is the new page about {} and the old one is gone",
)
FALSE_FRIENDS = {
    "Lovelace": "the play is about a loveless marriage in the country",
    "Terraform": "we saw the terror form on his face",
    "Grafana": "the gray fauna of the island is protected",
    "Reed": "please read the book before the end of the week",
    "Carrie": "they carry the box across the street",
    "Jim": "the gym is closed on monday morning",
    "Marc": "mark the page with a piece of paper",
    "Erlang": "her long hair was wet from the rain",
    "Prometheus": "he made a promise to us and kept it",
    "Bill": "the waiter brought the bill after the meal",
    "Postgres": "the post grew tall beside the road",
    "Ansible": "the answer will be sent to you",
    "Hopper": "the doctor gave me a copper coin",
    "Zuckerman": "the sugar man came with his cart",
    "Haverstock": "we have a stock of paper in the office",
    "Brindley": "she spoke to them friendly and slowly",
    "Smyth": "the smith worked with iron and fire",
    "Rose": "the sun rose over the hills",
    "Wells": "it is easy to tell the depth of a well",
    "Page": "the old stage was torn down",
    "Fisher": "the fissure in the wall is deep",
    "Parker": "the truck is darker than the car",
    "Kestrelton": "the orchestra played all night",
    "Nguyen": "when the rain stops we will go home",
    "Okafor": "they took a ferry over the river",
    "Dijkstra": "they took the dike straight to the sea",
    "Gray": "the great river is wide and slow",
    "Dean": "the beans are on the table",
    "Debian": "the debate began at nine in the evening",
    "Cloud": "the crowd was loud and happy",
}
"""An entry, and a sentence without it in which something sounds like it."""


def sentences() -> Iterator[tuple[str, str, str]]:
    """A name, a sentence with it, and who says it."""
    for number, name in enumerate(NAMES):
        for more, voice in enumerate(VOICES):
            yield name, _SENTENCES[(number + more) % len(_SENTENCES)].format(name), voice


def friends() -> Iterator[tuple[str, str, str]]:
    """The same of entries that are not in the sentence."""
    for name, text in FALSE_FRIENDS.items():
        for voice in VOICES:
            yield name, text, voice


def spoken(data: Path, text: str, voice: str) -> Sound:
    """A sentence as 16 kHz."""
    path = data / f"flite-{voice}-{text.replace(' ', '_')}.wav"
    if not path.exists():
        subprocess.run(["flite", "-voice", voice, "-t", text, "-o", str(path)], check=True)
    return recorded._decoded(path)
