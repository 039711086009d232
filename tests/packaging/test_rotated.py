"""Lists of files that follow each other, composed of the lists of each."""

import re

import fragdex
from fragdex.packaging.rotated import FileLists, RotatedFile, RotatedPackage, gone
from fragdex.testing import movie


def test_closed_files_are_listed_one_after_the_other_and_a_deleted_one_is_a_gap():
    made = FileLists.of(fragdex.package(movie(3, tracks=2), segment_duration=1))
    files, first = [], {"v1": 7, "a1": 7}
    for number in range(3):
        start = number * 3_000_000
        file = RotatedFile(f"{number}.mp4", number, start, number, first, made.counts, 3_000_000)
        files.append(file)
        first = {name: first[name] + count for name, count in made.counts.items()}
    lists = {file.name: made.placed(file, 0) for file in files} | {"1.mp4": gone(files[1])}
    package = RotatedPackage(
        files, lambda one: lists[one.name], None, 2, None, 0, ended=True, changed=0
    )
    for name in ("v1", "a1"):
        text = package[f"{name}.m3u8"].read().decode()
        addresses = re.findall(r"^[^#\n].*", text, re.MULTILINE)
        count = made.counts[name]
        assert [one.partition("/")[0] for one in addresses] == [
            file.name for file in files for _ in range(count)
        ]
        assert text.count("#EXT-X-GAP") == count
        assert text.count("#EXT-X-DISCONTINUITY\n") == 2
        assert text.endswith("#EXT-X-ENDLIST\n")
        assert "MEDIA-SEQUENCE:7\n" in text
    assert package["manifest.mpd"].read().count(b"<BaseURL>") == 2
    assert package.progress("v1.m3u8") is None
