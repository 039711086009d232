"""Commands of operators that look at a service which is there: they never make one."""

import pytest

from fragdex.__main__ import main

LOOKS = [
    ["db", "check"],
    ["key", "list"],
    ["key", "revoke", "0192f0c1-7e1e-7000-8000-3c5d0a9b2f11"],
    ["key", "rotate", "0192f0c1-7e1e-7000-8000-3c5d0a9b2f11"],
    ["tenant", "limits", "acme"],
]


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_a_wrong_folder_is_said_and_stays_as_it_was(words, tmp_path, capfd):
    """`db check` said of a restored service in another folder that nothing was missing."""
    there = tmp_path / "there"
    assert main([*words, "--data", str(tmp_path / "typed-wrong")]) == 2
    there.mkdir()
    assert main([*words, "--data", str(there)]) == 2
    told = capfd.readouterr().err
    assert told.count("there is no service in the database sqlite:///") == 2
    assert list(tmp_path.rglob("*")) == [there]


def test_a_database_without_tables_is_no_service(tmp_path, new_postgres, capfd):
    assert main(["db", "check", "--data", str(tmp_path), "--database-url", new_postgres()]) == 2
    assert "there is no service in the database postgresql" in capfd.readouterr().err


def test_a_service_without_keys_says_so(tmp_path, capfd):
    assert main(["db", "upgrade", "--data", str(tmp_path)]) == 0
    assert main(["key", "list", "--data", str(tmp_path)]) == 0
    told = capfd.readouterr()
    assert told.out == ""
    assert "there are no keys; make one with fragdex key create" in told.err
    assert main(["key", "list", "--json", "--data", str(tmp_path)]) == 0
    assert capfd.readouterr() == ("", "")
