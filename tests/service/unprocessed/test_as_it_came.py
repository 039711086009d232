"""Which files are tracks as they came, and what becomes of them: no work at all."""

import hashlib
import io
from concurrent.futures import ThreadPoolExecutor

import av
import pytest

import fragdex
from fragdex.service.unprocessed.inspection import Inspector
from fragdex.service.unprocessed.passthrough import why_not
from service.serving import API
from service.working import FIXTURES, announced, events_of, fixture_bytes, md5_of, uploaded

FILES = f"{API}/unprocessed_files"


def indexed(data):
    look = Inspector()
    look.feed(data)
    return look.index(bytes(16))


def why(data):
    with fragdex.open_source(data) as source:
        return why_not(indexed(data), source)


def copied(name, movflags):
    """The video of a fixture, its packets copied into a fragmented file."""
    out = io.BytesIO()
    with (
        av.open(str(FIXTURES / name)) as source,
        av.open(out, "w", format="mp4", options={"movflags": movflags}) as target,
    ):
        video = source.streams.video[0]
        stream = target.add_stream_from_template(video)
        for packet in source.demux(video):
            if packet.dts is not None:
                packet.stream = stream
                target.mux(packet)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("frag-global-sidx-video.mp4", None),
        ("frag-prft.mp4", None),
        ("frag-audio.m4a", None),
        ("frag-audio-sidx.m4a", None),
        ("frag-tfdt-over-32-bits.mp4", None),
        ("frag-cmaf.mp4", "it has several tracks"),
        ("frag-encrypted.mp4", "it has several tracks"),
        ("frag-hvc1.mp4", "browsers do not play its codec"),
        ("frag-sparse-text.mp4", "browsers do not play its codec"),
        ("avc3.mp4", "browsers do not play its codec"),
        ("aac.m4a", "it is not fragmented as players need it"),
        ("dash-init.mp4", "it is not fragmented as players need it"),
    ],
)
def test_why_a_file_must_be_processed(name, reason):
    assert why(fixture_bytes(name)) == reason


def test_fragments_that_players_take():
    assert why(copied("timescale-10m.mp4", "frag_keyframe+empty_moov+default_base_moof")) is None


def test_addresses_have_to_count_from_their_own_moof():
    data = copied("timescale-10m.mp4", "frag_keyframe+empty_moov")
    assert why(data) == "its fragments' addresses do not count from their own moof"


def test_a_picture_marked_sync_that_is_no_idr_is_seen_through():
    data = copied("open-gop.mp4", "frag_keyframe+empty_moov+default_base_moof")
    assert (indexed(data).tracks[0].fragments.first_sync == 0).all()
    assert why(data) == "its fragments do not begin with IDR pictures"


def test_a_fragment_that_begins_inside_a_group_of_pictures_is_not_taken():
    data = copied("timescale-10m.mp4", "frag_every_frame+empty_moov+default_base_moof")
    assert why(data) == "its fragments do not begin with sync samples"


def test_far_away_bytes_are_not_asked_for_each_fragment():
    data = fixture_bytes("frag-audio.m4a")
    index = indexed(data)
    with fragdex.open_source(data) as source:
        assert why_not(index, source, remote=True) is None


def sound(codec, layout):
    """A second of silence in a fragmented file."""
    out = io.BytesIO()
    flags = {"movflags": "empty_moov+default_base_moof", "frag_duration": "500000"}
    with av.open(out, "w", format="mp4", options=flags) as target:
        stream = target.add_stream(codec, rate=48000, layout=layout)
        for first in range(0, 48000, 960):
            frame = av.AudioFrame(format="s16", layout=layout, samples=960)
            frame.sample_rate, frame.pts = 48000, first
            for plane in frame.planes:
                plane.update(bytes(plane.buffer_size))
            target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    return out.getvalue()


@pytest.mark.parametrize(
    ("codec", "layout", "reason"),
    [
        ("aac", "5.1", None),
        ("aac", "quad", "browsers do not play aac of channel configuration 0"),
        ("libmp3lame", "stereo", "browsers do not play its codec"),
    ],
)
def test_sound_is_taken_where_browsers_play_it(codec, layout, reason):
    assert why(sound(codec, layout)) == reason


@pytest.mark.parametrize("name", ["frag-global-sidx-video.mp4", "frag-audio.m4a"])
def test_the_process_is_complete_at_once(server, name):
    data = fixture_bytes(name, salt=server.url)
    record = uploaded(server.client, data, name)
    answer = server.client.post(f"{FILES}/{record['id']}/process")
    assert answer.status_code == 201
    process = answer.json()
    assert answer.headers["Location"] == f"{API}/process_isobmff/{process['id']}"
    assert process["completed_at"] is not None
    assert process["unprocessed_file_id"] == record["id"]
    # the same bytes, the same id, the same names
    assert process["isobmff_file_id"] == record["id"]
    file = server.client.get(f"{API}/isobmff_files/md5/{record['md5']}").json()
    assert (file["id"], file["md5"], file["filename"]) == (record["id"], record["md5"], name)
    assert file["fragment_index_complete"]
    assert events_of(server.client, f"/process_isobmff/{process['id']}/progress") == [
        ("progress", {"progress": 1}),
        ("complete", {}),
    ]


