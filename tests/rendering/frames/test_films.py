"""A film is stored as it was asked for: container, codecs, quality, transparency, sound."""

import hashlib
import io
import os
import zipfile
from fractions import Fraction
from functools import partial
from itertools import pairwise

import av
import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from PIL import Image

import fragdex
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.encode import Encoding
from fragdex.rendering.join import join, join_sound
from fragdex.rendering.outputs import AUDIO_CODECS, CONTAINERS, VIDEO_CODECS, Film
from fragdex.rendering.pictures import Pictures
from rendering.frames.numbers import plain_png, png, read_rows

RATE = Fraction(30)
FRAMES = 70
BORDERS = (0, 33, FRAMES)

FILMS = [
    Film(crf=23, preset="medium"),
    Film(bit_rate=400_000, fragmented=True, audio="mp3"),
    Film(pixel_format="yuv444p10le", gop=10, audio="flac"),
    Film(codec="hevc", audio="opus"),
    Film(codec="av1"),
    Film(codec="vp9", sound=False),
    Film("mov"),
    Film("mov", codec="hevc", pixel_format="yuv420p10le"),
    Film("mov", codec="prores"),
    Film("mov", codec="prores", preset="4444", audio="aac"),
    Film("webm"),
    Film("webm", codec="av1", bit_rate=300_000),
    Film("mkv", codec="ffv1"),
    Film("mkv", audio="pcm"),
    Film("gif"),
    Film("animated-webp"),
    Film("zip"),
    Film("zip", image="jpeg", quality=90),
]
SOUNDS = [
    Film("m4a"),
    Film("mp3", audio_bit_rate=128_000),
    Film("wav"),
    Film("flac"),
    Film("ogg"),
]
CLEAR = [
    Film("webm", transparency=True),
    Film("mkv", codec="vp9", transparency=True),
    Film("mov", codec="prores", transparency=True),
    Film("mkv", codec="ffv1", transparency=True),
    Film("gif", transparency=True),
    Film("animated-webp", transparency=True),
    Film("zip", transparency=True),
    Film("zip", image="webp", transparency=True),
]


def named(film):
    """A name for a film."""
    if film.is_sound:
        return film.container
    clear = "clear" if film.transparency else film.format
    what = film.image or film.video_name
    return f"{film.container}-{what}-{clear}-{film.audio or 'usual'}"


def view_of(film):
    """What is seen of a page that becomes this film."""
    return PageView(320, 180, RATE, film.transparency)


def made(folder, film, picture=png, frames=FRAMES, borders=BORDERS):
    """A film of numbered pictures, with a beep after a second where it has sound."""
    if film.is_sound:
        out = folder / f"film.{film.container}"
        join_sound(out, [beep(frames)], film)
        return out
    parts = []
    for first, stop in pairwise(borders):
        path = folder / f"{first}"
        with Encoding(path, view_of(film), film) as encoding:
            for i in range(first, stop):
                encoding.frame(picture(i))
            encoding.finish()
        parts.append(partial(path.open, "rb"))
    out = folder / f"film.{film.container}"
    sound = [beep(frames)] if film.sound_codec else None
    whole = join(parts, view_of(film), out, sound, film=film)
    assert (whole.frames, whole.sound) == (frames, film.sound_codec is not None)
    return out


def beep(frames):
    """Silence with a tone of 50 ms after a second."""
    samples = np.zeros((int(frames / RATE * 48_000), 2), np.float32)
    wave = 0.8 * np.sin(np.arange(2400) * 2 * np.pi * 1000 / 48_000)
    samples[48_000:50_400] = wave[: len(samples[48_000:50_400]), None]
    return samples


def shown(path):
    """(time, grey picture) of each frame."""
    with av.open(str(path)) as film:
        for frame in film.decode(video=0):
            yield frame.pts * Fraction(frame.time_base), frame.to_ndarray(format="gray")


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    """made_once(film): its file, for all tests that only read it."""
    files = {}

    def make(film):
        if repr(film) not in files:
            folder = tmp_path_factory.mktemp("film")
            before = os.sched_getscheduler(0)
            files[repr(film)] = made(folder, film)
            assert os.sched_getscheduler(0) == before
        return files[repr(film)]

    return make


