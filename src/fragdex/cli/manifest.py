"""`fragdex manifest`: a C2PA manifest next to a file."""

from __future__ import annotations

import base64
import re
import shlex
import subprocess
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fragdex.cli import options
from fragdex.cli.inputs import is_url
from fragdex.cli.output import emit, json_line, say
from fragdex.errors import FragdexError

# The library's own list would import more for every --help; a test holds the two equal.
ALGORITHMS: Final = ("ES256", "ES384", "ES512", "PS256", "EdDSA")
_COORDINATE: Final = {"ES256": 32, "ES384": 48, "ES512": 66}
"""Bytes of each of the two numbers of a signature (RFC 9053, 2.1)."""
_SIGNED: Final = ("--certificates", "--source-type")
_PEM: Final = re.compile(
    rb"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----"
)


def manifest(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The media file or URL.")],
    sign: Annotated[
        str | None,
        typer.Option(
            "--sign",
            metavar="COMMAND",
            help="Signs: is given the bytes on stdin, writes the signature to stdout.",
        ),
    ] = None,
    certificates: Annotated[
        str | None,
        typer.Option(
            "--certificates",
            metavar="PEM",
            help="The certificate of the key, and those that issued it up to the trust anchor.",
        ),
    ] = None,
    algorithm: Annotated[
        str, typer.Option("--algorithm", metavar="NAME", help=f"One of {', '.join(ALGORITHMS)}.")
    ] = "ES256",
    source_type: Annotated[
        str | None,
        typer.Option(
            "--source-type",
            metavar="URI",
            help="What the media is: a digital source type of IPTC's code list.",
        ),
    ] = None,
    output: Annotated[
        str | None, options.placed("Write there; - is stdout. Default: FILE with the suffix .c2pa.")
    ] = None,
    json: options.Json = False,
) -> int:
    """Make a C2PA manifest that proves the bytes of FILE; FILE stays as it is.

    The key stays with COMMAND; a signature in DER, as OpenSSL writes it, is converted. Without
    --sign, prints the content of the hash assertion as JSON (digests in base64), for another
    signer.

    Examples:
      fragdex manifest movie.mp4 > assertion.json
      fragdex manifest movie.mp4 --sign 'openssl dgst -sha256 -sign key.pem'
        --certificates chain.pem
        --source-type http://cv.iptc.org/newscodes/digitalsourcetype/digitalCapture
    """
    if algorithm not in ALGORITHMS:
        raise typer.BadParameter(f"--algorithm is one of {', '.join(ALGORITHMS)}: {algorithm}")
    if sign is None:
        if certificates is not None or source_type is not None:
            raise typer.BadParameter(f"{' and '.join(_SIGNED)} apply with --sign")
        emit([json_line(_plain(_assertion(file)))], output)
        return 0
    if certificates is None or source_type is None:
        raise typer.BadParameter(f"--sign needs {' and '.join(_SIGNED)}")
    from fragdex.muxing import c2pa

    command = shlex.split(sign)
    if not command:
        raise typer.BadParameter("--sign is a command")
    store = c2pa.manifest(
        _assertion(file),
        lambda data: cose_signature(_run(command, data), algorithm),
        _chain(Path(certificates).read_bytes(), certificates),
        algorithm=algorithm,
        source_type=source_type,
    )
    # of a URL in the current folder
    plain = Path(file) if not is_url(file) else Path(file.partition("?")[0]).name
    target = output or str(Path(plain).with_suffix(".c2pa"))
    emit([store], target)
    facts = {"file": file, "path": target, "algorithm": algorithm, "byte_size": len(store)}
    line = f"{target}: manifest of {file}, signed with {algorithm}\n"
    say(json_line(facts) if json else line, err=target == "-")
    return 0


def _assertion(file: str) -> dict[str, Any]:
    from fragdex.muxing.c2pa import hash_assertion

    return hash_assertion(file)


def _plain(value: Any) -> Any:
    """CBOR values as JSON."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _run(command: list[str], data: bytes) -> bytes:
    try:
        ended = subprocess.run(command, input=data, stdout=subprocess.PIPE, check=False)
    except OSError as error:
        raise FragdexError(f"--sign: {command[0]}: {error.strerror}") from error
    if ended.returncode or not ended.stdout:
        raise FragdexError(f"--sign: {command[0]} gave no signature (exit code {ended.returncode})")
    return ended.stdout


def _chain(pem: bytes, name: str) -> list[bytes]:
    certificates = [base64.b64decode(match[1]) for match in _PEM.finditer(pem)]
    if not certificates:
        raise FragdexError(f"{name} has no certificate", expected="PEM")
    return certificates


def cose_signature(signature: bytes, algorithm: str) -> bytes:
    """A signature in COSE's form: of ECDSA, r and s one after the other, of one length.

    Args:
        signature: in this form, or in DER (RFC 3279, 2.2.3).

    Raises:
        FragdexError: it is in neither form.
    """
    size = _COORDINATE.get(algorithm)
    if size is None or len(signature) == 2 * size:
        return signature
    numbers, at = [], 3 if signature[1:2] == b"\x81" else 2
    for _ in range(2):
        length = signature[at + 1] if signature[at : at + 1] == b"\2" else 0
        part = signature[at + 2 : at + 2 + length].lstrip(b"\0")
        numbers.append(part)
        at += 2 + length
    whole = signature[:1] == b"\x30" and at == len(signature)
    if not whole or any(len(part) > size for part in numbers):
        raise FragdexError(
            f"the signature is none of {algorithm}",
            expected=f"{2 * size} bytes, or DER",
            found=f"{len(signature)} bytes",
        )
    return b"".join(part.rjust(size, b"\0") for part in numbers)
