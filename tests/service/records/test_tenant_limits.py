"""Limits of a tenant's own: what counts, who is refused, and what goes by itself."""

import json
import threading
from datetime import timedelta
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from fragdex.errors import FragdexError, InvalidRequest, QuotaExceeded, TooManyRequests
from fragdex.service.jobs.api import Jobs
from fragdex.service.jobs.work import JobOptions
from fragdex.service.records import blobs, deletion, tables
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.records.keys import create_tenant
from fragdex.service.records.tenant_limits import (
    TenantLimits,
    ensure_within_quota,
    limits_of,
    parse_limits,
    read_limits,
    row_bytes,
    set_limits,
    stored_bytes,
)
from fragdex.service.store.disk import DiskStore
from fragdex.service.uploads import leases
from fragdex.service.uploads.operations import begin, receive

QUOTA = 1000
CONTENTS = [bytes([n]) * size for n, size in enumerate((10, 300, 400, 900))]


@pytest.fixture
def context(database, tmp_path):
    store = DiskStore(tmp_path / "store")
    return SimpleNamespace(
        database=database, store=store, settings=SimpleNamespace(lease_seconds=10)
    )


def tenant_of(database, **limits):
    tenant_id = create_tenant(database, new_id())
    if limits:
        set_limits(database, tenant_id, limits)
    return tenant_id


def used(database, tenant_id):
    with database.read() as connection:
        return stored_bytes(connection, tenant_id)


def announce(context, tenant_id, size):
    record_id = new_id()
    with context.database.write() as connection:
        begin(context, connection, tenant_id, "images", record_id, size, None)
    return record_id


def send_unmeasured(context, tenant_id, record_id, start, content):
    stop = start + len(content)
    chunk = f"bytes {start}-{stop - 1}/*"
    return receive(context, tenant_id, "images", record_id, chunk, [content])


def send(context, tenant_id, record_id, content):
    return receive(context, tenant_id, "images", record_id, None, [content])


def make(context, tenant_id, content, family="tracks"):
    """What a worker keeps."""
    record_id = new_id()
    blob = blobs.write(context.database, context.store, tenant_id, lambda: [content])
    with context.database.write() as connection:
        own = (blob.md5, blob.sha256, blob.byte_size, family, record_id, blob.store_key)
        blobs.keep(connection, tenant_id, *own)
    return record_id


def forget(context, record_id, family="images"):
    with context.database.write() as connection:
        blobs.release(connection, family, record_id)
        deletion.forget_upload(connection, family, record_id)


