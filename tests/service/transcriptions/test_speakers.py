"""Speakers over HTTP: told where asked for, named once, and another transcription."""

import pytest

from service.serving import API

pytest.importorskip("moonshine_voice")


@pytest.mark.large
def test_speakers_are_told_where_asked_for_and_named_once(transcriber, spoken):
    client = transcriber.client
    plain = transcriber.begin(spoken, work_slice_ms=5_000)
    assert transcriber.ended(plain)["speakers"] is None
    told = transcriber.begin(spoken, work_slice_ms=5_000, speakers=True)
    record = transcriber.ended(told)
    assert record["status"] == "complete", record
    assert record["speakers"] == [{"id": "S1", "name": None}, {"id": "S2", "name": None}]
    at = transcriber.path(f"/{told}")
    words = transcriber.document(told)["word_segments"]
    parts = [
        word
        for n in range(-(-record["isobmff_track"]["duration_ms"] // 5_000))
        for word in transcriber.fragment(told, n).json()["word_segments"]
    ]
    assert parts == words
    assert {word["speaker"] for word in words} == {"S1", "S2"}
    assert transcriber.words(told) == transcriber.words(plain)
    assert {word["speaker"] for word in transcriber.document(plain)["word_segments"]} == {None}

    named = client.put(f"{at}/speakers", json={"names": {"S1": " Ada <&> Co "}})
    assert named.json()["speakers"][0] == {"id": "S1", "name": "Ada <&> Co"}
    assert "<v Ada &lt;&amp;&gt; Co>" in client.get(f"{at}.vtt").text
    assert "\n- " in client.get(f"{at}.srt").text
    assert transcriber.document(told)["speakers"] == named.json()["speakers"]
    for wrong in ({"S9": "Eve"}, {"S1": "\0"}, {"S1": ""}):
        refused = client.put(f"{at}/speakers", json={"names": wrong})
        assert refused.status_code == 422, refused.text
    of_plain = client.put(transcriber.path(f"/{plain}/speakers"), json={"names": {"S1": "Ada"}})
    assert of_plain.status_code == 422

    path = f"{API}/isobmff_files/{spoken}/transcribe"
    for body, wanted in (({}, plain), ({"speakers": True}, told)):
        answer = client.post(path, json=body)
        assert (answer.status_code, answer.json()["id"]) == (200, wanted)
