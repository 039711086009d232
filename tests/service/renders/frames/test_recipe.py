"""A slice is found again exactly where the same pixels would be made."""

from dataclasses import replace
from fractions import Fraction

from fragdex.service.renders.films import Film
from fragdex.service.renders.plan import View, Wanted
from fragdex.service.renders.recipe import recipe
from fragdex.service.renders.stills import Still

VIEW = View(1280, 720, Fraction(30))
FILM = Wanted()


def test_everything_that_decides_pixels_is_in_the_recipe():
    others = [
        recipe(replace(VIEW, width=1282), range(60), FILM, "1"),
        recipe(replace(VIEW, height=722), range(60), FILM, "1"),
        recipe(replace(VIEW, fps=Fraction(30000, 1001)), range(60), FILM, "1"),
        recipe(replace(VIEW, transparent=True), range(60), FILM, "1"),
        recipe(replace(VIEW, scale=2.0), range(60), FILM, "1"),
        recipe(replace(VIEW, crop=(0, 0, 64, 64)), range(60), FILM, "1"),
        recipe(replace(VIEW, crop=(0, 2, 64, 64)), range(60), FILM, "1"),
        recipe(replace(VIEW, page_fps=2 * VIEW.fps), range(60), FILM, "1"),
        recipe(VIEW, range(1, 60), FILM, "1"),
        recipe(VIEW, range(61), FILM, "1"),
        recipe(VIEW, range(60), FILM, "2"),
        recipe(VIEW, range(1), Wanted(still=Still("png"), time_ms=0), "1"),
        recipe(VIEW, range(1), Wanted(still=Still("png"), time_ms=1), "1"),
        recipe(VIEW, range(1), Wanted(still=Still("webp"), time_ms=0), "1"),
        recipe(VIEW, range(1), Wanted(still=Still("webp", quality=81), time_ms=0), "1"),
        *(
            recipe(VIEW, range(60), Wanted(film=film), "1")
            for film in (
                Film(crf=20),
                Film(bit_rate=5000),
                Film(gop=5),
                Film(codec="hevc"),
                Film(codec="hevc", pixel_format="yuv444p"),
                Film("gif"),
                Film("wav"),
                Film(codec="hevc", pixel_format="yuv420p10le"),
                Film(codec="hevc", color="bt2020-pq"),
            )
        ),
        recipe(VIEW, range(60), FILM, "1"),
    ]
    assert len(set(others)) == len(others)
    assert recipe(replace(VIEW), range(60), FILM, "1") == others[-1]


def test_the_sound_and_the_container_decide_no_pixels():
    mine = recipe(VIEW, range(60), FILM, "1")
    for film in (Film("mkv", audio="pcm"), Film(sound=False), Film(faststart=True)):
        assert recipe(VIEW, range(60), Wanted(film=film), "1") == mine
