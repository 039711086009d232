"""The database: transactions, many writers at once, and what a caller is told when it fails."""

import contextlib
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext

from fragdex.errors import ConfigError, StoreFull, Unavailable
from fragdex.service.records import migrations, tables
from fragdex.service.records.database import Database, insert
from fragdex.service.records.identifiers import instant
from fragdex.service.records.migrations import VERSION_TABLE, known_versions, upgrade, version_of


def differences(database):
    """What sets the tables of a database apart from those that are declared."""
    with database.read() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "compare_server_default": True,
                "include_name": is_ours,
                "version_table": VERSION_TABLE,
            },
        )
        return list(compare_metadata(context, tables.metadata))


def is_ours(name, kind, parents):
    return kind != "table" or (name.startswith(tables.PREFIX) and name != VERSION_TABLE)


# what row_bytes works out is said to each database in its own words, and tested with the quotas
pytestmark = pytest.mark.filterwarnings("ignore:Computed default on .*row_bytes")


@pytest.fixture
def stepped_database(database_url):
    """A database whose tables were made step by step, as those of the first users were."""
    with contextlib.closing(Database(database_url)) as database:
        with database.write(remaking=True) as connection:
            migrations._step_to(connection, "head")
        yield database


def structure(database):
    """What makes the tables, by name: columns and what the database computes, and rules."""
    inspector = sa.inspect(database.engine)
    structures = {}
    for table in filter(is_ours_by_name, inspector.get_table_names()):
        columns = {
            one["name"]: (str(one["type"]), one["nullable"], one["default"], one.get("computed"))
            for one in inspector.get_columns(table)
        }
        rules = [
            inspector.get_pk_constraint(table),
            *inspector.get_foreign_keys(table),
            *inspector.get_unique_constraints(table),
            *map(with_text, inspector.get_indexes(table)),
        ]
        structures[table] = columns, sorted(map(repr, rules))
    return structures


def with_text(index):
    options = {name: str(value) for name, value in index["dialect_options"].items()}
    return index | {"dialect_options": options}


def is_ours_by_name(name):
    return name.startswith(tables.PREFIX)


def test_the_migrations_make_the_tables_that_are_declared(stepped_database):
    assert differences(stepped_database) == []
    assert version_of(stepped_database) == known_versions()[-1], "steps are named after versions"


def test_a_new_database_is_what_the_migrations_make(stepped_database, tmp_path, request):
    """It has its tables at once, without Alembic."""
    if stepped_database.dialect == "sqlite":
        url = f"sqlite:///{tmp_path / 'new.db'}"
    else:
        url = request.getfixturevalue("new_postgres")()
    with contextlib.closing(Database(url)) as new:
        upgrade(new)
        new_structure = structure(new)
        assert new_structure == structure(stepped_database)
        assert len(new_structure) > 25
        if new.dialect == "postgresql":
            unlogged = "SELECT relname FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r'"
            with new.read() as connection:
                assert connection.scalars(sa.text(unlogged)).all() == [tables.rates.name]


def test_differences_are_seen(database):
    with database.write() as connection:
        connection.execute(sa.text("DROP TABLE fragdex_replays"))
    assert [kind for kind, *_ in differences(database)] == ["add_table", "add_index", "add_index"]


def test_upgrading_twice_is_harmless(database):
    assert version_of(database) == known_versions()[-1]
    with database.write() as connection:
        connection.execute(tables.trash.insert().values(store_key="a", delete_after=instant()))
    upgrade(database)
    with database.read() as connection:
        assert connection.scalar(sa.select(tables.trash.c.store_key)) == "a"


def test_tables_of_others_are_left_alone(database):
    with database.write() as connection:
        connection.execute(sa.text("CREATE TABLE workflow_status (id integer)"))
    upgrade(database)
    assert differences(database) == []


