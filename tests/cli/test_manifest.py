"""`fragdex manifest`: what is written next to a file, and how a signature is converted."""

import base64
import json
import shutil
import subprocess
import sys

import pytest

from fragdex.cli import manifest
from fragdex.muxing import c2pa

KIND = "http://cv.iptc.org/newscodes/digitalsourcetype/digitalCapture"


def test_the_algorithms_are_those_of_the_library():
    assert tuple(c2pa.SIGNATURES) == manifest.ALGORITHMS


def test_without_a_key_the_content_of_the_assertion(call, files):
    ran = call("manifest", "progressive.mp4")
    assertion = c2pa.hash_assertion(files["progressive.mp4"])
    assert (ran.code, ran.err) == (0, "")
    answer = json.loads(ran.out)
    assert base64.b64decode(answer["hash"]) == assertion["hash"]
    assert base64.b64decode(answer["merkle"][0]["hashes"][0]) == assertion["merkle"][0]["hashes"][0]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is missing")
def test_a_manifest_signed_by_a_command(call, files, tmp_path):
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=a"]
    ways = ["openssl", "req", "-x509", *new, "-keyout", "key.pem", "-out", "chain.pem"]
    subprocess.run(ways, cwd=tmp_path, check=True, capture_output=True)
    sign = ["--sign", "openssl dgst -sha256 -sign key.pem"]
    more = ["--certificates", "chain.pem", "--source-type", KIND]
    ran = call("manifest", "a.mp4", *sign, *more)
    assert (ran.code, ran.out) == (0, "a.c2pa: manifest of a.mp4, signed with ES256\n"), ran.err
    store = (tmp_path / "a.c2pa").read_bytes()
    assert store[4:8] == b"jumb"
    lines = (tmp_path / "chain.pem").read_text().splitlines()[1:-1]
    assert base64.b64decode("".join(lines)) in store
    assert c2pa.hash_assertion(files["a.mp4"])["hash"] in store
    assert call("manifest", "a.mp4", *sign).code == 2
    failing = [sys.executable, "-c", "'raise SystemExit(3)'"]
    ran = call("manifest", "a.mp4", "--sign", " ".join(failing), *more)
    assert (ran.code, "exit code 3" in ran.err) == (2, True)


def test_ecdsa_in_der_is_converted():
    first, second = b"\1" * 32, b"\x80" + b"\2" * 31
    der = b"\x30\x45\2\x20" + first + b"\2\x21\0" + second
    assert manifest.cose_signature(der, "ES256") == first + second
    assert manifest.cose_signature(first + second, "ES256") == first + second
    assert manifest.cose_signature(b"anything", "PS256") == b"anything"
    for wrong in (b"", der[:-1], der + b"\0", b"\x30\x03\2\x01\5"):
        with pytest.raises(manifest.FragdexError, match="none of ES256"):
            manifest.cose_signature(wrong, "ES256")
