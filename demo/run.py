"""`./dev demo`: what fragdex does, shown on a real video, with the commands a user would type.

    ./dev demo                     makes a minute of video and works on it
    ./dev demo FILE                works on your own file
    ./dev demo --seconds 600       a longer film

Everything that is made lies in out/demo. Every command that is shown is really run, and the demo
ends with an exit code of its own if one of them fails.
"""

from __future__ import annotations

import argparse
import code
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import film
import media_service
import spoken
import title_card

import fragdex
from fragdex.testing import RangeServer

ROOT = Path(__file__).resolve().parent.parent
FIXTURE = ROOT / "fixtures" / "frag-default-base.mp4"
BOLD = sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def main() -> int:
    """Read the command line and tell the story."""
    parser = argparse.ArgumentParser(prog="./dev demo", description="Show what fragdex does.")
    parser.add_argument("file", nargs="?", type=Path, help="your own video (default: one is made)")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "demo", help="where results go")
    parser.add_argument("--seconds", type=int, default=60, help="length of the film (default: 60)")
    given = parser.parse_args()
    if given.seconds < 10:
        parser.error("--seconds: at least 10")
    if given.file is not None and not given.file.is_file():
        parser.error(f"{given.file} is no file")
    started = time.monotonic()
    folder = given.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    source = given.file.resolve() if given.file is not None else None
    # Short names in what is shown: commands run in the folder of the results.
    os.chdir(folder)
    try:
        story(source, given.seconds)
    except subprocess.CalledProcessError as error:
        print(f"\nThe command above failed with exit code {error.returncode}.", file=sys.stderr)
        return 1
    print(f"\nDone in {time.monotonic() - started:.0f} s. It all lies in {shown(folder)}:")
    for path in sorted(folder.iterdir()):
        if path.is_file():
            print(f"  {path.name:<16} {size_of(path):>15}  {MEANING.get(path.name, '')}")
    return 0


MEANING = {
    "movie.mp4": "the video",
    "movie.fidx": "its index",
    "clip.mp4": "a part of it, playable",
    "movie.png": "fragments, bit rate, key frames and interleaving",
    "movie.html": "the same for a browser, values under the pointer",
    "fragmented.mp4": "the video in fragments",
    "movie.m3u8": "an HLS playlist of its byte ranges",
    "seekable.mp4": "the video with its index inside",
    "speech.mp4": "four sentences, spoken by a machine",
    "speech.vtt": "captions of what was heard in it",
    "captioned.mp4": "the same film with a track of captions",
    "title.mp4": "the title card, rendered from title/index.html",
}


def story(source: Path | None, seconds: int) -> None:
    """All chapters, in order."""
    movie = Path("movie.mp4")
    numbered = chapter_video(source, movie, seconds)
    index = fragdex.index(movie)
    length = index.duration or 0.0
    moment, start, stop = chosen_times(length)

    chapter("Index it", "Box headers and moofs are read, media data are not.")
    command("index", "movie.mp4")
    command("info", "movie.fidx")

    chapter("Seek", "Which bytes does a player need to show that moment?")
    command("seek", "movie.fidx", moment)
    command("plan", "movie.fidx", moment)

    chapter("The same in Python", "And the proof: only those bytes are decoded.")
    session(moment)
    if numbered:
        check_first_picture(moment)

    chapter("Cut a clip", "It shows exactly this span, and nothing is encoded anew.")
    command("extract", "movie.mp4", start, stop, "-o", "clip.mp4")
    if numbered:
        check_clip(start, stop)

    chapter("Draw it")
    command("plot", "movie.mp4", "-o", "movie.png")
    command("plot", "movie.mp4", "-o", "movie.html")

    chapter("Hand it to a player", "The index becomes an HLS playlist of byte ranges.")
    fragmented, saved = "movie.mp4", "movie.fidx"
    if not has_fragments(index):
        print(
            "  Playlists need fragments, and your file has none: a fragmented copy is made first."
        )
        fragmented = saved = "fragmented.mp4"
        command("extract", "movie.mp4", "0", "end", "--fragmented", "-o", fragmented)
    command("index", saved, "--format", "hls", "-o", "movie.m3u8")
    print_start(Path("movie.m3u8"), 10)

    chapter("Over HTTP", "The index moves into the file; then two requests tell all fragments.")
    command("index", fragmented, "--embed", "-o", "seekable.mp4")
    over_http(moment)

    chapter("As a service", "The same over HTTP: upload, process, seek, fetch the bytes.")
    lacking = media_service.missing()
    if lacking is None:
        media_service.story(movie, moment, expect)
    else:
        print(f"  {lacking} is not installed (pip install 'fragdex[service]'): left out.")

    chapter("Render a page", "HTML becomes a film, frame by frame, its sound with it.")
    lacking = title_card.missing()
    if lacking is None:
        title_card.story(command, expect)
    else:
        print(f"  Left out: {lacking}.")

    chapter("Hear what is said", "Speech becomes words with times, and captions.")
    lacking = spoken.missing()
    if lacking is None:
        spoken.story(command, expect)
    else:
        print(f"  {lacking} is not installed (pip install 'fragdex[speech]'): this is left out.")

    chapter("Trust, but verify")
    command("verify", "movie.mp4", "movie.fidx")
    command("md5", "movie.mp4", "clip.mp4")