def machine(context):
    """Uploads, made files and deletions of a tenant with a quota, beside a model of them."""

    class Use(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            self.tenant = tenant_of(context.database, max_stored_bytes=QUOTA)
            self.stored = {}  # record: family, content
            self.coming = {}  # record: content, announced

        def expected(self):
            contents = {content for _, content in self.stored.values()}
            return sum(map(len, contents)) + sum(map(len, self.coming.values()))

        def tried(self, add, act):
            """Act, which must be refused exactly where `add` bytes are too many."""
            if self.expected() + add > QUOTA:
                with pytest.raises(QuotaExceeded) as refused:
                    act()
                assert refused.value.more["limit"] == QUOTA
                return None
            return act()

        def new(self, content):
            return 0 if content in {one for _, one in self.stored.values()} else len(content)

        @rule(content=st.sampled_from(CONTENTS))
        def announces(self, content):
            act = lambda: announce(context, self.tenant, len(content))  # noqa: E731
            record = self.tried(len(content), act)
            if record:
                self.coming[record] = content

        @rule(data=st.data(), broken=st.booleans())
        def sends(self, data, broken):
            if not self.coming:
                return
            record = data.draw(st.sampled_from(sorted(self.coming)))
            content = self.coming[record]
            if broken:
                with pytest.raises(FragdexError, match="shorter"):
                    send(context, self.tenant, record, content[:-1])
                return
            # the first bytes of an upload that broke off are passed over
            assert send(context, self.tenant, record, content).complete
            del self.coming[record]
            self.stored[record] = ("images", content)

        @rule(content=st.sampled_from(CONTENTS))
        def makes(self, content):
            act = lambda: make(context, self.tenant, content)  # noqa: E731
            record = self.tried(self.new(content), act)
            if record:
                self.stored[record] = ("tracks", content)

        @rule(data=st.data())
        def deletes(self, data):
            both = sorted({**self.stored, **self.coming})
            if not both:
                return
            record = data.draw(st.sampled_from(both))
            family, _ = self.stored.pop(record, ("images", b""))
            self.coming.pop(record, None)
            forget(context, record, family)

        @invariant()
        def what_counts_is_what_is_there(self):
            assert used(context.database, self.tenant) == self.expected() <= QUOTA
            table = tables.blobs
            with context.database.read() as connection:
                mine = sa.select(table.c.store_key).where(table.c.tenant_id == self.tenant)
                keys = connection.scalars(mine).all()
            contents = {content for _, content in self.stored.values()}
            assert sum(map(context.store.size, keys)) == sum(map(len, contents))

    return Use


def test_what_counts_is_the_sum_of_what_is_stored_and_coming(context):
    run_state_machine_as_test(
        machine(context),
        settings=settings(
            max_examples=8,
            stateful_step_count=15,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_uploads_announced_at_once_are_held_to_the_quota_together(context):
    tenant = tenant_of(context.database, max_stored_bytes=QUOTA)
    ready, taken = threading.Barrier(4), []

    def announces():
        ready.wait()
        try:
            taken.append(announce(context, tenant, 400))
        except QuotaExceeded:
            taken.append(None)

    threads = [threading.Thread(target=announces) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(filter(None, taken))) == 2
    assert used(context.database, tenant) == 800


def test_an_upload_that_was_left_frees_the_quota_and_takes_it_again_when_it_goes_on(
    sqlite_database, context
):
    tenant = tenant_of(context.database, max_stored_bytes=QUOTA)
    left = announce(context, tenant, 600)
    table = tables.uploads
    with context.database.write() as connection:
        long_ago = instant() - timedelta(days=2)
        connection.execute(table.update().values(created_at=long_ago))
    assert used(context.database, tenant) == 0
    other = announce(context, tenant, 500)
    with pytest.raises(QuotaExceeded, match="1100 bytes"):
        send(context, tenant, left, bytes(600))
    forget(context, other)
    assert send(context, tenant, left, bytes(600)).complete
    assert used(context.database, tenant) == 600


def test_a_quota_that_is_lowered_refuses_what_comes_and_deletes_nothing(context):
    tenant = tenant_of(context.database, max_stored_bytes=QUOTA)
    stored, coming = make(context, tenant, bytes(500)), announce(context, tenant, 400)
    set_limits(context.database, tenant, {"max_stored_bytes": 600})
    with pytest.raises(QuotaExceeded) as refused:
        send(context, tenant, coming, b"b" * 400)
    assert refused.value.more == {"limit": 600, "stored_bytes": 900}
    with context.database.read() as connection:
        _, row = leases.find(connection, tenant, "images", coming)
        assert blobs.used_by(connection, tenant, "tracks", stored) is not None
    assert row.lease_holder is None, "a refused upload waits for nobody"
    set_limits(context.database, tenant, {"max_stored_bytes": None})
    assert send(context, tenant, coming, b"b" * 400).complete
    # pictures that are cached for a look count, and are not refused
    set_limits(context.database, tenant, {"max_stored_bytes": 600})
    make(context, tenant, bytes(7), family="derived")
    assert used(context.database, tenant) == 907
    with context.database.read() as connection, pytest.raises(QuotaExceeded):
        ensure_within_quota(connection, tenant)


def test_files_older_than_the_retention_are_deleted(database):
    short, long = tenant_of(database, retention_days=1e-9), tenant_of(database, retention_days=7)

    def image(tenant):
        row = {"id": new_id(), "tenant_id": tenant, "filename": "a.png", "mime_type": "image/png"}
        row |= {"byte_size": 0, "created_at": instant(), "type": "image"}
        with database.write() as connection:
            connection.execute(tables.files.insert().values(**row))
        return row["id"]

    def render(tenant, **over):
        row = {"id": new_id(), "tenant_id": tenant, "metadata": {}, "wanted": {}, "status": "x"}
        row |= {"created_at": instant(), **over}
        with database.write() as connection:
            connection.execute(tables.renders.insert().values(**row))
        return row["id"]

    gone = {image(short), image(short), render(short, completed_at=instant())}
    stay = {image(long), render(short), render(long, failed_at=instant())}
    assert deletion.outlived(database, limit=1) == 1
    assert deletion.outlived(database) == len(gone) - 1
    left = set()
    with database.read() as connection:
        for table in (tables.files, tables.renders):
            left |= set(connection.scalars(sa.select(table.c.id)))
    assert stay <= left
    assert not gone & left


def test_jobs_of_a_tenant_are_limited_by_its_own_number(sqlite_database):
    own, other = tenant_of(sqlite_database, max_jobs=1), tenant_of(sqlite_database)
    jobs = Jobs(sqlite_database, JobOptions(tenant_jobs=2))
    with sqlite_database.read() as connection:
        jobs.ensure_room(connection, own)
        jobs.ensure_room(connection, other, 2)
        with pytest.raises(TooManyRequests) as refused:
            jobs.ensure_room(connection, own, 2)
    assert refused.value.more["limit"] == 1
    jobs.close()


def test_limits_are_read_from_text_and_set_one_by_one(sqlite_database):
    assert parse_limits({"max_stored_bytes": "10GB"}) == {"max_stored_bytes": 10_000_000_000}
    assert parse_limits({"max_jobs": "3", "retention_days": "None"}) == {
        "max_jobs": 3,
        "retention_days": None,
    }
    tenant_id = create_tenant(sqlite_database, "acme")
    set_limits(sqlite_database, tenant_id, {"max_jobs": 3, "max_render_cost": 1.5})
    assert set_limits(sqlite_database, tenant_id, {"max_jobs": None}).max_jobs is None
    assert read_limits(sqlite_database, "acme") == (tenant_id, TenantLimits(max_render_cost=1.5))
    with sqlite_database.read() as connection:
        assert limits_of(connection, new_id()) == TenantLimits()


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "much", "", "1e400"])
@pytest.mark.parametrize("name", list(TenantLimits.__dataclass_fields__))
def test_what_is_no_limit_is_refused_by_its_name(name, text):
    with pytest.raises(InvalidRequest, match=f"--{name.replace('_', '-')}"):
        parse_limits({name: text})


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(texts=st.lists(TEXTS, min_size=3, max_size=3), answer=st.binary(max_size=40))
def test_a_row_counts_with_its_texts_and_no_more(context, texts, answer):
    tenant, now = tenant_of(context.database), instant()
    first, second, third = texts
    own = {"tenant_id": tenant, "created_at": now}
    rows = {
        tables.renders: {"id": new_id(), "status": "created", "wanted": {}, "is_archive": False,
                         "metadata": {first: second}},
        tables.replays: {"key": "a", "request_hash": b"", "headers": {third: first},
                         "body": answer},
        tables.tus_uploads: {"id": new_id(), "filename": second, "mime_type": "", "byte_size": 1,
                             "metadata": third, "made_file": False, "expires_at": now},
    }  # fmt: skip
    sizes = [
        len(json.dumps({first: second})) + len("{}"),
        len(json.dumps({third: first})) + len(answer),
        len(second.encode()) + len(third.encode()),
    ]
    with context.database.write() as connection:
        for table, values in rows.items():
            connection.execute(table.insert().values(**values, **own))
        for table, size in zip(rows, sizes, strict=True):
            row = sa.select(table.c.row_bytes).where(table.c.tenant_id == tenant)
            assert connection.scalar(row) == 256 + size
        assert row_bytes(connection, tenant) == sum(sizes) + 3 * 256


def test_an_upload_of_no_length_counts_with_what_is_here_of_it(context):
    tenant = tenant_of(context.database, max_stored_bytes=1000)
    record = announce(context, tenant, None)
    assert used(context.database, tenant) == 0
    assert send_unmeasured(context, tenant, record, 0, bytes(600)).next_byte == 600
    assert used(context.database, tenant) == 600
    other = announce(context, tenant, 300)
    for _ in range(2):
        with pytest.raises(QuotaExceeded):
            send_unmeasured(context, tenant, record, 600, bytes(101))
        assert used(context.database, tenant) == 900
    with pytest.raises(QuotaExceeded):
        receive(context, tenant, "images", record, "bytes 600-600/701", [b"x"])
    assert send_unmeasured(context, tenant, record, 600, bytes(100)).next_byte == 700
    assert receive(context, tenant, "images", record, "bytes */700", []).complete
    assert send(context, tenant, other, bytes(300)).complete
    assert used(context.database, tenant) == 1000


def test_the_last_body_of_an_upload_of_no_length_counts_too(context):
    tenant = tenant_of(context.database, max_stored_bytes=1000)
    record = announce(context, tenant, None)
    with pytest.raises(QuotaExceeded):
        receive(context, tenant, "images", record, None, [bytes(1001)])
    assert used(context.database, tenant) == 0
    assert receive(context, tenant, "images", record, None, [bytes(1000)]).complete


def test_bytes_that_the_quota_refuses_are_not_stored(context):
    """An upload of no length reserves nothing: its draft holds no more than is counted."""
    tenant = tenant_of(context.database, max_stored_bytes=1000)
    records = [announce(context, tenant, None) for _ in range(3)]
    for record in records:
        send_unmeasured(context, tenant, record, 0, bytes(100))
        for content_range in ("bytes 100-5099/*", None):
            with pytest.raises(QuotaExceeded):
                receive(context, tenant, "images", record, content_range, [bytes(5000)])
    held = [path.stat().st_size for path in (context.store.root / "drafts").rglob("*")]
    assert sum(held) == used(context.database, tenant) == 300