def test_its_index_tells_of_the_bytes_as_they_came(server):
    data = fixture_bytes("frag-global-sidx-video.mp4", salt=f"index {server.url}")
    record = uploaded(server.client, data)
    assert record["fragment_index_complete"]
    process = server.client.post(f"{FILES}/{record['id']}/process").json()
    assert process["status"] == "complete"
    (track,) = server.client.get(f"{API}/isobmff_files/{record['id']}/index").json().values()
    place = f"{API}/isobmff_tracks/{record['id']}/{track['track']}"
    assert server.client.get(place).content == data
    assert track["segments"]
    for segment in track["segments"]:
        stop = segment["offset"] + segment["size"]
        asked = {"Range": f"bytes={segment['offset']}-{stop - 1}"}
        got = server.client.get(place, headers=asked)
        assert (got.status_code, got.content) == (206, data[segment["offset"] : stop])
        boxes = [box.type for box in fragdex.boxes.parse(got.content)]
        assert "moof" in boxes
        assert boxes[-1] == "mdat"
    init = track["initSegment"]
    assert b"moov" in data[init["offset"] : init["offset"] + init["size"]]


def sha256_of(data):
    return hashlib.sha256(data).hexdigest()


def test_its_bytes_are_kept_once(server):
    data = fixture_bytes("frag-prft.mp4", salt=server.url)
    record = uploaded(server.client, data)
    server.client.post(f"{FILES}/{record['id']}/process")
    kept = [key for key in server.context.store.keys("blobs/") if sha256_of(data) in key]
    assert len(kept) == 1


def test_the_same_operation_under_its_other_name_and_again(server):
    record = uploaded(server.client, fixture_bytes("frag-audio.m4a", salt=f"2 {server.url}"))
    first = server.client.post(f"{FILES}/{record['id']}/isobmff")
    again = server.client.post(f"{FILES}/{record['id']}/process")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    by_id = server.client.get(f"{API}/process_isobmff/{first.json()['id']}")
    assert by_id.json() == first.json()
    listed = server.client.get(f"{API}/process_isobmff", params={"status": "complete"}).json()
    assert first.json() in listed["processes"]
    assert server.stranger.get(f"{API}/process_isobmff").json()["processes"] == []


@pytest.mark.parametrize("name", ["frag-audio.m4a", "frag-cmaf.mp4"])
def test_many_who_ask_get_one_process(server, name):
    record = uploaded(server.client, fixture_bytes(name, salt=f"many {server.url}"))
    ask = lambda _: server.client.post(f"{FILES}/{record['id']}/process").json()["id"]  # noqa: E731
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(16)))) == 1


def test_what_was_made_outlives_what_was_sent_and_can_be_made_again(server):
    data = fixture_bytes("frag-audio.m4a", salt=f"3 {server.url}")
    record = uploaded(server.client, data)
    first = server.client.post(f"{FILES}/{record['id']}/process").json()
    assert server.client.delete(f"{API}/isobmff_files/{record['id']}").status_code == 204
    second = server.client.post(f"{FILES}/{record['id']}/process").json()
    assert second["id"] != first["id"]
    assert second["completed_at"] is not None
    assert server.client.delete(f"{FILES}/{record['id']}").status_code == 204
    assert server.client.get(f"{API}/isobmff_tracks/{record['id']}/1").content == data
    assert server.client.get(f"{API}/process_isobmff/{second['id']}").status_code == 404


def test_a_file_that_was_registered_before_is_the_one_that_is_made(server):
    data = fixture_bytes("frag-audio.m4a", salt=f"4 {server.url}")
    body = {"md5": md5_of(data), "filename": "registered.m4a"}
    registered = server.client.post(f"{API}/isobmff_files", json=body).json()
    record = uploaded(server.client, data)
    process = server.client.post(f"{FILES}/{record['id']}/process").json()
    assert process["isobmff_file_id"] == registered["id"] != record["id"]
    assert server.client.get(f"{API}/isobmff_tracks/{registered['id']}/1").content == data


def test_an_upload_that_is_not_complete_is_not_processed(server):
    data = fixture_bytes("frag-audio.m4a", salt=f"5 {server.url}")
    record = announced(server.client, data)
    part = {"Content-Range": f"bytes 0-99/{len(data)}"}
    server.client.post(f"{FILES}/{record['id']}/upload", content=data[:100], headers=part)
    answer = server.client.post(f"{FILES}/{record['id']}/process")
    assert (answer.status_code, answer.json()["next_byte"]) == (409, 100)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1/secret.ts\n", "playlist"),
        (b"\xef\xbb\xbf#EXTM3U\nfile:///etc/passwd\n", "playlist"),
        (b"ffconcat version 1.0\nfile /etc/passwd\n", "playlist"),
        (b'<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"/>', "playlist"),
        ("Das ist gar kein Film, nur Text – grüß Gott. ".encode() * 200, "text"),
        ("text mit Marke".encode("utf-16"), "text"),
        (b"", "empty"),
    ],
)
def test_what_is_no_media_is_said_at_once(server, data, word):
    record = announced(server.client, data)
    if data:
        place = f"{FILES}/{record['id']}/upload"
        record = server.client.post(place, content=data).json()
    assert record["complete"]
    assert record["status"] == "failed"
    answer = server.client.post(f"{FILES}/{record['id']}/process")
    assert answer.status_code == 422
    assert word in answer.json()["detail"]
    failed = server.client.get(FILES, params={"status": "failed"}).json()["unprocessed_files"]
    assert record["id"] in [one["id"] for one in failed]


def test_media_is_not_taken_for_text():
    for path in sorted(FIXTURES.glob("*.m*")):
        look = Inspector()
        look.feed(path.read_bytes())
        assert (look.refusal() is None) == (path.suffix != ".md"), path.name
    for head in (
        b"#!AMR\n<abc",
        b"ID3\x04\0\0\0\0\0\0",
        b"\xff\xfb\x90\x64",
        b"OggS\0",
        b"RIFF\x24\0\0\0",
    ):
        look = Inspector()
        look.feed(head)
        assert look.refusal() is None, head