def chapter_video(source: Path | None, movie: Path, seconds: int) -> bool:
    """Put the video in place; True where its pictures carry numbers."""
    if source is not None:
        chapter("A video", f"Your own file: {source}")
        if source != movie.resolve():
            shutil.copyfile(source, movie)
        return False
    chapter(
        "A video", f"{seconds} s, {film.WIDTH}×{film.HEIGHT}, every picture carries its number."
    )
    began = time.monotonic()
    try:
        film.make(movie, seconds)
    except ImportError:
        print(f"  PyAV is not installed (pip install 'fragdex[media]'): {FIXTURE.name} is taken.")
        shutil.copyfile(FIXTURE, movie)
        return False
    print(f"  movie.mp4: {size_of(movie)}, encoded in {time.monotonic() - began:.1f} s")
    return True


def has_fragments(index: fragdex.Index) -> bool:
    """Whether it has movie fragments, not only sample tables."""
    virtual = fragdex.tables.FragmentFlags.VIRTUAL
    return any((track.fragments.flags & virtual == 0).any() for track in index.tracks)


def chosen_times(length: float) -> tuple[str, str, str]:
    """A moment in the later part, and a span of ten seconds, or a part of what is short."""
    moment = length * 0.71
    start = length / 3
    stop = min(start + 10, length * 0.9)
    return f"{moment:.2f}", f"{start:.1f}", f"{stop:.1f}"


def chapter(title: str, text: str = "") -> None:
    """A heading, and a sentence."""
    chapter.number += 1  # type: ignore[attr-defined]
    heading = f"{chapter.number}. {title}"  # type: ignore[attr-defined]
    print(f"\n\033[1m{heading}\033[0m" if BOLD else f"\n{heading}")
    if text:
        print(f"  {text}")


chapter.number = 0  # type: ignore[attr-defined]


def command(*arguments: str) -> None:
    """Show a command, run it, and show what it says."""
    line = " ".join(("$ fragdex", *arguments))
    print(f"\n  \033[1m{line}\033[0m" if BOLD else f"\n  {line}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "fragdex", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    for text in done.stdout.splitlines():
        print(f"  {text}", flush=True)
    done.check_returncode()


class Session(code.InteractiveConsole):
    """Lines of Python as they look when typed, and what they give."""

    def say(self, line: str) -> None:
        """Show a line, and run it."""
        print(f"  >>> {line}")
        self.push(line)

    def runcode(self, code: object) -> None:
        """Run it here, so that an error ends the demo."""
        hook, sys.displayhook = sys.displayhook, show_value
        try:
            exec(code, self.locals)  # type: ignore[arg-type]
        finally:
            sys.displayhook = hook


def show_value(value: object) -> None:
    """What a prompt shows of a value, indented like the commands."""
    if value is not None:
        print("\n".join(f"  {line}" for line in repr(value).splitlines()))


def session(moment: str) -> None:
    """The face of the library, at a prompt."""
    prompt = Session()
    print()
    prompt.say("import fragdex")
    prompt.say('index = fragdex.open_index("movie.fidx")')
    prompt.say(f"hit = index.tracks[0].seek({moment})")
    prompt.say("hit.range, hit.time.seconds")
    prompt.say(f"index.span({moment}, {float(moment) + 0.1:.2f}, tracks=[hit.track])")


def check_first_picture(moment: str) -> None:
    """Decode only the init segment and the range of a hit, and say which picture comes first."""
    index = fragdex.open_index("movie.fidx")
    track = next(track for track in index.tracks if track.kind == "video")
    hit = track.seek(float(moment))
    with fragdex.open_source("movie.mp4") as source:
        wanted = (*index.periods[0].init, hit.range)
        part = b"".join(source.read(byte_range) for byte_range in wanted)
    Path("part.mp4").write_bytes(part)
    numbers = film.numbers_of(Path("part.mp4"))
    Path("part.mp4").unlink()
    print(f"\n  {len(part):,} bytes, decoded: pictures {numbers[0]} to {numbers[-1]}.")
    first, asked = round(hit.time.fraction * film.FPS), int(float(moment) * film.FPS)
    expect(numbers[0] == first, f"picture {first} at the start of the range")
    expect(asked in numbers, f"picture {asked}, the one at {moment} s, among them")


def check_clip(start: str, stop: str) -> None:
    """The clip begins at a key frame and holds every picture that was asked for."""
    numbers = film.numbers_of(Path("clip.mp4"))
    first, last = int(float(start) * film.FPS), int(float(stop) * film.FPS)
    print(f"\n  Decoded: pictures {numbers[0]} to {numbers[-1]}.")
    expect(numbers == list(range(numbers[0], numbers[-1] + 1)), "no picture missing or twice")
    expect(numbers[0] <= first and last - 1 <= numbers[-1], f"pictures {first} to {last - 1}")


def expect(true: bool, what: str) -> None:
    """Say that what was claimed is so, or stop."""
    if not true:
        raise SystemExit(f"  NOT as claimed: {what}")
    print(f"  ✓ {what}")


def print_start(path: Path, count: int) -> None:
    """The first lines of a text file."""
    lines = path.read_text("utf-8").splitlines()
    for line in lines[:count]:
        print(f"  {line}")
    if len(lines) > count:
        print(f"  … and so on, {len(lines)} lines")


def over_http(moment: str) -> None:
    """Seek in a file on a web server; the server counts what it is asked for."""
    content = Path("seekable.mp4").read_bytes()
    with RangeServer({"/seekable.mp4": content}) as server:
        command("seek", server.at("/seekable.mp4"), moment, "--max-requests", "2")
        asked = [request for request in server.requests if request.method == "GET"]
        sent = sum(request.sent for request in asked)
    part = 100 * sent / len(content)
    print(f"  The server was asked {len(asked)} times and sent {sent:,} bytes: {part:.1f} %.")


def size_of(path: Path) -> str:
    """A size in bytes."""
    return f"{path.stat().st_size:,} bytes"


def shown(path: Path) -> str:
    """A path as short as it can be said from the checkout."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


if __name__ == "__main__":
    sys.exit(main())
