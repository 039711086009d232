"""A wrong argument is named in one sentence, with what was probably meant."""

import inspect

import pytest

import fragdex
from fragdex.errors import SourceError, TrackNotFound
from fragdex.formats import export
from fragdex.seeking.forms import FORMS
from fragdex.sources import SourceOptions, open_source
from fragdex.testing import movie

DATA = movie(fragments=3)
INDEX = fragdex.index(DATA)


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (
            lambda: fragdex.index(DATA, exactt=True),
            TypeError,
            "argument exactt; did you mean exact?",
        ),
        (
            lambda: fragdex.index(DATA, retrys=1),
            TypeError,
            "argument retrys; did you mean retries?",
        ),
        (lambda: fragdex.index(DATA, maxbytes=1), TypeError, "did you mean max_bytes?"),
        (lambda: fragdex.index(DATA, zzz=1), TypeError, "fragdex.index takes no argument zzz"),
        (lambda: fragdex.sources.md5(DATA, progres=print), TypeError, "did you mean progress?"),
        (
            lambda: fragdex.index(DATA, max_bytes="9"),
            TypeError,
            "max_bytes is a whole number or None",
        ),
        (lambda: fragdex.index(DATA, max_requests=-1), ValueError, "max_requests is 0 or more"),
        (lambda: fragdex.index(123), SourceError, "cannot read int; pass a path"),
        (lambda: fragdex.index(None), SourceError, "cannot read NoneType; pass a path"),
        (lambda: fragdex.index(["a.mp4"]), SourceError, "cannot read list; pass a path"),
        (lambda: fragdex.open_index(3), SourceError, "cannot read int; pass a path"),
        (lambda: INDEX.export("hsl"), ValueError, "no form 'hsl': .*; did you mean hls?"),
        (lambda: INDEX.export(3), ValueError, "no form 3"),
        (lambda: INDEX.export("hls", playlst="media"), TypeError, "did you mean playlist?"),
        (lambda: INDEX.export("hls", playlist="x"), ValueError, "no playlist 'x'"),
        (lambda: INDEX.span(0, 1, tracks=1), TypeError, r"write tracks=\[1\]"),
        (lambda: INDEX.plan(0, tracks="1"), TypeError, r"write tracks=\[1\]"),
        (lambda: INDEX.track("1"), ValueError, "its id or its kind, not by '1'"),
        (lambda: INDEX.track(7), TrackNotFound, "no track 7: expected one of 1"),
        (lambda: INDEX.span(2, 1), ValueError, r"ends \(1\) before it starts \(2\)"),
        (lambda: INDEX.track(1).seek("1:99"), ValueError, "'1:99' is not a time"),
        (
            lambda: INDEX.track(1).seek(None),
            TypeError,
            "a time is a number of seconds.*not NoneType",
        ),
    ],
)
def test_a_wrong_argument_is_named_in_one_sentence(call, kind, said):
    with pytest.raises(kind, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_index_and_md5_pass_on_every_option_of_open_source():
    own = list(inspect.signature(open_source).parameters)[1:]
    assert {*own} == {*SourceOptions.__annotations__, "max_bytes", "max_requests"}
    for name in SourceOptions.__annotations__:
        default = inspect.signature(open_source).parameters[name].default
        assert fragdex.index(DATA, **{name: default}) == INDEX
        assert fragdex.sources.md5(DATA, **{name: default}) == fragdex.sources.md5(DATA)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_names_an_option_that_it_does_not_have(form):
    with pytest.raises(TypeError, match=f"the form {form} takes no argument colour"):
        export(INDEX, form, colour="red")