def test_processes_that_start_together_upgrade_once(database_url):
    program = (
        "import sys\n"
        "from fragdex.service.records.database import Database\n"
        "from fragdex.service.records.migrations import upgrade\n"
        "sys.stdin.read(1)\n"
        "upgrade(Database(sys.argv[1]))\n"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", program, database_url], stdin=subprocess.PIPE)
        for _ in range(3)
    ]
    for process in started:
        process.communicate(b"x")
    assert [process.returncode for process in started] == [0, 0, 0]
    with contextlib.closing(Database(database_url)) as database:
        assert differences(database) == []


@pytest.mark.parametrize(
    ("version", "message", "advice"),
    [("9999", "newer version", "upgrade"), ("0004", "unreleased version", "new database")],
)
def test_a_database_of_another_version_is_refused(database, version, message, advice):
    with database.write() as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '{version}'"))
    assert version_of(database) != known_versions()[-1]
    with pytest.raises(ConfigError, match=message) as caught:
        upgrade(database)
    assert caught.value.found == version
    assert advice in caught.value.advice


def test_tables_made_anew_keep_the_rows_that_name_theirs(database):
    """SQLite can change little of a table: a step makes another one, and drops the old one."""
    with database.write() as connection:
        tenant = {"id": "t", "name": "t", "created_at": instant()}
        connection.execute(tables.tenants.insert().values(**tenant))
        key = {"id": "k", "tenant_id": "t", "secret_hash": b"", "created_at": instant()}
        connection.execute(tables.keys.insert().values(**key))
    with database.write(remaking=True) as connection:
        operations = Operations(MigrationContext.configure(connection))
        with operations.batch_alter_table("fragdex_tenants") as tenants:
            tenants.drop_constraint("uq_fragdex_tenants_name", type_="unique")
    with database.read() as connection:
        assert connection.scalar(sa.select(tables.keys.c.id)) == "k"


def test_what_raises_writes_nothing(database):
    with pytest.raises(ZeroDivisionError), database.write() as connection:  # noqa: PT012
        connection.execute(tables.trash.insert().values(store_key="a", delete_after=instant()))
        raise ZeroDivisionError
    with database.read() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(tables.trash)) == 0


def test_many_threads_that_read_and_then_write_lose_nothing(database):
    """A transaction that began by reading would fail at once where another has written since."""
    name, rounds, count = "counter", 15, 8
    with database.write() as connection:
        connection.execute(tables.secrets.insert().values(name=name, value=b"0"))
    failures = []

    def add():
        try:
            for _ in range(rounds):
                with database.write() as connection:
                    query = sa.select(tables.secrets.c.value).where(tables.secrets.c.name == name)
                    value = int(connection.scalar(query.with_for_update()))
                    changed = tables.secrets.update().where(tables.secrets.c.name == name)
                    connection.execute(changed.values(value=b"%d" % (value + 1)))
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=add) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with database.read() as connection:
        assert int(connection.scalar(sa.select(tables.secrets.c.value))) == rounds * count


def test_several_processes_write_at_once(database):
    program = (
        "import sys\n"
        "from datetime import UTC, datetime\n"
        "from fragdex.service.records import tables\n"
        "from fragdex.service.records.database import Database\n"
        "database = Database(sys.argv[1])\n"
        "for n in range(30):\n"
        "    with database.write() as connection:\n"
        "        row = dict(store_key=f'{sys.argv[2]}/{n}', delete_after=datetime.now(UTC))\n"
        "        connection.execute(tables.trash.insert().values(**row))\n"
    )
    url = database.url.render_as_string(hide_password=False)
    started = [subprocess.Popen([sys.executable, "-c", program, url, str(n)]) for n in range(3)]
    assert [process.wait() for process in started] == [0, 0, 0]
    with database.read() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(tables.trash)) == 90


def test_readers_do_not_wait_for_a_writer(database):
    with database.write() as writing:
        writing.execute(tables.trash.insert().values(store_key="a", delete_after=instant()))
        with database.read() as reading:
            assert reading.execute(sa.select(tables.trash)).all() == []


def test_the_clock_of_the_database_is_utc(database):
    with database.read() as connection:
        first, second = database.now(connection), database.now(connection)
    assert first <= second
    assert abs(first - datetime.now(UTC)) < timedelta(minutes=1)


