"""A field of a render is declared once: requests and options mean the same."""

import re
from fractions import Fraction
from importlib import resources

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from fragdex.cli.render_fields import FileKind, option_fields
from fragdex.cli.render_fields import spec_of as spec_of_options
from fragdex.rendering import outputs
from fragdex.rendering.fields import RenderField, declared_fields, read_text, to_json
from fragdex.rendering.outputs import AUDIO_CODECS, CONTAINERS, VIDEO_CODECS, Container, Film, Still
from fragdex.rendering.spec import RenderSpec, spec_of

SIDES = st.integers(1, 7680)
TIMES = st.none() | st.integers(1, 3_600_000)
RATES = st.sampled_from([Fraction(30), Fraction(30000, 1001), Fraction(25, 2), Fraction(60)])
FILMS = st.builds(
    Film,
    container=st.sampled_from([name for name, one in CONTAINERS.items() if one.group != "still"]),
    codec=st.none() | st.sampled_from(list(VIDEO_CODECS)),
    crf=st.none() | st.integers(0, 63),
    bit_rate=st.none() | st.integers(1000, 2_000_000_000),
    preset=st.none() | st.just("slow"),
    pixel_format=st.none() | st.just("yuv444p"),
    color=st.sampled_from([None, "bt709", "bt2020-pq"]),
    gop=st.none() | st.integers(1, 7200),
    transparency=st.booleans(),
    audio=st.none() | st.sampled_from(list(AUDIO_CODECS)),
    audio_bit_rate=st.none() | st.integers(32_000, 510_000),
    loudness=st.none() | st.floats(-70, -5),
    fragmented=st.booleans(),
    image=st.sampled_from([None, "png", "jpeg", "webp"]),
    quality=st.none() | st.integers(1, 100),
)
STILLS = st.builds(
    Still,
    container=st.sampled_from(["png", "jpeg", "webp"]),
    quality=st.integers(1, 100),
    compression=st.none() | st.integers(0, 100),
    transparency=st.booleans(),
)
VIEWS = {
    "width": st.none() | SIDES,
    "height": st.none() | SIDES,
    "fps": RATES,
    "duration_ms": TIMES,
    "scale": st.sampled_from([0.5, 1.0, 2.25, 4.0]),
    "page_fps": st.none() | RATES,
    "crop": st.none() | st.tuples(SIDES, SIDES, SIDES, SIDES),
    "from_ms": TIMES,
    "to_ms": TIMES,
    "time_ms": st.integers(0, 3_600_000),
}


def test_every_field_is_drawn():
    assert VIEWS.keys() == declared_fields(RenderSpec).keys()


@given(st.builds(RenderSpec, **VIEWS, film=FILMS) | st.builds(RenderSpec, **VIEWS, still=STILLS))
def test_the_request_of_a_spec_means_the_spec(spec):
    assert spec_of(spec.as_request()) == spec


def test_a_request_without_sound_has_no_codec_of_it():
    asked = {"output": {"container": "mp4", "silent": True, "audio": {"codec": "aac"}}}
    assert spec_of(asked).film == Film(sound=False)


@given(RATES)
def test_a_rate_is_read_as_it_is_written(rate):
    assert read_text(str(to_json(rate, "rate")), RenderField(kind="rate")) == rate


@pytest.mark.parametrize("owner", [RenderSpec, Film, Still])
def test_fields_do_not_share_their_place_or_their_option(owner):
    declared = declared_fields(owner).values()
    places = [one.json for one in declared]
    options = [one.option for one in declared if one.option]
    assert len(set(places)) == len(places)
    assert len(set(options)) == len(options)
    assert all(one.help for one in declared if one.option)


TEXTS = {
    "size": "64x32", "scale": "2", "fps": "25", "page-fps": "50", "duration": "1:02", "start": "1",
    "stop": "3", "crop": "0,0,8,8", "codec": "av1", "crf": 30, "preset": "8", "gop": 12,
    "pixel-format": "yuv420p", "color": "bt709", "audio-codec": "opus", "audio-bit-rate": "96k",
    "loudness": -16.0, "fragmented": True,
}  # fmt: skip


def test_options_make_the_spec_that_the_request_makes():
    options = {one.name: TEXTS.get(one.option.removeprefix("--")) for one in option_fields()}
    assert sum(value is not None for value in options.values()) == len(TEXTS)
    spec = spec_of_options(FileKind("mp4"), options)
    assert spec_of(spec.as_request()) == spec
    assert (spec.width, spec.height, spec.duration_ms, spec.from_ms) == (64, 32, 62_000, 1000)
    assert spec.film == Film(
        codec="av1", crf=30, preset="8", gop=12, pixel_format="yuv420p", color="bt709",
        audio="opus", audio_bit_rate=96_000, loudness=-16.0, fragmented=True,
    )  # fmt: skip


def test_what_a_still_does_not_have_is_refused_by_its_option():
    for one in option_fields():
        text = TEXTS.get(one.option.removeprefix("--"))
        is_of_films = one.of == "film" or one.name not in {
            **declared_fields(RenderSpec), **declared_fields(Still)
        }  # fmt: skip
        if is_of_films and text is not None:
            with pytest.raises(typer.BadParameter, match=f"{one.option} does not apply"):
                spec_of_options(FileKind("png"), {one.name: text})


def test_the_console_offers_every_container():
    form = resources.files("fragdex.service.console").joinpath("new_render.js").read_text("utf-8")
    lines = re.search(r"const STILLS = .*?};", form, re.DOTALL)[0]
    assert set(re.findall(r'"([a-z0-9-]+)"', lines)) == set(CONTAINERS)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"video": "h264"}, "add 'avi' to the containers of 'h264' in VIDEO_CODECS"),
        ({"video": "divx"}, "divx is its usual video codec"),
        ({}, "a film needs its usual video codec"),
        ({"group": "sound"}, "a sound needs its usual audio codec"),
        ({"group": "sound", "audio": "mp3"}, "add 'avi' to the containers of 'mp3'"),
        ({"group": "animation", "settings": ("glitter",)}, "there is no setting 'glitter'"),
        ({"group": "animation", "suffixes": (".gif",)}, r"container avi: \.gif is that of gif"),
    ],
)
def test_a_container_without_what_it_needs_is_a_sentence_at_start_up(
    monkeypatch, changes, sentence
):
    plain = {"group": "film", "media_type": "video/avi", "schema": "Avi", "about": "An AVI."}
    tables = {**CONTAINERS, "avi": Container(**{**plain, **changes})}
    monkeypatch.setattr(outputs, "CONTAINERS", tables)
    with pytest.raises(ValueError, match=sentence):
        outputs.validate_containers()


def test_a_codec_of_a_container_that_is_not_there_is_named(monkeypatch):
    tables = {**AUDIO_CODECS, "mp2": ("mp2", ("mpeg",))}
    monkeypatch.setattr(outputs, "AUDIO_CODECS", tables)
    with pytest.raises(ValueError, match="codec mp2: there is no container 'mpeg'"):
        outputs.validate_containers()
