"""Bytes that others are composed of stay as long as those, in whichever order records go."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from fragdex import ByteRange
from fragdex.errors import Unavailable
from fragdex.service.records import blobs, tables
from fragdex.service.records.store_check import check_store
from fragdex.service.records.tenant_limits import stored_bytes
from fragdex.service.store.composing import ComposingStore, Composition, is_composed
from fragdex.service.store.disk import DiskStore
from service.records.test_blobs import expect, keep, let_all_be_due, new_tenant, rows, sha256

FILMS = [bytes([n]) * 2000 for n in (1, 2)]
TRACKS = {(film, size): b"moof" + film[:size] for film in FILMS for size in (300, 400)}


def column(*values):
    return np.array(values, np.int64)


@pytest.fixture
def store(tmp_path):
    return ComposingStore(DiskStore(tmp_path / "store"))


@pytest.fixture
def tenant(database):
    return new_tenant(database)


def compose(database, store, tenant, film, size, record, between=lambda: None):
    """A track that is composed of a film becomes the track of a record, as a worker makes it."""
    track = TRACKS[film, size]
    with database.read() as connection:
        original = blobs.find(connection, tenant, sha256(film))
    assert original is not None
    columns = column(4), column(1), column(0), column(size)
    written = Composition(original.store_key, len(film), b"moof", *columns).built()
    with database.write() as connection:
        key = blobs.expect(connection, tenant, sha256(track), composed=True)
        known = blobs.find(connection, tenant, sha256(track)) is not None
    of = None
    if not known:
        store.write(key, [written])
        of = blobs.ComposedOf(original.sha256, original.store_key, len(written))
    between()
    with database.write() as connection:
        digests = hashlib.md5(track).digest(), sha256(track)
        blobs.keep(connection, tenant, *digests, len(track), "tracks", record, key, composed_of=of)
    return key


def put(database, store, tenant, content, record):
    """Bytes come as uploads do: what is there under their key stays."""
    key = expect(database, tenant, content)
    if not is_composed(key):
        store.write(key, [content])
    keep(database, tenant, content, record, key)
    return key


def release(database, family, *records):
    with database.write() as connection:
        blobs.release(connection, family, *records)


def here(database, store, tenant, content):
    """The bytes of a blob as they are read."""
    with database.read() as connection:
        blob = blobs.find(connection, tenant, sha256(content))
    return b"".join(store.read(blob.store_key, ByteRange(0, blob.byte_size)))


def swept(database, store):
    for _ in range(2):
        let_all_be_due(database)
        blobs.sweep(database, store)


def machine(database, store, tenant):
    records = st.sampled_from("ab")
    films, tracks = st.integers(0, 1), st.tuples(st.integers(0, 1), st.sampled_from([300, 400]))

    class Life(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            self.uses = {}  # content → records
            self.composed = {}  # content → film

        def alive(self, content):
            return self.uses.get(content) or content in self.composed.values()

        @rule(film=films, record=records)
        def film_comes(self, film, record):
            film = FILMS[film]
            put(database, store, tenant, film, record)
            self.uses.setdefault(film, set()).add(record)

        @rule(track=tracks, record=records)
        def track_comes_as_a_file(self, track, record):
            content = TRACKS[FILMS[track[0]], track[1]]
            put(database, store, tenant, content, record)
            self.uses.setdefault(content, set()).add(record)

        @rule(track=tracks, record=records)
        def track_is_composed(self, track, record):
            film, size = FILMS[track[0]], track[1]
            content = TRACKS[film, size]
            if self.alive(film):
                if not self.uses.get(content):
                    self.composed[content] = film
                compose(database, store, tenant, film, size, record)
                self.uses.setdefault(content, set()).add(record)

        @rule(family=st.sampled_from(["images", "tracks"]), record=records, other=records)
        def go(self, family, record, other):
            release(database, family, *{record, other})
            for content, users in self.uses.items():
                with database.read() as connection:
                    use = tables.blob_uses.c
                    left = sa.select(use.record_id).where(use.sha256 == sha256(content))
                    users.intersection_update(connection.scalars(left))
                if not users:
                    self.composed.pop(content, None)

        @rule()
        def swept(self):
            swept(database, store)
            assert set(store.keys()) == {row.store_key for row in rows(database, tables.blobs)}

        @invariant()
        def what_is_needed_is_here_and_counts_once(self):
            wanted = {content for content in [*self.uses] if self.uses[content]}
            wanted |= {film for film in FILMS if self.alive(film)}
            kept = rows(database, tables.blobs)
            assert {bytes(row.sha256) for row in kept} == {sha256(one) for one in wanted}
            for content in wanted:
                assert here(database, store, tenant, content) == content
            sizes = [store.plain.size(row.store_key) for row in kept]
            with database.read() as connection:
                assert stored_bytes(connection, tenant) == sum(sizes)

        def teardown(self):
            for family in ("images", "tracks"):
                release(database, family, "a", "b")
            swept(database, store)
            assert list(store.keys()) == []
            assert rows(database, tables.blobs) == rows(database, tables.blob_uses) == []

    return Life


def test_whatever_comes_and_goes_in_any_order(database, store, tenant):
    run_state_machine_as_test(
        machine(database, store, tenant),
        settings=settings(
            max_examples=10, stateful_step_count=15, deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )  # fmt: skip


def test_a_film_that_is_let_go_meanwhile_is_made_anew(database, store, tenant):
    """Nothing is composed of an object that is going, even where the same bytes came again."""
    (film, size), again = (FILMS[0], 300), []

    def gone():
        release(database, "images", "film")

    def another():
        gone()
        again.append(put(database, store, tenant, film, "film"))

    for between in (gone, another):
        put(database, store, tenant, film, "film")
        with pytest.raises(Unavailable):
            compose(database, store, tenant, film, size, "t/1", between)
    compose(database, store, tenant, film, size, "t/1")
    assert here(database, store, tenant, TRACKS[film, size]) == TRACKS[film, size]


def test_an_upload_never_takes_over_what_was_composed(database, store, tenant):
    """Who meant to share an object that went away meanwhile sends the bytes; nothing is broken."""
    film, track = FILMS[0], TRACKS[FILMS[0], 300]
    put(database, store, tenant, film, "film")
    key = compose(database, store, tenant, film, 300, "t/1")
    assert is_composed(key)
    with database.write() as connection:
        assert blobs.expect(connection, tenant, sha256(track)) == key
        assert blobs.expect_again(connection, tenant, sha256(track), key) == key
    release(database, "images", "film")
    release(database, "tracks", "t/1")
    with pytest.raises(Unavailable):
        keep(database, tenant, track, "upload", key)
    with database.write() as connection:
        assert blobs.expect_again(connection, tenant, sha256(track), key) is None
    put(database, store, tenant, track, "upload")
    swept(database, store)
    assert here(database, store, tenant, track) == track


def test_films_and_their_tracks_go_at_once_by_many(database, store, tenant):
    """Each is let go by another thread; none waits for one that waits for it."""
    for turn in range(6):
        put(database, store, tenant, FILMS[0], "film")
        for number, size in enumerate((300, 400)):
            compose(database, store, tenant, FILMS[0], size, f"t/{number}")
        let_go = [("images", "film"), *(("tracks", one) for one in ("t/0", "t/1", "t/0"))]
        order = let_go[turn % 4 :] + let_go[: turn % 4]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda which: release(database, *which), order))
        assert rows(database, tables.blobs) == rows(database, tables.blob_uses) == []


def test_a_check_names_what_cannot_be_composed(database, store, tenant):
    key = put(database, store, tenant, FILMS[0], "film")
    composed = compose(database, store, tenant, FILMS[0], 300, "t/1")
    report = check_store(database, store, contents=True)
    assert (report.faults, report.objects) == ([], 2)
    assert report.bytes == sum(map(store.plain.size, (key, composed)))
    store.plain.write(key, [FILMS[0][1:]])
    assert [one.key for one in check_store(database, store).faults] == [key]
    faults = check_store(database, store, contents=True).faults
    assert {one.key for one in faults} == {key, composed}
    store.delete(composed)
    store.plain.write(composed, [b"other"])
    (_, damaged) = sorted(check_store(database, store).faults, key=lambda one: one.key)
    assert "damaged" in damaged.reason
