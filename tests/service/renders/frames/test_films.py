"""A film is stored as it was asked for: container, codecs, quality, transparency, sound."""

import hashlib
import io
import os
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
from fragdex.service.renders.encode import Encoding
from fragdex.service.renders.films import AUDIO_CODECS, CONTAINERS, VIDEO_CODECS, Film
from fragdex.service.renders.join import join
from fragdex.service.renders.plan import View
from service.renders.frames.numbers import png, read_rows

RATE = Fraction(30)
FRAMES = 70
BORDERS = (0, 33, FRAMES)

FILMS = [
    Film(crf=23, preset="medium"),
    Film(bit_rate=400_000, faststart=True, audio="mp3"),
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
]
CLEAR = [
    Film("webm", transparency=True),
    Film("mkv", codec="vp9", transparency=True),
    Film("mov", codec="prores", transparency=True),
    Film("mkv", codec="ffv1", transparency=True),
    Film("gif", transparency=True),
    Film("animated-webp", transparency=True),
]


def named(film):
    """A name for a film."""
    clear = "clear" if film.transparency else film.format
    return f"{film.container}-{film.video_name}-{clear}-{film.audio or 'usual'}"


def view_of(film):
    """What is seen of a page that becomes this film."""
    return View(320, 180, RATE, film.transparency)


def made(folder, film, picture=png, frames=FRAMES, borders=BORDERS):
    """A film of numbered pictures, with a beep after a second where it has sound."""
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


@pytest.mark.parametrize("film", FILMS, ids=named)
def test_every_frame_is_there_at_its_time(tmp_path, film):
    film.check()
    before = os.sched_getscheduler(0)
    out = made(tmp_path, film)
    assert os.sched_getscheduler(0) == before
    if film.container == "animated-webp":
        pictures, times = webp(out)
    else:
        times, pictures = zip(*shown(out), strict=True)
    assert [read_rows(picture)[0] for picture in pictures] == list(range(FRAMES))
    # containers count thousandths or hundredths of a second
    assert all(abs(time - i / RATE) <= Fraction(1, 100) for i, time in enumerate(times))


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
def test_the_file_holds_what_was_asked_for(tmp_path, film):
    out = made(tmp_path, film)
    with av.open(str(out)) as found:
        video = found.streams.video[0]
        assert video.codec_context.codec.id == av.Codec(film.video.encoder, "w").id
        assert video.codec_context.pix_fmt == film.format
        assert video.average_rate == RATE
        keys = [i for i, p in enumerate(p for p in found.demux(video) if p.size) if p.is_keyframe]
    every = 1 if film.video_name in ("prores", "ffv1") else film.gop or 60
    assert keys == sorted({*range(0, BORDERS[1], every), *range(BORDERS[1], FRAMES, every)})
    if not film.sound_codec:
        return
    with av.open(str(out)) as found:
        audio = found.streams.audio[0]
        assert audio.codec_context.codec.id == av.Codec(film.sound_codec, "w").id
        frames = list(found.decode(audio))
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
    assert abs(onset + start - 1) < 0.002


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
def test_the_same_pictures_give_the_same_bytes(tmp_path, film):
    digests = set()
    for turn in range(2):
        folder = tmp_path / str(turn)
        folder.mkdir()
        digests.add(hashlib.sha256(made(folder, film).read_bytes()).hexdigest())
    assert len(digests) == 1


@pytest.mark.parametrize("film", [Film("mov"), Film(faststart=True)], ids=named)
def test_films_of_boxes_can_be_indexed(tmp_path, film):
    index = fragdex.index(made(tmp_path, film), exact=True)
    assert [track.kind for track in index.tracks] == ["video", "audio"]
    assert (index.track(1).sample_count, index.findings) == (FRAMES, ())


def test_hevc_in_mp4_is_tagged_for_every_player(tmp_path):
    out = made(tmp_path, Film(codec="hevc", sound=False))
    assert fragdex.index(out).track(1).codec.startswith("hvc1.")


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
    faststart=st.booleans(),
)
likely = st.sampled_from(FILMS + CLEAR).flatmap(
    lambda film: films.map(
        lambda other: Film(
            film.container, film.codec, other.crf, None, film.preset, film.pixel_format,
            other.gop, film.transparency, film.audio, other.audio_bit_rate, film.sound,
            film.faststart,
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
