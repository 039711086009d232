"""Films whose pictures say their number in 16 columns of black and white."""

import io
from fractions import Fraction

import av
import numpy as np

import fragdex

BIT = 16
FRAGMENTED = {"movflags": "frag_keyframe+delay_moov+default_base_moof"}


def luma_of(number, size):
    """The brightness of a picture: its number in columns, the lowest bit first."""
    columns = np.arange(size[0]) * BIT // size[0]
    row = np.where(number >> columns & 1, 235, 16).astype(np.uint8)
    return np.broadcast_to(row, (size[1], size[0]))


def numbered(
    count, fps, *, bframes=2, keys=30, fragmented=True, size=(256, 48), codec="libx264",
    aspect=None, rotation=None, x264="",
):  # fmt: skip
    """A film of `count` pictures, a key frame every `keys`."""
    file = io.BytesIO()
    options = FRAGMENTED if fragmented else {}
    container = av.open(file, "w", format="mp4", options=options)
    params = f"bframes={bframes}:keyint={keys}:scenecut=0:threads=1{x264}"
    stream = container.add_stream(
        codec, rate=fps, options={"preset": "ultrafast", "x264-params": params}
    )
    stream.width, stream.height = size
    stream.pix_fmt = "yuv420p"
    if aspect is not None:
        stream.codec_context.sample_aspect_ratio = Fraction(aspect)
    stream.codec_context.gop_size, stream.codec_context.max_b_frames = keys, bframes
    for number in range(count):
        planes = np.full((size[1] * 3 // 2, size[0]), 128, np.uint8)
        planes[: size[1]] = luma_of(number, size)
        container.mux(stream.encode(av.VideoFrame.from_ndarray(planes, format="yuv420p")))
    container.mux(stream.encode())
    container.close()
    data = file.getvalue()
    return data if rotation is None else turned(data, rotation)


def with_several_sets():
    """Three groups of 10 pictures, each coded otherwise than the one before, by its own sets.

    The first by the parameter sets of the sample entry, the others by those in their first sample.
    """
    films = [
        numbered(30, 25, bframes=0, keys=10, fragmented=False, x264=f":cabac={n}") for n in (0, 1)
    ]
    sets = []
    samples = []
    for film in films:
        avcc = film[film.index(b"avcC") + 4 :]
        sps = avcc[8 : 8 + int.from_bytes(avcc[6:8], "big")]
        at = 8 + len(sps) + 1
        pps = avcc[at + 2 : at + 2 + int.from_bytes(avcc[at : at + 2], "big")]
        sets.append(b"".join(len(unit).to_bytes(4, "big") + unit for unit in (sps, pps)))
        table = fragdex.index(film).track(1).samples
        places = zip(table.offset.tolist(), table.size.tolist(), strict=True)
        samples.append([film[offset : offset + size] for offset, size in places])
    plain, other = samples
    other[10] = sets[1] + other[10]
    plain[20] = sets[0] + plain[20]
    file = io.BytesIO()
    with av.open(io.BytesIO(films[0])) as template, av.open(file, "w", format="mp4") as out:
        stream = out.add_stream_from_template(template.streams.video[0])
        for number, data in enumerate(plain[:10] + other[10:20] + plain[20:]):
            packet = av.Packet(data)
            packet.stream, packet.time_base = stream, Fraction(1, 25)
            packet.pts = packet.dts = number
            packet.duration, packet.is_keyframe = 1, number % 10 == 0
            out.mux_one(packet)
    return file.getvalue()


# tkhd's a b c d by what they do to a stored picture (ISO/IEC 14496-12, 6.2.2 and 8.3.2): all that
# keep its sides upright or level.
MATRICES = {
    "plain": ((1, 0, 0, 1), lambda picture: picture),
    "90": ((0, 1, -1, 0), lambda picture: np.rot90(picture, -1)),
    "180": ((-1, 0, 0, -1), lambda picture: np.rot90(picture, 2)),
    "270": ((0, -1, 1, 0), np.rot90),
    "mirrored": ((-1, 0, 0, 1), np.fliplr),
    "flipped": ((1, 0, 0, -1), np.flipud),
    "transposed": ((0, 1, 1, 0), lambda picture: picture.swapaxes(0, 1)),
    "antitransposed": (
        (0, -1, -1, 0), lambda picture: np.rot90(picture, 2).swapaxes(0, 1)
    ),
    "sheared": ((1, 0.5, 0, 1), lambda picture: picture),
    "45": ((0.7071, 0.7071, -0.7071, 0.7071), lambda picture: picture),
}  # fmt: skip


def turned(data, degrees):
    """The same film with a matrix in the tkhd that turns it clockwise."""
    return shown_by(data, MATRICES[str(degrees)][0])


def shown_by(data, matrix):
    """The same film with a b c d of a matrix in the tkhd."""
    a, b, c, d = (round(one * 65536).to_bytes(4, "big", signed=True) for one in matrix)
    zero, unit, one = bytes(4), (1 << 30).to_bytes(4, "big"), (1 << 16).to_bytes(4, "big")
    plain = one + zero * 3 + one + zero * 3 + unit
    at = data.index(plain, data.index(b"tkhd"))
    return data[:at] + a + b + zero + c + d + zero * 3 + unit + data[at + len(plain) :]


def number_in(luma):
    """The number that a brightness says."""
    row = luma[luma.shape[0] // 2]
    width = luma.shape[1] / BIT
    return sum(1 << bit for bit in range(BIT) if row[int((bit + 0.5) * width)] > 125)
