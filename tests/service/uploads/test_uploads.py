"""Chunked uploads as the interface tells them: what is answered, what is durable, what is kept."""

import hashlib
from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa

from fragdex import ByteRange, Indexer, index
from fragdex.errors import (
    InvalidRequest,
    MalformedBox,
    RecordNotFound,
    TooLarge,
    Unavailable,
    Unprocessable,
    UploadBusy,
    UploadGap,
)
from fragdex.service.records import blobs, deletion, tables
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.uploads import hashing
from fragdex.service.uploads.model import Arrival
from fragdex.service.uploads.operations import begin, no_bytes, receive, state
from fragdex.service.uploads.upload_session import WHOLE, Chunk, open_session
from fragdex.testing import movie

from .conftest import LEASE_S, new_tenant, row_of

CONTENT = bytes(range(251)) * 40
SIZE = len(CONTENT)
TAIL = Chunk(1000, SIZE, SIZE)
MD5 = hashlib.md5(CONTENT).digest()
SHA256 = hashlib.sha256(CONTENT).digest()


class Case:
    """An upload of CONTENT, and the words a client has for it."""

    def __init__(self, context, tenant, content=CONTENT, md5=MD5, arrival=None):
        self.context, self.tenant, self.content = context, tenant, content
        self.id = new_id()
        self.arrival = arrival
        empty = no_bytes(context, tenant, "image", self.id, len(content), md5, arrival)
        with context.database.write() as connection:
            self.begun = begin(
                context, connection, tenant, "image", self.id, len(content), md5, arrival, empty
            )

    def send(self, start=None, stop=None, *, total=None, data=None, text=None, **more):
        """One request; `text` is its Content-Range, made from start and stop where not given."""
        if text is None and start is not None:
            total = len(self.content) if total is None else total
            text = f"bytes {start}-{stop - 1}/{total}"
        data = self.content[start:stop] if data is None else data
        pieces = [data[at : at + 1000] for at in range(0, len(data), 1000)]
        more.setdefault("arrival", self.arrival)
        return receive(self.context, self.tenant, "image", self.id, text, pieces, **more)

    @property
    def state(self):
        return state(self.context, self.tenant, "image", self.id)

    @property
    def next_byte(self):
        return self.state.next_byte

    def stored(self):
        with self.context.database.read() as connection:
            blob = blobs.find(connection, self.tenant, hashlib.sha256(self.content).digest())
        assert blob.sha256 == hashlib.sha256(self.content).digest()
        assert blob.byte_size == len(self.content)
        return b"".join(self.context.store.read(blob.store_key, ByteRange(0, blob.byte_size)))


@pytest.fixture
def case(quick_house, tenant):
    return Case(quick_house, tenant)


class TestTheWholeStory:
    def test_in_one_body(self, context, tenant):
        case = Case(context, tenant)
        assert not case.begun.complete
        answer = case.send()
        assert (answer.complete, answer.next_byte) == (True, SIZE)
        assert case.state == answer
        assert case.stored() == CONTENT
        assert list(context.store.drafts()) == []

    def test_in_chunks(self, context, tenant):
        case = Case(context, tenant)
        for start in range(0, SIZE, 3000):
            stop = min(SIZE, start + 3000)
            answer = case.send(start, stop)
            assert (answer.complete, answer.next_byte) == (stop == SIZE, stop)
            assert case.state == answer
        assert case.stored() == CONTENT

    def test_one_announced_long_ago_that_gets_bytes_is_not_swept(self, context, tenant):
        case = Case(context, tenant)
        with context.database.write() as connection:
            row = tables.uploads
            long_ago = instant() - timedelta(days=30)
            connection.execute(
                row.update().where(row.c.record_id == case.id), {"created_at": long_ago}
            )
        case.send(0, 3000)
        blobs.sweep(context.database, context.store, timedelta(hours=1))
        assert case.next_byte == 3000
        assert case.send(3000, SIZE).complete
        assert case.stored() == CONTENT

    def test_bytes_equals_is_taken_too(self, case):
        assert case.send(text=f"bytes=0-2999/{SIZE}", data=CONTENT[:3000]).next_byte == 3000

    def test_a_total_that_is_not_known(self, case):
        assert case.send(text="bytes 0-2999/*", data=CONTENT[:3000]).next_byte == 3000

    def test_without_md5(self, context, tenant):
        case = Case(context, tenant, md5=None)
        assert case.send().complete
        assert case.stored() == CONTENT

    def test_the_same_bytes_are_kept_once(self, context, tenant):
        first, second = Case(context, tenant), Case(context, tenant)
        assert first.send().complete
        assert second.send().complete
        assert len(list(context.store.keys("blobs/"))) == 1
        other = Case(context, new_tenant(context.database))
        assert other.send().complete
        assert len(list(context.store.keys("blobs/"))) == 2

    def test_no_bytes_are_complete_at_creation(self, context, tenant):
        heard = []
        arrival = Arrival(finished=lambda connection, arrived: heard.append(arrived))
        case = Case(context, tenant, content=b"", md5=None, arrival=arrival)
        assert case.begun.complete
        assert case.state.complete
        assert case.stored() == b""
        assert [one.byte_size for one in heard] == [0]
        with pytest.raises(Unprocessable):
            Case(context, tenant, content=b"", md5=MD5)

    def test_other_tenants_and_unknown_records(self, case):
        with pytest.raises(RecordNotFound):
            state(case.context, new_tenant(case.context.database), "image", case.id)
        with pytest.raises(RecordNotFound):
            receive(
                case.context, new_tenant(case.context.database), "image", case.id, None, [CONTENT]
            )
        with pytest.raises(RecordNotFound):
            receive(case.context, case.tenant, "track", case.id, None, [CONTENT])

    def test_a_record_that_is_deleted_while_bytes_flow(self, case):
        def pieces():
            yield CONTENT[:3000]
            with case.context.database.write() as connection:
                deletion.forget_upload(connection, "image", case.id)
            yield CONTENT[3000:]

        with pytest.raises(RecordNotFound):
            receive(case.context, case.tenant, "image", case.id, None, pieces())
        blobs.sweep(case.context.database, case.context.store)
        assert list(case.context.store.drafts()) == []


