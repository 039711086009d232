"""Where files made from inputs go: a file, a folder, or beside each input."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import typer

from fragdex.cli.inputs import STDIN, is_url, stem

__all__ = ["into_folder", "places"]


def into_folder(output: str | None) -> bool:
    """Whether an -o names a folder: one that is there, or any that ends like one.

    >>> into_folder("clips/"), into_folder("clip.mp4"), into_folder(None)
    (True, False, False)
    """
    return output is not None and (output.endswith(("/", os.sep)) or os.path.isdir(output))


def places(
    names: Sequence[str], output: str | None, suffix: Callable[[str], str], what: str
) -> dict[str, str]:
    """Where what is made of each input goes.

    Args:
        names: the inputs.
        output: a file (- is stdout) for one input; a folder, which is made; None: beside each.
        suffix: name → how the file ends that is called after it.
        what: the things that are written, for complaints.

    Raises:
        typer.BadParameter: two inputs would go to one place, or one over itself.

    >>> places(["a/b.mp4"], None, lambda name: ".png", "plots")
    {'a/b.mp4': 'a/b.png'}
    """
    if output is not None and not into_folder(output):
        if len(names) > 1:
            raise typer.BadParameter(
                f"{len(names)} inputs, and one place for their {what}: give a folder with -o"
            )
        found = {names[0]: output}
    else:
        if output is not None:
            os.makedirs(output, exist_ok=True)
        found = {
            name: os.path.join(_folder(name, output), stem(name) + suffix(name)) for name in names
        }
    taken: dict[str, str] = {}
    for name, place in found.items():
        if place == STDIN:
            continue
        where = os.path.realpath(place)
        if where == os.path.realpath(name):
            raise typer.BadParameter(f"{name} would overwrite itself: give another -o")
        if where in taken:
            raise typer.BadParameter(f"{taken[where]} and {name} would both be written to {place}")
        taken[where] = name
    return found


def _folder(name: str, output: str | None) -> str:
    if output is not None:
        return output
    return "" if is_url(name) or name == STDIN else os.path.dirname(name)
