"""What a browser plays of files like ours, and the table of docs/browsers.md that says so.

`python tests/transcode/browsers.py` asks the Chromium of this machine and prints the table.
"""

import base64
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import fragdex
from fragdex.transcode.probe import opened, streams_of, survey
from fragdex.transcode.track_writers import Copier

NAMES = ("chromium-headless-shell", "chromium")

# One muted second is appended and played to its end. A media element without sound output still
# decodes.
PLAYED = """async ([type, bytes, kind]) => {
  const media = document.createElement(kind);
  const source = new MediaSource();
  const fault = new Promise(say => { media.onerror = () => say(media.error.message); });
  const patience = new Promise(say => setTimeout(() => say('it did not come to its end'), 20000));
  const over = (target, name) => new Promise(say => { target[name] = () => say(null); });
  media.muted = true;
  media.src = URL.createObjectURL(source);
  document.body.append(media);
  try {
    await over(source, 'onsourceopen');
    const buffer = source.addSourceBuffer(type);
    buffer.appendBuffer(Uint8Array.from(atob(bytes), one => one.charCodeAt(0)));
    await Promise.race([over(buffer, 'onupdateend'), fault]);
    if (media.error) return media.error.message;
    if (!buffer.buffered.length) return 'nothing of it was taken';
    source.endOfStream();
    const ended = over(media, 'onended');
    media.play().catch(() => {});
    const wrong = await Promise.race([ended, fault, patience]);
    if (wrong) return wrong;
    const decoded = kind === 'video' ? media.webkitDecodedFrameCount
                                     : media.webkitAudioDecodedByteCount;
    return decoded ? null : 'nothing of it was decoded';
  } catch (error) {
    return error.name;
  } finally {
    media.remove();
  }
}"""
FILE_PLAYED = """async bytes => {
  const media = document.createElement('video');
  const over = name => new Promise(say => { media[name] = () => say(null); });
  const fault = new Promise(say => { media.onerror = () => say(media.error.message); });
  const patience = new Promise(say => setTimeout(() => say('it did not come to its end'), 20000));
  const ended = over('onended');
  media.muted = true;
  const data = Uint8Array.from(atob(bytes), one => one.charCodeAt(0));
  media.src = URL.createObjectURL(new Blob([data], {type: 'video/mp4'}));
  document.body.append(media);
  try {
    media.play().catch(() => {});
    const wrong = await Promise.race([ended, fault, patience]);
    return [wrong, media.duration, media.webkitDecodedFrameCount];
  } finally {
    media.remove();
  }
}"""
SAID = "type => MediaSource.isTypeSupported(type)"


@dataclass(frozen=True)
class Codec:
    """A row of the table.

    `how` makes a second of it, `audio` or `video` being an encoder of FFmpeg's libraries; None:
    there is none here, and the browser is only asked for `string`. `specific` replaces the
    AudioSpecificConfig.
    """

    name: str
    how: dict | None
    copied: bool
    string: str | None = None
    form: str = "mkv"
    specific: bytes | None = None


def _x264(**more):
    return {"video": "libx264", "options": {"preset": "ultrafast"}, **more}


def _profile(name):
    return {"video": "libx264", "options": {"profile": name}}


# 24 kHz and 2 channels, and 24 kHz and 1 channel, announced with SBR, and with PS behind it: a
# decoder makes 48 kHz and 2 channels of both (ISO/IEC 14496-3, 1.6.5).
_SBR, _PS = bytes.fromhex("2b118800"), bytes.fromhex("eb098800")