@pytest.mark.parametrize("film", FILMS, ids=named)
def test_every_frame_is_there_at_its_time(made_once, film):
    film.check()
    out = made_once(film)
    if film.container == "animated-webp":
        pictures, times = webp(out)
    elif film.container == "zip":
        names, pictures = zip(*pictures_in(out), strict=True)
        assert names == tuple(f"{i:05}.{film.image or 'png'}" for i in range(FRAMES))
        pictures = [np.array(picture.convert("L")) for picture in pictures]
        times = [i / RATE for i in range(FRAMES)]
    else:
        times, pictures = zip(*shown(out), strict=True)
    assert [read_rows(picture)[0] for picture in pictures] == list(range(FRAMES))
    # containers count thousandths or hundredths of a second
    assert all(abs(time - i / RATE) <= Fraction(1, 100) for i, time in enumerate(times))


def pictures_in(path):
    """The pictures of an archive by their names."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            yield name, Image.open(io.BytesIO(archive.read(name)))


def webp(path):
    """The pictures of an animated WebP and when each begins; FFmpeg does not decode them."""
    pictures, times, now = [], [], Fraction(0)
    with Image.open(path) as image:
        for n in range(image.n_frames):
            image.seek(n)
            pictures.append(np.array(image.convert("L")))
            times.append(now)
            now += Fraction(image.info["duration"], 1000)
    return pictures, times


@pytest.mark.parametrize("film", [f for f in FILMS if not f.is_animation], ids=named)
def test_the_file_holds_what_was_asked_for(made_once, film):
    out = made_once(film)
    with av.open(str(out)) as container:
        video = container.streams.video[0]
        assert video.codec_context.codec.id == av.Codec(film.video.encoder, "w").id
        assert video.codec_context.pix_fmt == film.format
        assert video.average_rate == RATE
        keys = [
            i for i, p in enumerate(p for p in container.demux(video) if p.size) if p.is_keyframe
        ]
    every = 1 if film.video_name in ("prores", "ffv1") else film.gop or 60
    assert keys == sorted({*range(0, BORDERS[1], every), *range(BORDERS[1], FRAMES, every)})
    if film.sound_codec:
        assert_beep(out, film)


@pytest.mark.parametrize("film", SOUNDS, ids=named)
def test_a_sound_alone_is_stored_as_its_container_is(tmp_path, film):
    film.check()
    out = made(tmp_path, film)
    assert_beep(out, film)
    with av.open(str(out)) as container:
        assert len(container.streams) == 1
        assert abs(container.duration / 1e6 - FRAMES / RATE) < 0.05
    before = out.read_bytes()
    assert made(tmp_path, film).read_bytes() == before
    if film.is_isobmff:
        (track,) = fragdex.index(out, exact=True).tracks
        assert track.kind == "audio"


def assert_beep(out, film):
    """The sound of a file is of its codec, and has its tone after a second."""
    with av.open(str(out)) as container:
        audio = container.streams.audio[0]
        assert audio.codec_context.codec.id == av.Codec(film.sound_codec, "w").id
        # an MP3 counts from before what its encoder added, which decoders leave out
        begin = (audio.start_time or 0) * audio.time_base if film.is_sound else 0
        frames = list(container.decode(audio))
    sound = np.concatenate(
        [
            np.atleast_2d(f.to_ndarray()).astype(float).reshape(-1)
            if f.format.is_packed
            else f.to_ndarray()[0].astype(float)
            for f in frames
        ]
    )
    packed = 2 if frames[0].format.is_packed else 1
    sound /= np.abs(sound).max()
    onset = np.argmax(np.abs(sound) > 0.25) / packed / 48_000
    start = frames[0].pts * Fraction(frames[0].time_base)
    assert abs(onset + start - begin - 1) < 0.002


@pytest.mark.parametrize("film", CLEAR, ids=named)
def test_what_the_page_leaves_unpainted_stays_transparent(tmp_path, film):
    film.check()
    out = made(tmp_path, film, half, frames=4, borders=(0, 2, 4))
    picture = rgba(out)
    assert picture[90, 40, 3] > 250
    assert np.allclose(picture[90, 40, :3], (200, 30, 60), atol=12)
    assert picture[90, 280, 3] < 5


def half(_):
    """A picture whose left half alone is painted."""
    image = Image.new("RGBA", (320, 180), (0, 0, 0, 0))
    image.paste((200, 30, 60, 255), (0, 0, 160, 180))
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def rgba(path):
    """The first picture of a file, with its transparency."""
    if path.suffix == ".zip":
        _, picture = next(pictures_in(path))
        return np.array(picture.convert("RGBA"))
    if path.suffix in (".gif", ".animated-webp"):
        with Image.open(path) as image:
            return np.array(image.convert("RGBA"))
    with av.open(str(path)) as film:
        stream = film.streams.video[0]
        if stream.codec_context.name == "vp9":
            # FFmpeg's own decoder does not look at transparency
            decoder = av.CodecContext.create("libvpx-vp9", "r")
            packets = film.demux(stream)
            frame = next(f for packet in packets for f in decoder.decode(packet))
        else:
            frame = next(film.decode(stream))
        return frame.to_ndarray(format="rgba")


@pytest.mark.parametrize("film", [FILMS[0], *FILMS[3:6], *FILMS[8:11], *FILMS[12:]], ids=named)
def test_the_same_pictures_give_the_same_bytes(made_once, tmp_path, film):
    first, second = made_once(film).read_bytes(), made(tmp_path, film).read_bytes()
    assert hashlib.sha256(first).digest() == hashlib.sha256(second).digest()


@pytest.mark.parametrize("film", [Film("mov"), Film(), Film(fragmented=True)], ids=named)
def test_films_of_boxes_can_be_indexed(made_once, film):
    out = made_once(film)
    index = fragdex.index(out, exact=True)
    assert [track.kind for track in index.tracks] == ["video", "audio"]
    assert (index.track(1).sample_count, index.findings) == (FRAMES, ())
    data = out.read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")
    assert (b"moof" in data) == film.fragmented


def test_hevc_in_mp4_is_tagged_for_every_player(tmp_path):
    out = made(tmp_path, Film(codec="hevc", sound=False))
    assert fragdex.index(out).track(1).codec.startswith("hvc1.")


PQ = [
    Film(codec="hevc", color="bt2020-pq", sound=False),
    Film("webm", codec="av1", gop=1, color="bt2020-pq", sound=False),
    Film("mov", codec="prores", preset="4444", color="bt2020-pq", sound=False),
]
COLOURS = [(255, 255, 255), (128, 128, 128), (255, 0, 0), (0, 255, 0), (0, 0, 255), (30, 90, 200)]


def in_pq(rgb):
    """Y', Cb and Cr of 10 bits (ITU-R BT.2100) of colours of sRGB, white at 203 cd/m²."""
    levels = np.asarray(rgb) / 255
    linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
    # ITU-R BT.2087
    to_wide = [[0.6274, 0.3293, 0.0433], [0.0691, 0.9195, 0.0114], [0.0164, 0.0880, 0.8956]]
    power = (linear @ np.transpose(to_wide) * 203 / 10_000) ** (2610 / 16384)
    pq = ((3424 / 4096 + 2413 / 128 * power) / (1 + 2392 / 128 * power)) ** (2523 / 32)
    luma = pq @ [0.2627, 0.6780, 0.0593]
    blue, red = (pq[..., 2] - luma) / 1.8814, (pq[..., 0] - luma) / 1.4746
    return np.stack([64 + 876 * luma, 512 + 896 * blue, 512 + 896 * red], axis=-1)


