"""`fragdex plot`: placeholder."""

from fragdex.cli import options


def plot(files: options.Files, output: options.Output = None) -> int:
    """Draw."""
    return 0
