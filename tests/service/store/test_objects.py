"""What only an object store does: parts, requests that fail, settings of its own."""

import pytest
from obstore.store import S3Store

from fragdex import ByteRange
from fragdex.errors import ConfigError, Unavailable
from fragdex.service.store import objects, open_store
from fragdex.service.store.objects import PART_BYTES, ObjectStore
from service.store.conformance import CONTENT

pytestmark = pytest.mark.large


@pytest.fixture(scope="module")
def large():
    """Bytes of more than two parts."""
    return CONTENT * (2 * PART_BYTES // len(CONTENT) + 2)


@pytest.fixture
def s3(s3_url):
    return open_store(s3_url)


def client_of(address):
    import boto3

    return boto3.client(
        "s3",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )


def whole(store, key):
    return b"".join(store.read(key, ByteRange(0, store.size(key))))


def test_objects_in_parts(s3, large):
    s3.write("large", [large[:5], large[5:]])
    assert whole(s3, "large") == large
    exact = large[:PART_BYTES]
    s3.write("exact", [exact])
    assert whole(s3, "exact") == exact


def test_drafts_in_parts(s3, large):
    draft = s3.draft("d")
    for at in range(0, len(large), 1_000_000):
        draft.append(at, large[at : at + 1_000_000])
    # what makes a piece is durable before anyone asks
    assert s3.draft("d").size() >= PART_BYTES
    assert draft.sync() == len(large)
    draft.finish("large")
    assert whole(s3, "large") == large


def test_nothing_is_left_of_parts_that_broke_off(s3, large, s3_url, s3_environment):
    class Broken(Exception):
        pass

    def pieces():
        yield large
        raise Broken

    with pytest.raises(Broken):
        s3.write("large", pieces())
    bucket = s3_url.split("/")[2]
    left = client_of(s3_environment).list_multipart_uploads(Bucket=bucket)
    assert "Uploads" not in left
    assert list(s3.keys()) == []


def test_everything_lies_below_the_prefix(s3, s3_url, s3_environment):
    s3.write("k", [b"x"])
    draft = s3.draft("d")
    draft.append(0, b"x")
    draft.sync()
    bucket = s3_url.split("/")[2]
    stored_objects = client_of(s3_environment).list_objects_v2(Bucket=bucket)["Contents"]
    assert [one["Key"] for one in stored_objects] == [
        f"a/prefix/drafts/d/{0:020d}",
        "a/prefix/objects/k",
    ]


def test_settings_go_before_the_environment(s3_url, s3_server, monkeypatch):
    for name in ("AWS_ENDPOINT", "AWS_ALLOW_HTTP", "AWS_ACCESS_KEY_ID", "AWS_REGION"):
        monkeypatch.delenv(name)
    options = {
        "endpoint": s3_server,
        "region": "us-east-1",
        "access_key_id": "testing",
        "secret_access_key": "testing",
    }
    open_store(s3_url, options).check()
    with pytest.raises(ConfigError) as refused:
        open_store(s3_url, {"no_such_option": "secret"})
    assert "secret" not in str(refused.value)


def test_a_store_that_does_not_answer(unused_address, large):
    bucket = S3Store(
        "bucket",
        endpoint=unused_address,
        region="us-east-1",
        skip_signature=True,
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )
    store = ObjectStore(bucket)
    draft = store.draft("d")
    for call in (
        lambda: store.size("a"),
        lambda: list(store.read("a", ByteRange(0, 1))),
        lambda: store.write("a", [b"x"]),
        lambda: store.write("a", [large]),
        lambda: store.delete("a"),
        lambda: list(store.keys()),
        lambda: list(store.drafts()),
        lambda: draft.append(0, b"x"),
        store.check,
    ):
        with pytest.raises(Unavailable) as error:
            call()
        assert error.value.retry_after
        assert "127.0.0.1" not in str(error.value)


@pytest.fixture
def unused_address():
    import socket

    with socket.socket() as held:  # bound, and never listening
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def test_a_store_that_refuses(s3_environment):
    store = open_store("s3://no-such-bucket-anywhere/prefix")
    with pytest.raises(Unavailable):
        store.write("a", [b"x"])


def test_many_drafts_hold_little(monkeypatch):
    """Where many drafts wait at once, each puts smaller pieces."""
    monkeypatch.setattr(objects, "PIECE_OBJECT_BYTES", 1000)
    monkeypatch.setattr(objects, "LEAST_PIECE_OBJECT_BYTES", 100)
    monkeypatch.setattr(objects, "ALL_WAITING_BYTES", 2000)
    store = open_store("memory://")
    drafts = [store.draft(f"d{number}") for number in range(50)]
    for at in range(0, 900, 90):
        for draft in drafts:
            draft.append(at, CONTENT[at : at + 90])
        assert store.memory.size <= 2000 + 50 * 190
    for draft in drafts:
        assert draft.sync() == 900
        draft.finish(draft._folder.strip("/"))
    assert store.memory.size == 0
    assert whole(store, "drafts/d7") == CONTENT[:900]


def test_pieces_behind_a_gap_are_dropped():
    store = open_store("memory://")
    draft = store.draft("d")
    for at in (0, 10, 20):
        draft.append(at, b"0123456789")
        draft.sync()
    store.bucket.delete(f"drafts/d/{10:020d}")
    again = store.draft("d")
    assert again.size() == 10
    again.append(10, b"new")
    assert again.sync() == 13
    again.append(13, b"and more, past the old piece")
    again.sync()
    assert b"".join(map(bytes, again.read())) == b"0123456789newand more, past the old piece"
