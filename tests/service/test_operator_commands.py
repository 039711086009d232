"""Commands of operators that look at a service which is there: they never make one."""

import json
import time

import pytest
import sqlalchemy as sa

from fragdex.__main__ import main
from fragdex.service.records import tables
from service.serving import API, client_of, serving
from service.working import announced, fixture_bytes, uploaded

LOOKS = [
    ["db", "check"],
    ["key", "list"],
    ["key", "revoke", "0192f0c1-7e1e-7000-8000-3c5d0a9b2f11"],
    ["key", "rotate", "0192f0c1-7e1e-7000-8000-3c5d0a9b2f11"],
    ["tenant", "limits", "acme"],
    ["tenant", "list"],
    ["tenant", "delete", "acme"],
]


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_a_wrong_folder_is_said_and_stays_as_it_was(words, tmp_path, capfd):
    """`db check` said of a restored service in another folder that nothing was missing."""
    there = tmp_path / "there"
    assert main([*words, "--data", str(tmp_path / "typed-wrong")]) == 2
    there.mkdir()
    assert main([*words, "--data", str(there)]) == 2
    errors = capfd.readouterr().err
    assert errors.count("there is no service in the database sqlite:///") == 2
    assert list(tmp_path.rglob("*")) == [there]


def test_a_database_without_tables_is_no_service(tmp_path, new_postgres, capfd):
    assert main(["db", "check", "--data", str(tmp_path), "--database-url", new_postgres()]) == 2
    assert "there is no service in the database postgresql" in capfd.readouterr().err


def test_a_service_without_keys_says_so(tmp_path, capfd):
    assert main(["db", "upgrade", "--data", str(tmp_path)]) == 0
    assert main(["key", "list", "--data", str(tmp_path)]) == 0
    output = capfd.readouterr()
    assert output.out == ""
    assert "there are no keys; make one with fragdex key create" in output.err
    assert main(["key", "list", "--json", "--data", str(tmp_path)]) == 0
    assert capfd.readouterr() == ("", "")


def indexes_of(context):
    """What records name in the store, beside their bytes."""
    named = ("index_key", "index_json_key")
    columns = [table.c[name] for table in tables.metadata.sorted_tables for name in named
               if name in table.c]  # fmt: skip
    with context.database.read() as connection:
        return {key for one in columns for key in connection.scalars(sa.select(one)) if key}


def test_tenants_are_listed_and_one_is_deleted_with_all_that_it_has(tmp_path, capfd):
    with serving(tmp_path, deletion_grace_seconds=0) as served:
        film = uploaded(served.client, fixture_bytes("frag-cmaf.mp4"))
        render = served.client.post(f"{API}/renders", json={"html": "<p>"}).json()
        hook = {"url": "https://example.org/", "types": ["file.*"]}
        assert served.client.post(f"{API}/webhooks", json=hook).status_code == 201
        announced(served.client, b"never sent", name="b.mp4")
        kept = uploaded(served.stranger, fixture_bytes("frag-cmaf.mp4"))
        folder = ["--data", str(tmp_path)]

        assert main(["tenant", "list", "--json", *folder]) == 0
        lines = {one["tenant"]: one for one in map(json.loads, capfd.readouterr().out.splitlines())}
        assert lines["ours"]["stored_bytes"] > film["byte_size"]
        assert lines["ours"]["row_bytes"] > 256
        assert lines["ours"]["keys"] == 1

        assert main(["tenant", "delete", "ours", *folder]) == 1
        assert "--yes deletes it" in capfd.readouterr().err
        assert served.client.get(f"{API}/renders/{render['id']}").status_code == 200
        assert main(["tenant", "delete", "ours", "--yes", *folder]) == 0
        assert main(["tenant", "delete", "ours", "--yes", *folder]) == 2
        assert "there is no tenant called ours" in capfd.readouterr().err

        with served.context.database.read() as connection:
            for table in tables.metadata.sorted_tables:
                # what was done stays for a while, and names nobody
                if "tenant_id" in table.c and table.name not in ("fragdex_jobs", "fragdex_turns"):
                    owners = set(connection.scalars(sa.select(table.c.tenant_id)))
                    assert served.tenant not in owners, table.name
            left = set(connection.scalars(sa.select(tables.trash.c.store_key)))
            used = set(connection.scalars(sa.select(tables.blobs.c.store_key)))
        assert set(served.context.store.keys()) <= left | used | indexes_of(served.context)
        waits = time.monotonic() + 30
        with client_of(served.url, served.key) as client:
            while client.get(f"{API}/usage").status_code != 401:
                assert time.monotonic() < waits
                time.sleep(0.2)
        assert served.stranger.get(f"{API}/files/{kept['id']}").status_code == 200
