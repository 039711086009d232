"""HLS as players read it: one address, every track to choose from, the bytes by ranges."""

import json

import av
import httpx
import pytest

import fragdex
from fragdex.testing import movie
from service.console import films
from service.serving import API
from service.working import events_of, fixture_bytes, md5_of, uploaded


@pytest.fixture(scope="module")
def film(tmp_path_factory, working):
    """A processed video of two languages, and a token of all that lies below it."""
    path = tmp_path_factory.mktemp("films") / "film.mp4"
    films.film(path, 150, sound=("eng", "deu"))
    record = uploaded(working.client, path.read_bytes(), "film.mp4", "files", type="video")
    assert events_of(working.client, f"/files/{record['id']}/progress")[-1][0] == "complete"
    place = f"{API}/files/{record['id']}"
    token = working.client.post(f"{API}/url-token", json={"url": place}).json()["token"]
    return path, place, token


def lines_of(answer):
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("application/vnd.apple.mpegurl")
    return answer.text.splitlines()


def test_several_tracks_are_one_playlist_of_playlists(working, film):
    _, place, _ = film
    lines = lines_of(working.client.get(f"{place}/index?format=hls"))
    assert lines[-1] == "index?format=hls&track=1"
    for line, track, language in zip(lines[3:5], (2, 3), ("en", "de"), strict=True):
        assert line.startswith("#EXT-X-MEDIA:TYPE=AUDIO,")
        assert f'LANGUAGE="{language}"' in line
        assert f'URI="index?format=hls&track={track}"' in line
        media = httpx.URL(working.url + place + "/").join(f"index?format=hls&track={track}")
        playlist = lines_of(working.client.get(media))
        parts = {line for line in playlist if not line.startswith("#")}
        assert parts == {f"tracks/{track}.mp4"}
        assert working.client.get(media.join(parts.pop())).status_code == 200
    assert 'CODECS="avc1.64000C,mp4a.40.2",RESOLUTION=320x180,FRAME-RATE=25.000' in lines[5]


def test_the_same_from_the_other_family(working, film):
    _, place, _ = film
    file_id = working.client.get(place, headers={"Accept": "application/json"}).json()["id"]
    # the ISOBMFF file made of it has its id
    at = httpx.URL(f"{working.url}{API}/isobmff_files/{file_id}/index?format=hls")
    (variant,) = [x for x in lines_of(working.client.get(at)) if not x.startswith("#")]
    media = at.join(variant)
    (part,) = {x for x in lines_of(working.client.get(media)) if not x.startswith("#")}
    answer = working.client.get(media.join(part), headers={"Range": "bytes=0-7"})
    assert (answer.status_code, answer.content[4:]) == (206, b"ftyp")


def test_a_player_that_knows_the_address_alone_reads_all_of_it(working, film):
    """FFmpeg with a token in the URL: it sends no header, and goes by how addresses end."""
    path, place, token = film
    url = f"{working.url}{place}/index?format=hls&token={token}"
    seen = {}
    with av.open(url) as played:
        for packet in played.demux():
            if packet.size:
                key = packet.stream.type, packet.stream.metadata.get("language")
                seen.setdefault(key, []).append(bytes(packet))
    with av.open(str(path)) as source:
        packets = [(one.stream.index, bytes(one)) for one in source.demux() if one.size]
    sent = [[data for stream, data in packets if stream == nth] for nth in range(3)]
    assert seen[("audio", "en")] == sent[1]
    assert seen[("audio", "de")] == sent[2]
    video = next(track_packets for (kind, _), track_packets in seen.items() if kind == "video")
    assert len(video) == len(sent[0])


def test_a_token_stands_in_no_other_answer(working, film):
    _, place, token = film
    assert token in working.anyone.get(f"{place}/index?format=hls&token={token}").text
    assert "token" not in working.client.get(f"{place}/index?format=hls").text
    # who sends a key needs none in the playlist
    assert "token" not in working.client.get(f"{place}/index?format=hls&token={token}").text


def test_each_playlist_has_its_own_etag(working, film):
    _, place, _ = film
    asked = [f"{place}/index?format=hls{more}" for more in ("", "&track=1", "&track=2")]
    etags = [working.client.get(one).headers["etag"] for one in asked]
    assert len(set(etags)) == 3
    for one, etag in zip(asked, etags, strict=True):
        assert working.client.get(one, headers={"If-None-Match": etag}).status_code == 304


def test_tracks_that_a_client_sent_itself(server):
    """One index for both, as published clients send it; both begin at byte 0 of their own file."""
    client, films_ = server.client, {1: movie(fragments=4), 2: fixture_bytes("frag-audio.m4a")}
    index = {}
    for track_id, data in films_.items():
        (one,) = json.loads(fragdex.index(data).export("json")).values()
        index[str(track_id)] = one | {"track": track_id}
    # the same place in two files
    index["2"]["initSegment"] = index["2"]["initSegment"] | {"offset": 0}
    new = {"md5": md5_of(f"sent {server.url}".encode()), "filename": "sent.mp4"}
    file_id = client.post(f"{API}/isobmff_files", json=new).json()["id"]
    place = f"{API}/isobmff_files/{file_id}/index"
    assert client.post(f"{place}/upload", json=index).status_code == 201
    lines = lines_of(client.get(f"{place}?format=hls"))
    assert "#EXT-X-ENDLIST" in lines  # no track is known to be apart yet
    for track_id, kind in ((1, "video"), (2, "audio")):
        track = {"file_id": file_id, "track_id": track_id, "type": kind, "byte_size": 9}
        assert client.post(f"{API}/isobmff_tracks", json=track).status_code == 201
    lines = lines_of(client.get(f"{place}?format=hls"))
    assert lines[-1] == "index?format=hls&track=1"
    for track_id, data in films_.items():
        own = lines_of(client.get(f"{place}?format=hls&track={track_id}"))
        ranges = [line for line in own if line.startswith("#EXT-X-BYTERANGE:")]
        parsed = fragdex.index(data).export("hls").decode().splitlines()
        assert ranges == [line for line in parsed if line.startswith("#EXT-X-BYTERANGE:")]