class TestBytesThatComeAgain:
    def test_are_passed_over(self, case):
        case.send(0, 3000)
        assert case.send(0, 3000).next_byte == 3000
        assert case.send(0, 2000).next_byte == 3000
        assert case.send(2000, 5000).next_byte == 5000
        assert case.send(4000, SIZE).complete
        assert case.stored() == CONTENT

    def test_even_other_ones_the_md5_decides(self, case):
        case.send(0, 3000)
        assert case.send(0, 3000, data=bytes(3000)).next_byte == 3000
        assert case.send(0, SIZE, data=bytes(3000) + CONTENT[3000:]).complete
        assert case.stored() == CONTENT

    def test_after_the_end(self, case):
        case.send()
        assert case.send(0, 3000).complete
        assert case.send().complete
        assert case.send(SIZE - 1, SIZE).complete

    def test_from_the_first_chunk_as_published_clients_do(self, case):
        case.send(0, 3000)
        case.send(3000, 6000)
        answers = [
            case.send(start, min(SIZE, start + 3000)).next_byte for start in range(0, SIZE, 3000)
        ]
        assert answers == [6000, 6000, 9000, SIZE]


class TestWhatIsRefused:
    def test_gaps(self, case):
        case.send(0, 3000)
        with pytest.raises(UploadGap) as refused:
            case.send(3001, 5000)
        assert refused.value.more == {"next_byte": 3000}
        assert case.send(3000, SIZE).complete

    @pytest.mark.parametrize("text", ["", "bytes", "bytes 0-", "bytes 5-4/9", "items 0-1/2"])
    def test_what_is_no_content_range(self, case, text):
        with pytest.raises(InvalidRequest):
            case.send(text=text, data=b"")

    def test_a_content_range_of_a_total_alone_tells_how_far_the_upload_is(self, case):
        case.send(0, 3000)
        with pytest.raises(UploadGap) as refused:
            case.send(text=f"bytes */{SIZE}", data=b"")
        assert refused.value.more == {"next_byte": 3000}
        case.send(3000, SIZE)
        assert case.send(text=f"bytes */{SIZE}", data=b"").complete

    def test_another_total(self, case):
        with pytest.raises(Unprocessable) as refused:
            case.send(0, 3000, total=SIZE + 1)
        assert refused.value.more["byte_size"] == SIZE
        assert case.next_byte == 0

    def test_an_end_after_the_end(self, case):
        with pytest.raises(Unprocessable):
            case.send(text=f"bytes 0-{SIZE}/*", data=CONTENT + b"x")

    def test_large_chunks(self, case):
        with pytest.raises(TooLarge) as refused:
            case.send(0, 3001, limit=3000)
        assert refused.value.more == {"limit": 3000}
        assert case.send(0, 3000, limit=3000).next_byte == 3000
        assert case.send(limit=3000).complete, "the limit is one of chunks"

    def test_a_content_length_that_is_another(self, case):
        with pytest.raises(Unprocessable):
            case.send(0, 3000, length=2999)
        with pytest.raises(Unprocessable):
            case.send(length=SIZE + 1)
        assert case.send(length=SIZE).complete

    def test_a_body_that_is_shorter(self, case):
        with pytest.raises(Unprocessable) as refused:
            case.send(0, 5000, data=CONTENT[:3000])
        assert refused.value.more["next_byte"] == 3000
        assert case.next_byte == 3000, "what arrived stays"
        with pytest.raises(Unprocessable):
            case.send(data=CONTENT[:4000])
        assert case.next_byte == 4000
        assert case.send(4000, SIZE).complete

    def test_a_chunk_that_is_longer(self, case):
        with pytest.raises(Unprocessable) as refused:
            case.send(0, 3000, data=CONTENT[:3500])
        assert refused.value.more["next_byte"] == case.next_byte
        assert case.next_byte <= 3000
        assert case.send(case.next_byte, SIZE).complete
        assert case.stored() == CONTENT

    def test_a_file_that_is_longer(self, case):
        with pytest.raises(Unprocessable) as refused:
            case.send(data=CONTENT + b"more")
        assert refused.value.more["next_byte"] == 0
        assert (case.next_byte, case.state.complete) == (0, False)
        assert case.send().complete

    def test_another_md5(self, case):
        wrong = CONTENT[:-1] + b"x"
        case.send(0, 3000)
        with pytest.raises(Unprocessable) as refused:
            case.send(3000, SIZE, data=wrong[3000:])
        assert refused.value.more == {"next_byte": 0}
        assert (case.next_byte, case.state.complete) == (0, False)
        assert list(case.context.store.drafts()) == []
        assert list(case.context.store.keys("blobs/")) == []
        with pytest.raises(UploadGap):
            case.send(3000, SIZE)
        case.send(0, 3000)
        assert case.send(3000, SIZE).complete
        assert case.stored() == CONTENT


