"""Parts of pictures: boxes, and where they lie in the planes of a decoded picture."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from fragdex.decoding.pictures import Orientation
from fragdex.errors import UndecodableMedia

Box = tuple[int, int, int, int]
"""Left, top, right and bottom of a part of a picture, in pixels; right and bottom exclusive."""


Steps = tuple[int, int]
"""How many pixels of a picture, down and to the right, share a sample of chroma."""


class Crop(NamedTuple):
    """A box whose numbers are checked."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.right - self.left, self.bottom - self.top

    def stored(self, orientation: Orientation, width: int, height: int) -> Crop:
        """The same part of a picture as it is stored."""
        left, top, right, bottom = self
        wide, high = (height, width) if orientation.transposed else (width, height)
        if right > wide or bottom > high:
            raise UndecodableMedia(
                f"the pictures are {wide} × {high}, and the crop reaches to {right} × {bottom}",
                advice="choose a box inside of all pictures",
            )
        if orientation.mirrored:
            left, right = wide - right, wide - left
        if orientation.flipped:
            top, bottom = high - bottom, high - top
        if orientation.transposed:
            return Crop(top, left, bottom, right)
        return Crop(left, top, right, bottom)

    def covering(self, down: int, right: int) -> Crop:
        """In a plane with a sample for each `down` × `right` pixels: those of this part."""
        return Crop(
            self.left // right, self.top // down, -(-self.right // right), -(-self.bottom // down)
        )

    def spread(self, down: int, right: int, width: int, height: int) -> Crop:
        """The pixels of a picture of this size that share such samples with this part."""
        part = self.covering(down, right)
        return Crop(
            part.left * right, part.top * down,
            min(part.right * right, width), min(part.bottom * down, height),
        )  # fmt: skip

    def inside(self, other: Crop) -> Crop:
        """This part of a picture, counted from the corner of another part."""
        return Crop(
            self.left - other.left, self.top - other.top,
            self.right - other.left, self.bottom - other.top,
        )  # fmt: skip

    def is_whole(self, down: int, right: int) -> bool:
        """Whether it begins where such a sample begins."""
        return not self.left % right and not self.top % down

    def of(self, array: Any) -> Any:
        """A view of an array of shape (height, width, …)."""
        return array[self.top : self.bottom, self.left : self.right]


def crop_of(box: Iterable[int]) -> Crop:
    """A box, checked."""
    numbers = tuple(box)
    try:
        crop = Crop(*(int(number) for number in numbers))
        if crop == numbers and 0 <= crop.left < crop.right and 0 <= crop.top < crop.bottom:
            return crop
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(
        "crop is (left, top, right, bottom) in pixels, 0 ≤ left < right and 0 ≤ top < bottom, "
        f"not {numbers}"
    )


def cut(crop: Crop, planes: Iterable[Any], steps: Steps) -> list[Any]:
    """A part of the planes of a picture: views.

    Raises:
        UndecodableMedia: the part begins between two samples of chroma.
    """
    luma, *chroma = planes
    if chroma and not crop.is_whole(*steps):
        down, right = steps
        raise UndecodableMedia(
            f"{right} × {down} pixels share a sample of chroma, and the crop begins between two",
            advice="begin at a multiple, take rgb or gray, or give a size to scale to",
        )
    return [crop.of(luma), *(crop.covering(*steps).of(plane) for plane in chroma)]