CODECS = [
    Codec("H.264 Constrained Baseline", _profile("baseline"), True, form="mp4"),
    Codec("H.264 Main", _profile("main"), True, form="mp4"),
    Codec("H.264 High", _profile("high"), True, form="mp4"),
    Codec("H.264 High, full range", _x264(pix_fmt="yuvj420p"), True, form="mp4"),
    Codec("H.264 Extended", None, False, "avc1.58001E"),
    Codec("H.264 High 10", _x264(pix_fmt="yuv420p10le"), False, form="mp4"),
    Codec("H.264 High 4:2:2", _x264(pix_fmt="yuv422p"), False, form="mp4"),
    Codec("H.264 High 4:4:4", _x264(pix_fmt="yuv444p"), False, form="mp4"),
    Codec("HEVC Main", {"video": "libx265"}, False),
    Codec("HEVC Main 10", {"video": "libx265", "pix_fmt": "yuv420p10le"}, False),
    Codec("VP8", None, False, "vp08.00.10.08"),
    Codec("VP9 profile 0", {"video": "libvpx-vp9"}, True),
    Codec("VP9 profile 1, 4:4:4", {"video": "libvpx-vp9", "pix_fmt": "yuv444p"}, False),
    Codec("VP9 profile 2, 10 bits", None, True, "vp09.02.10.10"),
    Codec("AV1 Main", {"video": "libsvtav1", "options": {"preset": "10"}}, True),
    Codec(
        "AV1 Main, 10 bits",
        {"video": "libsvtav1", "options": {"preset": "10"}, "pix_fmt": "yuv420p10le"},
        True,
    ),
    Codec("MPEG-4 Visual", {"video": "mpeg4"}, False),
    Codec("MPEG-2 video", {"video": "mpeg2video"}, False),
    Codec("AAC LC", {"audio": "aac"}, True),
    Codec("AAC LC, 5.1", {"audio": "aac", "layout": "5.1"}, True),
    Codec("AAC LC, 7.1", {"audio": "aac", "layout": "7.1"}, True),
    Codec("AAC LC, 96 kHz", {"audio": "aac", "rate": 96000}, True),
    Codec("AAC LC, channels in a PCE", {"audio": "aac", "layout": "quad"}, False),
    Codec("HE-AAC", {"audio": "aac", "rate": 24000}, True, specific=_SBR),
    Codec("HE-AAC v2", {"audio": "aac", "rate": 24000, "layout": "mono"}, True, specific=_PS),
    Codec("AAC Main", None, False, "mp4a.40.1"),
    Codec("AAC LTP", None, False, "mp4a.40.4"),
    Codec("AAC ELD", None, False, "mp4a.40.39"),
    Codec("xHE-AAC", None, False, "mp4a.40.42"),
    Codec("MP3", {"audio": "libmp3lame"}, False),
    Codec("MP2", {"audio": "mp2"}, False),
    Codec("Opus", {"audio": "libopus"}, True),
    Codec("Opus, 5.1", {"audio": "libopus", "layout": "5.1"}, True),
    Codec("FLAC", {"audio": "flac"}, True),
    Codec("FLAC, 7.1", {"audio": "flac", "layout": "7.1"}, True),
    Codec("FLAC, 192 kHz", {"audio": "flac", "rate": 192000}, True),
    Codec("AC-3", {"audio": "ac3"}, False),
    Codec("E-AC-3", {"audio": "eac3"}, False),
    Codec("ALAC", {"audio": "alac"}, False),
    Codec("PCM", None, False, "ipcm"),
]


def fragmented(codec, source, path):
    """Packets of the one stream of a file as a track of ours, whether we would copy it or not."""
    with open(source, "rb") as file, opened(file) as container:
        (stream,) = streams_of(container)
        copier = Copier(path, 1, stream)
        if codec.specific is not None:
            copier.file.stream.codec_context.extradata = codec.specific
        for packet in container.demux(stream):
            if packet.size:
                copier.packet(packet)
        copier.close()
    return path


def reasons(source):
    """Why the one stream of a file is encoded anew; empty where it is copied."""
    with open(source, "rb") as file, opened(file) as container:
        (stream,) = survey(container).values()
    return stream.reasons


def file_played(page, data):
    """A file played to its end: what went wrong, its seconds, how many pictures were decoded."""
    return page.evaluate(FILE_PLAYED, base64.b64encode(data).decode())


def asked(page, path):
    """What the browser says of a track: its type, whether it says it plays it, why it does not."""
    (track,) = fragdex.index(path).tracks
    kind = f'{track.kind}/mp4; codecs="{track.codec}"'
    data = base64.b64encode(Path(path).read_bytes()).decode()
    return kind, page.evaluate(SAID, kind), page.evaluate(PLAYED, [kind, data, track.kind])


def said(page, codec):
    """What the browser says of a codec that nothing here encodes."""
    kind = "audio" if codec.string.startswith(("mp4a", "ipcm")) else "video"
    return page.evaluate(SAID, f'{kind}/mp4; codecs="{codec.string}"')


def row(codec, string, supported, played):
    """A row of the table; `played` is None for what was not appended."""
    words = {True: "yes", False: "no", None: "—"}
    cells = [codec.name, f"`{string}`", words[supported], words[played]]
    return f"| {' | '.join(cells)} | {'copied' if codec.copied else 'encoded'} |"


@contextmanager
def chromium():
    """The Chromium that the tests use; None where there is none."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("FRAGDEX_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        yield None
        return
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path)
        yield browser
        browser.close()


def table(page, make, folder):
    """The rows for every codec."""
    for codec in CODECS:
        if codec.how is None:
            yield row(codec, codec.string, said(page, codec), None)
            continue
        name = codec.name.replace(" ", "-").replace(":", "").replace(",", "")
        source = make(folder / f"{name}.{codec.form}", seconds=1, **codec.how)
        path = fragmented(codec, source, folder / f"{name}.track.mp4")
        kind, supported, wrong = asked(page, path)
        yield row(codec, kind.split('"')[1], supported, wrong is None)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from transcode.conftest import make

    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        print(f"Chromium {browser.version}")
        for line in table(browser.new_page(), make, Path(folder)):
            print(line, flush=True)
