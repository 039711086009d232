"""All commands put together, and every way a run can end."""

from __future__ import annotations

import errno
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from fragdex.cli.output import complain, exit_code, system_message
from fragdex.errors import FragdexError


class Command(NamedTuple):
    """A command: the module and the name of its function, and its line in the list of commands."""

    module: str
    name: str
    line: str

    @property
    def function(self) -> Callable[..., int]:
        """What runs it; its module is imported, with the options that it declares."""
        function: Callable[..., int] = getattr(import_module(self.module), self.name)
        return function

    def add(self, app: typer.Typer, word: str, *, named_only: bool) -> None:
        """Add it to an application under a word.

        Args:
            named_only: without options and arguments, which only a call or its own help need.
        """
        function: Callable[..., int] = _nothing if named_only else self.function
        if function.__name__ == "render":
            from fragdex.cli.render_fields import declare_options

            declare_options(function)
        app.command(word, cls=_Command, help=_help_of(function), short_help=self.line)(function)


class _Command(TyperCommand):
    """A command whose usage has its arguments as manuals have them: FILE... TIME [INDEX...].

    Times after any number of files are among them, though options can stand for them: the parser
    leaves those to `options.split_times`.
    """

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = [self.options_metavar or ""]
        arguments = [one for one in self.get_params(ctx) if one.param_type_name == "argument"]
        timed = any(one.nargs == -1 for one in arguments[:-1])
        for one in arguments:
            word = (one.metavar or one.name or "").strip("[]") + "..." * (one.nargs != 1)
            pieces.append(word if one.required or timed else f"[{word}]")
        return pieces