class TestClientsThatGo:
    class Gone(Exception):
        pass

    def pieces(self, stop):
        for at in range(0, stop, 500):
            yield CONTENT[at : at + 500]
        raise self.Gone

    def test_what_arrived_stays(self, case):
        with pytest.raises(self.Gone):
            receive(case.context, case.tenant, "image", case.id, None, self.pieces(3000))
        assert case.next_byte == 3000
        assert case.send(3000, SIZE).complete, "and the next may write at once"
        assert case.stored() == CONTENT

    def test_behind_the_last_byte(self, case):
        with pytest.raises(self.Gone):
            receive(case.context, case.tenant, "image", case.id, None, self.pieces(SIZE))
        assert case.state.complete


class TestOneWriter:
    def test_a_second_one_is_busy(self, context, tenant):
        case = Case(context, tenant)
        first = open_session(context, tenant, "image", case.id, WHOLE)
        first.take(CONTENT[:3000])
        with pytest.raises(UploadBusy) as refused:
            case.send(0, 3000)
        assert refused.value.more == {"next_byte": 0}
        assert 1 <= refused.value.retry_after <= LEASE_S
        first.take(CONTENT[3000:])
        assert first.end().complete
        assert case.stored() == CONTENT

    def test_one_that_sleeps_is_taken_over_and_mixes_nothing(self, context, tenant, expire):
        case = Case(context, tenant)
        case.send(0, 1000)
        sleeper = open_session(context, tenant, "image", case.id, TAIL)
        sleeper.take(CONTENT[1000:2000])
        expire(case.id)
        other = open_session(context, tenant, "image", case.id, TAIL)
        other.take(CONTENT[1000:5000])
        with pytest.raises(UploadBusy):
            sleeper.take(bytes(7000))
        sleeper.leave()
        other.take(CONTENT[5000:])
        assert other.end().complete
        assert case.stored() == CONTENT

    def test_what_a_sleeper_writes_nobody_reads(self, context, tenant, expire):
        case = Case(context, tenant)
        sleeper = open_session(context, tenant, "image", case.id, WHOLE)
        expire(case.id)
        other = open_session(context, tenant, "image", case.id, WHOLE)
        other.take(CONTENT[:5000])
        sleeper.take(bytes(7000))  # it wakes before it knows
        other.take(CONTENT[5000:])
        sleeper.take(bytes(SIZE - 7000))
        with pytest.raises(UploadBusy):
            sleeper.end()
        assert other.end().complete
        assert case.stored() == CONTENT

    def test_a_sleeper_whom_nobody_missed_goes_on(self, context, tenant, expire):
        case = Case(context, tenant)
        sleeper = open_session(context, tenant, "image", case.id, WHOLE)
        sleeper.take(CONTENT[:3000])
        expire(case.id)
        sleeper.take(CONTENT[3000:])
        assert sleeper.end().complete
        assert case.stored() == CONTENT

    def test_a_sleeper_who_has_all_bytes_cannot_complete(self, context, tenant, expire):
        case = Case(context, tenant)
        sleeper = open_session(context, tenant, "image", case.id, WHOLE)
        sleeper.take(CONTENT)
        expire(case.id)
        assert case.send(0, 3000).next_byte == 3000
        with pytest.raises(UploadBusy):
            sleeper.end()
        assert not case.state.complete
        assert case.send(3000, SIZE).complete
        assert case.stored() == CONTENT

    @pytest.mark.parametrize("wakes", ["to its draft", "to a store that fails"])
    @pytest.mark.parametrize("name", ["append", "sync", "finish"])
    def test_a_sleeper_is_told_wherever_it_fell_asleep(
        self, context, tenant, expire, monkeypatch, name, wakes
    ):
        """It is the upload that is lost to it, whatever the store makes of the late call."""
        content = bytes(range(253)) * 3000
        case = Case(context, tenant, content, hashlib.md5(content).digest())
        sleeper = open_session(context, tenant, "image", case.id, WHOLE)
        sleeper.take(content[:1000])
        draft = sleeper._draft
        work = getattr(draft, name)

        def asleep(*given):
            monkeypatch.undo()  # once is enough: what it does after that is done awake
            expire(case.id)
            assert case.send().complete
            if wakes == "to a store that fails":
                raise Unavailable("the store does not answer", retry_after=1)
            return work(*given)

        monkeypatch.setattr(draft, name, asleep)
        # what it finishes has to be the file: others never come so far
        late = content[1000:] if name == "finish" else bytes(len(content) - 1000)

        def go_on():
            sleeper.take(late)
            sleeper.end()

        with pytest.raises(UploadBusy):
            go_on()
        sleeper.leave()
        assert case.stored() == content

    @pytest.fixture
    def expire(self):
        def let_it_expire(record_id):
            with self.context.database.write() as connection:
                row = tables.uploads
                long_ago = row_of(self.context, record_id).created_at.replace(year=2020)
                connection.execute(
                    sa.update(row).where(row.c.record_id == record_id).values(lease_until=long_ago)
                )

        return let_it_expire

    @pytest.fixture(autouse=True)
    def _kept(self, context):
        self.context = context


