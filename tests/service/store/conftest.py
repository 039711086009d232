"""Every store, as `store` (with `reopen`), and a real S3 server for whoever wants one."""

import secrets

import pytest

from fragdex.service.store import open_store
from fragdex.service.store.objects import ObjectStore

KINDS = ("disk", "memory", "local-objects", "s3")


@pytest.fixture(scope="session")
def s3_server():
    """The address of an S3 server on loopback (moto's)."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3_environment(s3_server, monkeypatch):
    """What the environment says of that server, as an operator would set it."""
    for name, value in {
        "AWS_ENDPOINT": s3_server,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
    }.items():
        monkeypatch.setenv(name, value)
    return s3_server


@pytest.fixture
def s3_url(s3_environment):
    """s3://bucket/prefix of a new bucket."""
    import boto3

    bucket = f"bucket-{secrets.token_hex(6)}"
    client = boto3.client(
        "s3",
        endpoint_url=s3_environment,
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )
    client.create_bucket(Bucket=bucket)
    return f"s3://{bucket}/a/prefix"


@pytest.fixture
def opener(request, tmp_path):
    """opener(kind): a function that opens the same store again, as another process would."""

    def choose(kind):
        if kind == "disk":
            return lambda: open_store(tmp_path / "store")
        if kind == "s3":
            url = request.getfixturevalue("s3_url")
            return lambda: open_store(url)
        from obstore.store import LocalStore, MemoryStore

        bucket = MemoryStore() if kind == "memory" else LocalStore(tmp_path)
        return lambda: ObjectStore(bucket)

    return choose


@pytest.fixture(params=KINDS)
def reopen(request, opener):
    return opener(request.param)


@pytest.fixture
def store(reopen):
    return reopen()