class _Commands(TyperGroup):
    """The commands of `fragdex --help`, by what they are for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        wide = max(map(len, self.commands))
        for title, words in SECTIONS.items():
            lines = [
                (word.ljust(wide), self.commands[word].get_short_help_str(formatter.width))
                for word in words
                if word in self.commands
            ]
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)


def _nothing() -> int:
    """Stand for a command in a list of them."""
    return 0


def _of(module: str, **lines: str) -> dict[str, Command]:
    """Commands by their words, which are the names of functions of a module, too."""
    return {word: Command(f"fragdex.cli.{module}", word, line) for word, line in lines.items()}


def _admin(name: str, line: str) -> Command:
    return Command("fragdex.cli.admin", name, line)


COMMANDS: dict[str, Command] = {
    **_of("index", index="Write the index of files, in any form."),
    **_of(
        "seek",
        seek="Find the bytes for a moment.",
        plan="Show what a seek would read, and why.",
    ),
    **_of(
        "info",
        info="Show tracks, codecs, times and findings.",
        dump="Print the tree of boxes.",
    ),
    **_of(
        "verify",
        md5="Print or check md5 digests, as md5sum does.",
        verify="Check an index against its file.",
    ),
    **_of("manifest", manifest="Make a C2PA manifest that proves the bytes of a file."),
    **_of("plot", plot="Plot fragments, bit rate, key frames and interleaving."),
    **_of("view", extract="Cut out a playable clip without re-encoding."),
    **_of("remove", remove="Take spans out of a file: no sample of them is left."),
    **_of("serve", origin="Serve a folder or bucket of MP4s as HLS, DASH and clips."),
    **_of("agents", mcp="Let agents look at videos and listen to them."),
    **_of(
        "view",
        view="Write a file in fragments, as a clip, or with its moov first.",
        package="Write HLS and DASH of one or several files.",
    ),
    **_of("repair", repair="Repair a file whose index is lost or wrong."),
    **_of(
        "pictures_and_sound",
        thumbnail="Make a picture at a time.",
        storyboard="Make sheets of small pictures for a player's timeline.",
        peaks="Write the waveform of a track, as players draw it.",
        loudness="Measure how loud a track is (EBU R 128).",
    ),
    **_of("render", render="Render a web page to a video or a picture, frame by frame."),
    **_of("verify", compare="Find the frames and samples in which two files differ."),
    **_of("transcribe", transcribe="Turn speech into words with times, and captions."),
    **_of(
        "remote",
        push="Send files to a service.",
        status="Show what a service has, and the progress of its work.",
        pull="Download files, videos and captions from a service.",
    ),
}
"""Each command; a module is imported when its command is called, since some are large."""

SERVICE_COMMANDS: dict[str, Command] = {
    **_of(
        "serve",
        serve="Serve media over HTTP, in one process.",
        worker="Run the service's jobs in another process.",
        config="Show the service's settings, and where each comes from.",
    ),
    **_of("doctor", doctor="Check which parts work on this machine, and how to get the others."),
}
SERVICE_GROUPS: dict[str, tuple[str, dict[str, Command]]] = {
    "key": (
        "Create, list, rotate and revoke API keys.",
        {
            "create": _admin("create_key", "Create a key; it is printed once."),
            "list": _admin("list_keys", "List keys, without their secrets."),
            "rotate": _admin("rotate_key", "Replace the secret of a key; it is printed once."),
            "revoke": _admin("revoke_key", "Revoke a key."),
        },
    ),
    "webhook": (
        "Receive webhooks, to try them.",
        _of("remote", listen="Show deliveries as they arrive, and check their signatures."),
    ),
    "tenant": (
        "List tenants, set their limits, delete one.",
        {
            "list": _admin("list_tenants", "List the tenants, and what they store."),
            "limits": _admin("tenant_limits", "Show and set the limits of a tenant."),
            "delete": _admin("delete_tenant", "Delete a tenant and all its data."),
        },
    ),
    "db": (
        "Migrate the database, check the store against it.",
        {
            "upgrade": _admin("upgrade_database", "Migrate the database to this version."),
            "check": _admin("check_store", "Check that the store has what the database names."),
        },
    ),
}
"""The commands of the service, which docs/operations.md explains."""

SECTIONS: Final[dict[str, tuple[str, ...]]] = {
    "Indexes": ("index", "seek", "plan", "info", "dump", "plot", "verify", "md5", "manifest"),
    "Files": ("extract", "remove", "view", "package", "origin", "mcp", "repair", "compare"),
    "Pictures, sound, speech and pages": (
        "thumbnail", "storyboard", "peaks", "loudness", "transcribe", "render",
    ),
    "A service": (
        "serve", "worker", "config", "key", "tenant", "db", "webhook", "push", "status", "pull",
    ),
    "This machine": ("doctor",),
}  # fmt: skip
"""The commands in the list of all of them."""


OTHER_WORDS: Final[dict[str, str]] = {
    "agents": "mcp",
    "clip": "extract",
    "concat": "view",
    "convert": "view",
    "cut": "extract or remove",
    "dash": "package",
    "fix": "repair",
    "forget": "remove",
    "frame": "thumbnail",
    "frames": "thumbnail or storyboard",
    "hash": "md5",
    "hls": "package",
    "probe": "info",
    "remux": "view",
    "show": "info",
    "split": "extract",
    "trim": "extract",
    "waveform": "peaks",
}
"""What people type who know other tools, and the commands that do it."""


def _help_of(function: Callable[..., object]) -> str:
    """A docstring as help text: a backspace keeps the lines of the examples apart."""
    return inspect.cleandoc(function.__doc__ or "").replace("Examples:", "\b\nExamples:")


# typer has its own copy of click since 0.20, and uses click itself before that.
CLICK_ERROR: type[Exception] = typer.BadParameter.__mro__[2]

INTERRUPTED, READER_GONE = 130, 141  # as shells count: 128 + SIGINT, 128 + SIGPIPE


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"fragdex {version('fragdex')}")
        raise typer.Exit


def fragdex(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Find the bytes of any moment of an MP4 without reading the media.

    Exit codes: 0 success; 1 a failed check, or a fault; 2 bad usage or bad input; 3 a render of a
    page whose script failed, was blocked or is missing, or in which `--dry-run` found something.

    Examples:
      fragdex index movie.mp4              write movie.fidx
      fragdex seek movie.fidx 1:02:03.5    which bytes to read for that moment
      fragdex extract movie.mp4 60 90 -o clip.mp4
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


def app_of(first: str = "", *, named_only: bool = False) -> typer.Typer:
    """The command line.

    Args:
        first: the first word after the program's name; where it is a command or a group of them,
            nothing else is made: typer takes longer over all of them than most commands run.
        named_only: make commands without their options, for a list of them.
    """
    commands = COMMANDS | SERVICE_COMMANDS
    whole = first not in commands and first not in SERVICE_GROUPS
    # Rich help would be half of the start-up time; progress bars import it when they are drawn.
    app = typer.Typer(
        name="fragdex",
        cls=_Commands,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        # --install-completion and --show-completion, where no command is named
        add_completion=whole,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    named_only &= whole
    for word, command in commands.items():
        if whole or word == first:
            command.add(app, word, named_only=named_only)
    for name, (what, members) in SERVICE_GROUPS.items():
        if whole or name == first:
            group = typer.Typer(rich_markup_mode=None, help=what, short_help=what)
            for word, command in members.items():
                command.add(group, word, named_only=named_only)
            app.add_typer(group, name=name)
    app.callback(help=_help_of(fragdex), invoke_without_command=True)(fragdex)
    return app


def _lists(first: str) -> bool:
    """Whether no command can follow: help, the version, a word that is not a command."""
    return first != "--" and "_FRAGDEX_COMPLETE" not in os.environ


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; every error becomes one line on stderr and an exit code.

    FRAGDEX_TRACEBACK=1 in the environment shows where a fault came from.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    first = given[0] if given else ""
    command = typer.main.get_command(app_of(first, named_only=_lists(first)))
    try:
        result = command.main(args=given, prog_name="fragdex", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except SystemExit as leaving:
        # typer turns a broken pipe into exit code 1, which here means a check that failed
        if not isinstance(leaving.__context__, BrokenPipeError):
            raise
        return _reader_gone()
    except BrokenPipeError:
        return _reader_gone()
    except FragdexError as error:
        complain("; ".join([str(error), *getattr(error, "__notes__", ())]))
        return 2
    except CLICK_ERROR as error:
        message = error.format_message()  # type: ignore[attr-defined]
        text = " ".join(message.split()).removeprefix("Invalid value: ")
        if text.startswith("No such command") and first in OTHER_WORDS:
            text += f" Did you mean {OTHER_WORDS[first]}?"
        context = getattr(error, "ctx", None)
        if context is not None and text.startswith("Missing argument"):
            # Of several, the parser names one; the usage has all. Then what can stand for them.
            usage = " ".join(context.get_usage().split())
            _, also, other = text.partition("; ")
            text = usage.replace("Usage:", "an argument is missing:") + also + other
        complain(text)
        return 2
    except OSError as error:
        complain(_stdout_fails(error) or system_message(error))
        return exit_code(error)
    except Exception as error:  # noqa: BLE001 — the last line before the user: a fault is reported, too
        if os.environ.get("FRAGDEX_TRACEBACK"):
            traceback.print_exc()
        text = " ".join(str(error).split())
        complain(f"a fault in fragdex: {type(error).__name__}: {text} (FRAGDEX_TRACEBACK=1: where)")
        return 1


def _stdout_fails(error: OSError) -> str | None:
    """What to say where stdout takes no more, as on a full disk; None where it does."""
    try:
        sys.stdout.flush()
    except OSError:
        _silence_stdout()
    else:
        if error.filename is not None or error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            return None
    return f"the output cannot be written: {error.strerror}"


def _reader_gone() -> int:
    _silence_stdout()
    return READER_GONE


def _silence_stdout() -> None:
    """Keep the interpreter from flushing into what takes no more when it ends."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, sys.stdout.fileno())
    os.close(silence)