class TestWhatTheFamilyHears:
    def test_finished_in_the_same_transaction(self, context, tenant):
        heard = []

        def finished(connection, arrived):
            row = tables.blob_uses
            uses = connection.execute(sa.select(row).where(row.c.record_id == arrived.record_id))
            heard.append((arrived, len(uses.all())))

        case = Case(context, tenant, arrival=Arrival(finished=finished))
        case.send(0, 3000)
        assert heard == []
        case.send(3000, SIZE)
        case.send()
        ((arrived, uses),) = heard
        assert (arrived.md5, arrived.byte_size, uses) == (MD5, SIZE, 1)
        assert arrived.sha256 == hashlib.sha256(CONTENT).digest()
        assert context.store.size(arrived.store_key) == SIZE

    def test_a_family_that_fails_completes_nothing(self, case):
        class Broken(Exception):
            pass

        def finished(connection, arrived):
            raise Broken

        with pytest.raises(Broken):
            case.send(arrival=Arrival(finished=finished))
        assert not case.state.complete
        with case.context.database.read() as connection:
            assert blobs.find(connection, case.tenant, SHA256) is None
        assert case.send().complete
        assert case.stored() == CONTENT

    def test_a_family_that_fails_once_between_chunks(self, case):
        failures = iter([True, False])

        def finished(connection, arrived):
            if next(failures):
                raise RuntimeError("once")

        arrival = Arrival(finished=finished)
        case.send(0, 3000)
        with pytest.raises(RuntimeError):
            case.send(3000, SIZE, arrival=arrival)
        # the draft is an object already; the chunk that comes again completes it
        assert (case.next_byte, case.state.complete) == (3000, False)
        assert case.send(3000, SIZE, arrival=arrival).complete
        assert case.stored() == CONTENT

    def test_what_was_examined_in_the_bytes(self, case):
        heard = []

        def examine(arrived):
            with case.context.store.source(arrived.store_key) as source:
                return source.read(ByteRange(0, 4))

        arrival = Arrival(
            examine=examine, finished=lambda connection, one: heard.append(one.examined)
        )
        assert case.send(arrival=arrival).complete
        assert heard == [CONTENT[:4]]

    def test_bytes_that_the_family_refuses(self, case):
        def examine(arrived):
            raise MalformedBox("this is none")

        case.send(0, 3000)
        with pytest.raises(MalformedBox):
            case.send(3000, SIZE, arrival=Arrival(examine=examine))
        assert (case.next_byte, case.state.complete) == (0, False)
        assert case.send().complete

    def test_an_index_is_ready_with_the_last_byte(self, context, tenant):
        data = movie(fragments=20)
        indexes = []
        arrival = Arrival(
            watch=lambda upload: Indexer(),
            finished=lambda connection, arrived: indexes.append(arrived.watcher.finish()),
        )
        case = Case(context, tenant, data, hashlib.md5(data).digest(), arrival)
        for start in range(0, len(data), 1500):
            case.send(start, min(len(data), start + 1500))
            if start == 3000:
                hashing.held.clear()  # as a restart does
        offsets = indexes[0].track(1).fragments.moof_offset.tolist()
        assert offsets == index(data).track(1).fragments.moof_offset.tolist()

    def test_what_cannot_be_indexed_is_uploaded_all_the_same(self, case):
        heard = []
        arrival = Arrival(
            watch=lambda upload: Indexer(),
            finished=lambda connection, arrived: heard.append(arrived),
        )
        assert case.send(arrival=arrival).complete
        assert len(heard) == 1


