"""The options of `fragdex render`: the page, the film, its sound."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "Allow",
    "AllowIncomplete",
    "Animated",
    "At",
    "AudioBitRate",
    "AudioCodec",
    "BitRate",
    "Codec",
    "Color",
    "Crf",
    "Crop",
    "Data",
    "Duration",
    "Fps",
    "Fragmented",
    "Gop",
    "Jobs",
    "Key",
    "Loudness",
    "NoSound",
    "PageFps",
    "PixelFormat",
    "Preset",
    "Quality",
    "Scale",
    "Server",
    "Size",
    "Slices",
    "Start",
    "Stop",
    "Transparent",
]

Size = Annotated[
    str | None,
    typer.Option(
        "--size",
        metavar="WxH",
        help="Of the page's window, in pixels.",
        show_default="what the page says, or 1280x720",
    ),
]
Scale = Annotated[
    str,
    typer.Option(
        "--scale",
        metavar="N",
        help="Pixels for each pixel of the page: 2 draws 1280x720 as 2560x1440.",
    ),
]
Fps = Annotated[
    str,
    typer.Option("--fps", metavar="RATE", help="Frames a second: 30, 29.97, 30000/1001."),
]
PageFps = Annotated[
    str | None,
    typer.Option(
        "--page-fps",
        metavar="RATE",
        help="Call the page so often a second: a multiple of --fps, if it counts frames.",
        show_default="as --fps",
    ),
]
Duration = Annotated[
    str | None,
    typer.Option(
        "--duration",
        metavar="TIME",
        help="Duration: seconds, or 1:02.5.",
        show_default="the page's longest animation or media",
    ),
]
Crop = Annotated[
    str | None,
    typer.Option(
        "--crop",
        metavar="X,Y,W,H",
        help="Keep only this of the page's window, in its pixels.",
        show_default=False,
    ),
]
Start = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help="Begin there in the film.", show_default="0"),
]
Stop = Annotated[
    str | None,
    typer.Option("--to", metavar="TIME", help="End there.", show_default="the film's end"),
]
At = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help="The time of a still.", show_default="0"),
]
Quality = Annotated[
    int | None,
    typer.Option(
        "--quality",
        min=1,
        max=100,
        metavar="N",
        help="Quality of .jpeg and .webp.",
        show_default="80",
    ),
]
Transparent = Annotated[
    bool,
    typer.Option(
        "--transparent",
        help="Leave unpainted parts transparent: stills, .gif, VP9, ProRes, FFV1.",
    ),
]
Codec = Annotated[
    str | None,
    typer.Option(
        "--codec",
        metavar="NAME",
        help="Of a film: h264, hevc, av1, vp9, prores, ffv1.",
        show_default="h264; in .webm vp9",
    ),
]
Crf = Annotated[
    int | None,
    typer.Option(
        "--crf",
        metavar="N",
        help="Constant quality, lower is better; the codec has its own scale.",
        show_default="h264: 18, hevc: 20, vp9: 20, av1: 24",
    ),
]
BitRate = Annotated[
    str | None,
    typer.Option(
        "--bit-rate",
        metavar="RATE",
        help="Bits a second of the pictures instead: 800k, 5M.",
        show_default=False,
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        metavar="NAME",
        help="Of the encoder: fast or small; of ProRes its profile.",
        show_default="h264, hevc: veryfast, av1: 8, vp9: 4, prores: hq",
    ),
]
PixelFormat = Annotated[
    str | None,
    typer.Option(
        "--pixel-format",
        metavar="NAME",
        help="Such as yuv444p, yuv420p10le.",
        show_default="yuv420p; what the codec is for",
    ),
]
Color = Annotated[
    str | None,
    typer.Option(
        "--color",
        metavar="NAME",
        help="Of the pictures: bt709, or bt2020-pq for HDR with hevc, av1, prores.",
        show_default="bt709",
    ),
]
Gop = Annotated[
    int | None,
    typer.Option(
        "--gop",
        metavar="FRAMES",
        help="Frames from one key frame to the next.",
        show_default="2 s of them",
    ),
]
AudioCodec = Annotated[
    str | None,
    typer.Option(
        "--audio-codec",
        metavar="NAME",
        help="Of the sound: aac, opus, mp3, flac, pcm.",
        show_default="aac; in .webm opus",
    ),
]
AudioBitRate = Annotated[
    str | None,
    typer.Option("--audio-bit-rate", metavar="RATE", help="Bits a second.", show_default="192k"),
]
Loudness = Annotated[
    float | None,
    typer.Option(
        "--loudness",
        metavar="LUFS",
        help="Bring the sound to this loudness, such as -23 or -14, by one gain.",
        show_default=False,
    ),
]
NoSound = Annotated[bool, typer.Option("--no-sound", help="Leave the sound out.")]
Fragmented = Annotated[
    bool,
    typer.Option("--fragmented", help="In movie fragments (.mp4), not one moov in front."),
]
Animated = Annotated[bool, typer.Option("--animated", help="Make a .webp that moves, not a still.")]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="FILE",
        help="Data for the page, as window.fragdex.data: .json, or .csv for a film a row.",
        show_default=False,
    ),
]
Slices = Annotated[
    int | None,
    typer.Option(
        "--slices",
        min=1,
        metavar="N",
        help="Divide the frames into N parts.",
        show_default="as many as jobs",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        metavar="N",
        help="Browsers at the same time.",
        show_default="one per processor, if there is enough work",
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="HOST",
        show_default=False,
        help="The page may read from this host by https; may be repeated.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        envvar="FRAGDEX_KEY",
        show_default=False,
        help="API key for the host of the URL, or for --server.",
    ),
]
AllowIncomplete = Annotated[
    bool,
    typer.Option(
        "--allow-incomplete",
        help="Exit with 0 though a script of the page failed, was blocked or is missing.",
    ),
]
Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="Send PAGE to this service, and have it rendered there.",
        show_default="here",
    ),
]
