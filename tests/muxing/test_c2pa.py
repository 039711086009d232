"""Manifests of C2PA, as the published library reads them.

The library lives in an environment of its own, which these tests alone need:
`python -m venv .venv-c2pa && .venv-c2pa/bin/pip install c2pa-python`.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fragdex.muxing.c2pa import cbor, hash_assertion, manifest
from fragdex.testing import movie

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-c2pa" / "bin" / "python"
CAPTURE = "http://cv.iptc.org/newscodes/digitalsourcetype/digitalCapture"
READ = """
import json, sys, c2pa
reader = c2pa.Reader("video/mp4", open(sys.argv[1], "rb"), open(sys.argv[2], "rb").read())
results = json.loads(reader.detailed_json())["validation_results"]["activeManifest"]
print(json.dumps({kind: [one["code"] for one in results[kind]] for kind in ("success", "failure")}))
"""

published = pytest.mark.skipif(
    not PYTHON.exists(), reason="c2pa-python is not installed in .venv-c2pa"
)


@pytest.fixture(scope="module")
def signer() -> tuple[Callable[[bytes], bytes], list[bytes]]:
    """A key of its own, and the certificates up to an anchor that nobody trusts."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    anchor, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    now = datetime.datetime.now(datetime.UTC)
    usage = dict.fromkeys(
        (
            *("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
            *("encipher_only", "decipher_only"),
        ),
        False,
    )

    def certified(name: str, public: Any, is_anchor: bool) -> bytes:
        def named(text: str) -> Any:
            oid = x509.NameOID
            parts = {oid.COUNTRY_NAME: "XX", oid.ORGANIZATION_NAME: "T", oid.COMMON_NAME: text}
            return x509.Name([x509.NameAttribute(*part) for part in parts.items()])

        signs = x509.KeyUsage(
            digital_signature=not is_anchor,
            key_cert_sign=is_anchor,
            crl_sign=is_anchor,
            **usage,
        )
        email = x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.EMAIL_PROTECTION])
        builder = (
            x509.CertificateBuilder(named("anchor"), named(name), public, 2 - is_anchor)
            .not_valid_before(now - datetime.timedelta(1))
            .not_valid_after(now + datetime.timedelta(1))
            .add_extension(x509.BasicConstraints(is_anchor, None), True)
            .add_extension(signs, True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(anchor.public_key()), False
            )
        )
        builder = builder if is_anchor else builder.add_extension(email, False)
        return builder.sign(anchor, hashes.SHA256()).public_bytes(serialization.Encoding.DER)

    def sign(data: bytes) -> bytes:
        numbers = decode_dss_signature(key.sign(data, ec.ECDSA(hashes.SHA256())))
        return b"".join(number.to_bytes(32, "big") for number in numbers)

    chain = [
        certified("signer", key.public_key(), False),
        certified("anchor", anchor.public_key(), True),
    ]
    return sign, chain


def read(media: bytes, store: bytes, folder: Path) -> dict[str, list[str]]:
    """What the published library says."""
    paths = [folder / "a.mp4", folder / "a.c2pa"]
    for path, data in zip(paths, (media, store), strict=True):
        path.write_bytes(data)
    command = [PYTHON, "-c", READ, *paths]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


FILMS = {
    "progressive": movie(9, fragmented=False),
    "fragmented": movie(4, tracks=2, mfra=True),
}


@published
@pytest.mark.parametrize("name", ["faststart", "moov-last", "frag-cmaf", "frag-default-base"])
def test_the_published_library_accepts_a_file_and_refuses_it_changed(name, signer, tmp_path):
    data = (ROOT / "fixtures" / f"{name}.mp4").read_bytes()
    store = manifest(hash_assertion(data), *signer, source_type=CAPTURE)
    report = read(data, store, tmp_path)
    assert "assertion.bmffHash.match" in report["success"]
    assert "claimSignature.validated" in report["success"]
    # Nobody trusts the anchor of a test.
    assert report["failure"] == ["signingCredential.untrusted"]
    for at in (len(data) // 3, len(data) // 2):
        changed = bytearray(data)
        changed[at] ^= 1
        assert "assertion.bmffHash.mismatch" in read(bytes(changed), store, tmp_path)["failure"]


@published
def test_a_claim_that_was_changed_is_refused(signer, tmp_path):
    data = FILMS["progressive"]
    store = manifest(hash_assertion(data), *signer, source_type=CAPTURE, generator="honest")
    assert (
        "claimSignature.mismatch"
        in read(data, store.replace(b"honest", b"forged"), tmp_path)["failure"]
    )


def test_blocks_are_those_of_the_media_data():
    data = bytearray(FILMS["progressive"])
    at = data.index(b"mdat") - 4
    media = bytes(3 << 20)
    data[at:] = (8 + len(media)).to_bytes(4, "big") + b"mdat" + media
    assertion = hash_assertion(bytes(data))
    (tree,) = assertion["merkle"]
    blocks = [media[8:][n : n + (1 << 20)] for n in range(0, len(media) - 8, 1 << 20)]
    assert tree["hashes"] == [hashlib.sha256(block).digest() for block in blocks]
    assert tree["count"] == 3
    # One digest of everything where fragments have an mdat each.
    assert "merkle" not in hash_assertion(FILMS["fragmented"])


def test_what_cannot_be_signed_is_refused():
    assertion = hash_assertion(FILMS["fragmented"])
    with pytest.raises(ValueError, match="no algorithm 'RS256': expected one of ES256"):
        manifest(assertion, bytes, [b"DER"], algorithm="RS256", source_type=CAPTURE)
    with pytest.raises(ValueError, match="needs its certificate"):
        manifest(assertion, bytes, [], source_type=CAPTURE)


def test_cbor_is_that_of_the_standard():
    """Examples of RFC 8949, appendix A."""
    for value, written in (
        (23, "17"),
        (24, "1818"),
        (1000, "1903e8"),
        (1000000, "1a000f4240"),
        (1000000000000, "1b000000e8d4a51000"),
        (-100, "3863"),
        ("ü", "62c3bc"),
        ([1, [2, 3]], "8201820203"),
        ({"a": 1, "b": [2, 3]}, "a26161016162820203"),
    ):
        assert cbor(value).hex() == written
