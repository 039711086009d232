"""`fragdex compare`: the frames and samples in which two videos differ."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.output import emit, json_line, need_folder, say
from fragdex.errors import MissingExtra

if TYPE_CHECKING:
    import numpy as np

    from fragdex.decoding.comparison import Comparison, FrameDifference

_SHOWN = 10
_LOUDER = 4


def compare(
    one: Annotated[
        str, typer.Argument(metavar="FILE", help="A video, a picture or sound.", show_default=False)
    ],
    other: Annotated[str, typer.Argument(metavar="OTHER", help="Another one.", show_default=False)],
    output: Annotated[
        str | None,
        options.placed(
            "Write a .png of the frame that differs most: of FILE, of OTHER, and their difference."
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            min=0,
            max=255,
            metavar="N",
            help="Differences of a channel up to N of 255 count as equal.",
        ),
    ] = 0,
    json: options.Json = False,
) -> int:
    """Find where two videos differ: frames, samples, and how much. Exit code 1 if they do.

    Frames are compared by their number, as they are decoded: PSNR of all channels, SSIM of the
    brightness, and the rectangle with all differing pixels. Sound is compared sample by
    sample.

    Examples:
      fragdex compare before.mp4 after.mp4
      fragdex compare before.mp4 after.mp4 --tolerance 3 -o worst.png
    """  # fmt: skip
    from fragdex.decoding.comparison import compare as compared

    if output is not None and Path(output).suffix.lower() != ".png":
        raise typer.BadParameter(f"-o {output}: a name that ends in .png is expected")
    if output is not None:
        need_folder(output)
    worst: list[np.ndarray[Any, Any]] = []

    def keep(*frames: np.ndarray[Any, Any]) -> None:
        worst[:] = frames

    comparison = compared(one, other, tolerance=tolerance, worst=keep)
    if output is not None and worst:
        emit([_picture(*worst)], output)
    say(json_line(_facts(one, other, comparison)) if json else "".join(_lines(comparison)))
    return 0 if comparison.is_equal else 1


def _facts(one: str, other: str, comparison: Comparison) -> dict[str, Any]:
    # PSNR and times are finite: frames that are listed differ
    return {"file": one, "other": other, "equal": comparison.is_equal, **asdict(comparison)}


def _lines(comparison: Comparison) -> list[str]:
    lines = [_of_frame(one) + "\n" for one in comparison.told[:_SHOWN]]
    (a, b), sound = comparison.frames, comparison.sound
    if comparison.sizes[0] != comparison.sizes[1] and a and b:
        sizes = " and ".join("×".join(map(str, size or ())) for size in comparison.sizes)
        lines.append(f"pictures of other sizes: {sizes}\n")
    elif len(comparison.told) > _SHOWN:
        lines.append("… more frames; --json lists them\n")
    if comparison.worst is not None and len(comparison.told) > 1:
        lines.append(f"most: {_of_frame(comparison.worst)}\n")
    if a or b:
        count = f"{a:,}" if a == b else f"{a:,} and {b:,}"
        lines.append(f"pictures: {comparison.differing:,} of {count} frames differ\n")
    if comparison.mistimed:
        lines.append(f"times: {comparison.mistimed:,} frames are the same, at other times\n")
    if sound.samples != (None, None):
        lines.append(_of_sound(comparison))
    return [*lines, "equal\n"] if comparison.is_equal else lines


def _of_frame(one: FrameDifference) -> str:
    left, top, width, height = one.box
    when = "" if one.seconds is None else f" ({one.seconds:.3f} s)"
    return (
        f"frame {one.frame}{when}: PSNR {one.psnr:.2f} dB, SSIM {one.ssim:.4f}, up to "
        f"{one.largest:g} of 255, {width}×{height} pixels at {left},{top}"
    )


def _of_sound(comparison: Comparison) -> str:
    sound = comparison.sound
    if None in sound.samples:
        return "sound: only one has any\n"
    for what, unit in (("rates", " Hz"), ("channels", " channels")):
        a, b = getattr(sound, what)
        if a != b:
            return f"sound: {a}{unit} and {b}{unit}\n"
    a, b = sound.samples
    count = f"{a:,}" if a == b else f"{a:,} and {b:,}"
    line = f"sound: {sound.differing:,} of {count} samples differ"
    if sound.first is None:
        return f"{line}\n"
    return f"{line}, the first at {sound.first:.6f} s, by up to {sound.largest:.2g} of full scale\n"


def _picture(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bytes:
    """Both frames side by side, and what differs, brighter than it is."""
    import io

    import numpy as np

    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise MissingExtra("the picture needs Pillow", extra="media") from None
    differences = np.abs(one.astype(np.int16) - other)
    shown = np.minimum(differences * _LOUDER, 255).astype(np.uint8)
    if shown.shape[2] == 4:
        # where only alpha differs, that has to be seen
        shown = np.dstack(
            [np.maximum(shown[:, :, :3], shown[:, :, 3:]), np.full_like(shown[:, :, :1], 255)]
        )
    out = io.BytesIO()
    Image.fromarray(np.concatenate([one, other, shown], axis=1)).save(out, "PNG")
    return out.getvalue()