def ten_bits(frame):
    """Its planes: (height, width, 3)."""
    planes = [np.frombuffer(one, np.uint16).reshape(one.height, -1) for one in frame.planes]
    return np.stack([plane[:, : frame.width] for plane in planes], axis=-1).astype(int)


def test_each_colour_in_pq_is_within_two_levels_of_its_own():
    """Dark ones too, whose levels of PQ lie far apart."""
    some = [0, 1, 2, 3, 5, 8, 12, 20, 32, 48, 64, 96, 128, 176, 224, 255]
    colours = np.stack(np.meshgrid(some, some, some), axis=-1).reshape(64, 64, 3).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(colours).save(out, "PNG")
    pictures = Pictures(PageView(64, 64), "yuv444p10le", is_pq=True)
    converted = pictures.picture(out.getvalue())
    assert np.abs(ten_bits(converted) - in_pq(colours)).max() < 2


@pytest.mark.parametrize("film", PQ, ids=named)
def test_colours_of_bt_2020_with_pq_are_converted_and_tagged(tmp_path, film):
    film.check()
    out = made(tmp_path, film, lambda i: plain_png(COLOURS[i], (320, 180)), 6, (0, 6))
    with av.open(str(out)) as container:
        context = container.streams.video[0].codec_context
        assert (context.color_primaries, context.color_trc, context.colorspace) == (9, 16, 9)
        assert (context.color_range, context.pix_fmt) == (1, film.format)
        for frame, colour in zip(container.decode(video=0), COLOURS, strict=True):
            levels = [
                int(np.frombuffer(plane, np.uint16).reshape(plane.height, -1)[10, 10])
                for plane in frame.planes
            ]
            # an encoder's own loss, and a level of 8 bits is four of 10
            assert np.allclose(levels, in_pq(colour), atol=4), (colour, levels)