def test_instants_come_back_as_they_went_in(database):
    when = datetime(2026, 3, 1, 12, 30, 15, 123456, UTC)
    with database.write() as connection:
        row = {"store_key": "a", "delete_after": when.astimezone(None)}
        connection.execute(insert(connection, tables.trash).values(**row))
        assert connection.scalar(sa.select(tables.trash.c.delete_after)) == when
        later = sa.select(tables.trash).where(tables.trash.c.delete_after > when)
        assert connection.execute(later).all() == []


def test_an_unreachable_database_is_unavailable(tmp_path):
    away = [
        Database("postgresql://nobody@127.0.0.1:1/nothing"),
        Database(f"sqlite:///{tmp_path}/no/such/folder/fragdex.db"),
    ]
    for database in away:
        with pytest.raises(Unavailable) as caught, database.read():
            pass
        assert caught.value.retry_after
        with pytest.raises(Unavailable), database.write():
            pass


def test_it_recovers_by_itself_when_its_connections_died(database):
    if database.dialect == "sqlite":
        pytest.skip("has no connections that could die")
    with database.read() as connection:
        connection.execute(sa.select(1))
    with database.engine.connect() as connection, pytest.raises(sa.exc.DBAPIError):
        connection.execute(
            sa.text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database()"
            )
        )
    with database.read() as connection:
        assert connection.scalar(sa.select(1)) == 1


def test_a_connection_that_dies_on_the_way_is_unavailable(database):
    if database.dialect == "sqlite":
        pytest.skip("has no connections that could die")
    with pytest.raises(Unavailable), database.write() as connection:
        connection.execute(sa.text("SELECT pg_terminate_backend(pg_backend_pid())"))
    with database.read() as connection:
        assert connection.scalar(sa.select(1)) == 1


def test_a_full_disk_is_told_apart(sqlite_database):
    with pytest.raises(StoreFull), sqlite_database.write() as connection:  # noqa: PT012
        connection.exec_driver_sql("PRAGMA max_page_count=1")
        for number in range(1000):
            row = {"name": str(number), "value": bytes(4096)}
            connection.execute(tables.secrets.insert().values(**row))
    with sqlite_database.write() as connection:
        assert connection.execute(sa.select(tables.secrets)).all() == []


def test_faults_of_our_own_do_not_look_like_the_weather(database):
    with pytest.raises(sa.exc.DBAPIError), database.read() as connection:
        connection.execute(sa.text("SELECT * FROM no_such_table"))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "no url",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:a?mode=memory",
        "mysql://a/b",
    ],
)
def test_urls_that_cannot_be_used_are_refused(url):
    with pytest.raises(ConfigError):
        Database(url)


def test_what_is_acknowledged_is_flushed_before(sqlite_database):
    """Bytes are flushed before their row is: a row that a power loss takes would orphan them."""

    def level(**how):
        with sqlite_database.write(**how) as connection:
            return connection.exec_driver_sql("PRAGMA synchronous").scalar()

    full, normal = 2, 1  # https://sqlite.org/pragma.html#pragma_synchronous
    assert [level(), level(passing=True), level(), level()] == [full, normal, full, full]


def test_threads_that_write_wait_for_one_another_without_a_connection(sqlite_database):
    """SQLite only looks now and then whether it may write, and holds a connection meanwhile."""
    in_use, barrier = [], threading.Barrier(8)

    def write():
        barrier.wait(60)
        for _ in range(5):
            with sqlite_database.write():
                in_use.append(sqlite_database.engine.pool.checkedout())

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert in_use == [1] * 40


def test_a_thread_that_waits_too_long_to_write_is_told(sqlite_database, monkeypatch):
    monkeypatch.setattr("fragdex.service.records.database.BUSY_MS", 1)
    with (
        sqlite_database.write(),
        pytest.raises(Unavailable, match="busy"),
        sqlite_database.write(),
    ):
        pass
    with sqlite_database.write():
        pass
