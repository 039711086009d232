"""Languages of tracks: three letters for the box (8.4.2.3), the shortest tag for people."""

import string

from hypothesis import given
from hypothesis import strategies as st

from fragdex.fragments.track_info import language_tag, three_letters


@given(st.text(string.ascii_lowercase, min_size=3, max_size=3))
def test_a_code_survives_its_tag(code):
    """Two codes of one language (ger, deu) have one tag, which gives one of them."""
    tag = language_tag(code)
    again = three_letters(tag)
    assert language_tag(again) == tag
    assert again == code or len(tag) == 2


@given(st.none() | st.text())
def test_no_tag_breaks_either(tag):
    letters = three_letters(tag)
    assert letters is None or (len(letters) == 3 and letters.isascii() and letters.isalpha())
    assert (language_tag(tag) is None) == (tag is None)