class TestAfterARestart:
    @pytest.fixture(autouse=True)
    def _forgetful(self, monkeypatch):
        self.monkeypatch = monkeypatch

    def test_the_bytes_are_hashed_again(self, case):
        for start in range(0, SIZE, 3000):
            hashing.held.clear()
            answer = case.send(start, min(SIZE, start + 3000))
        assert answer.complete
        assert case.stored() == CONTENT

    def test_much_is_hashed_again_only_at_the_end(self, case):
        self.monkeypatch.setattr("fragdex.service.uploads.upload_session.CATCH_UP_BYTES", 100)
        for start in range(0, SIZE, 3000):
            hashing.held.clear()
            answer = case.send(start, min(SIZE, start + 3000))
        assert answer.complete
        assert case.stored() == CONTENT

    def test_bytes_that_the_store_lost(self, case):
        case.send(0, 3000)
        for name in list(case.context.store.drafts()):
            case.context.store.draft(name).discard()
        with pytest.raises(UploadGap) as refused:
            case.send(3000, 6000)
        assert refused.value.more == {"next_byte": 0}
        assert case.next_byte == 0
        assert case.send().complete
        assert case.stored() == CONTENT

    def test_next_byte_stays_behind_what_is_flushed(self, case):
        """Bytes of a request move next_byte when they were synced, not when they came."""
        self.monkeypatch.setattr("fragdex.service.uploads.upload_session.SYNC_BYTES", 2500)
        session = open_session(case.context, case.tenant, "image", case.id, WHOLE)
        seen = []
        for at in range(0, SIZE - 1000, 1000):
            session.take(CONTENT[at : at + 1000])
            seen.append(case.next_byte)
        assert seen[:7] == [0, 0, 3000, 3000, 3000, 6000, 6000]
        session.leave()
        assert case.next_byte == len(range(0, SIZE - 1000, 1000)) * 1000


def test_what_waits_is_bounded():
    kept = hashing.PausedHashes(most=3)
    for number in range(5):
        kept.put(str(number), hashing.Hashes(None))
    assert [kept.take(str(number), 0) is not None for number in range(5)] == [0, 0, 1, 1, 1]
    old = hashing.PausedHashes(seconds=-1)
    old.put("a", hashing.Hashes(None))
    assert old.take("a", 0) is None


def test_hashes_ahead_of_the_draft_are_of_no_use():
    hashes = hashing.Hashes(None)
    hashes.feed(b"abc")
    hashes.wait()
    hashing.held.put("a", hashes)
    assert hashing.held.take("a", 2) is None


def test_an_upload_is_a_value(case):
    session = open_session(case.context, case.tenant, "image", case.id, WHOLE)
    upload = session.upload
    session.leave()
    assert replace(upload, next_byte=5).progress.next_byte == 5