def test_hevc_has_no_transparency_as_long_as_its_encoder_has_none():
    with pytest.raises(ValueError, match="hevc has none here; vp9, prores, ffv1 do"):
        Film("mov", codec="hevc", transparency=True).check()
    context = av.CodecContext.create("libx265", "w")
    context.width, context.height, context.pix_fmt = 64, 64, "yuva420p"
    context.time_base = 1 / RATE
    with pytest.raises(OSError, match="Operation not supported"):
        context.open()


formats = sorted({f for codec in VIDEO_CODECS.values() for f in codec.formats} | {"rgb24"})
presets = sorted({p for codec in VIDEO_CODECS.values() for p in codec.presets} | {"best"})
# The small half of each scale: the slowest settings take long and show nothing else.
films = st.builds(
    Film,
    container=st.sampled_from([*CONTAINERS, "avi"]),
    codec=st.none() | st.sampled_from([*VIDEO_CODECS, "theora"]),
    crf=st.none() | st.integers(-1, 70),
    bit_rate=st.none() | st.sampled_from([0, 1000, 300_000, 10**10]),
    preset=st.none() | st.sampled_from(presets),
    pixel_format=st.none() | st.sampled_from(formats),
    gop=st.none() | st.integers(-1, 9),
    transparency=st.booleans(),
    audio=st.none() | st.sampled_from([*AUDIO_CODECS, "vorbis"]),
    audio_bit_rate=st.none() | st.sampled_from([1, 32_000, 256_000, 10**7]),
    sound=st.booleans(),
    fragmented=st.booleans(),
    image=st.none() | st.sampled_from(["png", "jpeg", "webp", "tiff"]),
    quality=st.none() | st.sampled_from([0, 1, 100]),
    color=st.sampled_from([None, None, "bt709", "bt2020-pq", "p3"]),
    loudness=st.none() | st.sampled_from([-90.0, -23.0, 0.0, float("nan")]),
)
likely = st.sampled_from(FILMS + SOUNDS + CLEAR).flatmap(
    lambda film: films.map(
        lambda other: Film(
            film.container, film.codec, other.crf, None, film.preset, film.pixel_format,
            other.gop, film.transparency, film.audio, other.audio_bit_rate, film.sound,
            film.fragmented, film.image, film.image and other.quality,
            other.loudness, film.color or other.color,
        )
    )
)  # fmt: skip


@given(films | likely)
@settings(max_examples=60, deadline=None)
def test_what_is_not_refused_can_be_made(tmp_path_factory, film):
    """And what is refused is named."""
    try:
        film.check()
    except ValueError as error:
        name = str(error).partition(":")[0]
        assert name in Film.__dataclass_fields__
        event(f"refused: {name}")
        return
    event(f"made: {film.container}, {film.video_name}")
    out = made(tmp_path_factory.mktemp("film"), film, frames=3, borders=(0, 2, 3))
    assert out.stat().st_size > 0
