"""The command line's door: `fragdex …` and `python -m fragdex …`."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in typing, whose import takes longer than most answers
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

QUICK = frozenset(
    ("index", "seek", "plan", "info", "dump", "md5", "verify", "extract", "view", "package")
)
"""Commands that multiply no matrices: the threads that numpy starts for those are half of what
its import costs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; without the extra `cli` it says what to install.

    Args:
        arguments: what stands after the program's name; None: what the process was given.

    >>> main(["--version"])  # doctest: +ELLIPSIS
    fragdex ...
    0
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given == ["--version"]:
        from fragdex import __version__

        try:
            print(f"fragdex {__version__}", flush=True)
        except OSError:
            pass  # the whole command says what is wrong with its output
        else:
            return 0
    if given[:1] == ["seek"]:
        from fragdex.cli.saved_seek import seek

        code = seek(given)
        if code is not None:
            return code
    if given and given[0] in QUICK:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from fragdex.cli.app import run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("typer", "click", "rich"):
            raise
        print(
            f"fragdex: the command line needs the package {error.name}: pip install 'fragdex[cli]'",
            file=sys.stderr,
        )
        return 2
    return run(given)


if __name__ == "__main__":
    sys.exit(main())
