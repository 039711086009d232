"""The log: why something failed, said once a minute."""

import json
import logging
import re
import uuid

import pytest
from sqlalchemy.exc import DBAPIError

from fragdex.errors import Unavailable
from fragdex.service.jobs import engine
from fragdex.service.jobs.work import JobOptions
from fragdex.service.logs import JsonFormatter, OncePerMinute, SafeFormatter, explained
from fragdex.service.records.database import Database


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("sqlite:////nowhere/at/all.db", ("/nowhere/at/all.db", "unable to open database file")),
        (
            "postgresql+psycopg://media:hidden@127.0.0.1:9/films",
            ("127.0.0.1:9/films", "(?i)connection.*refused"),
        ),
    ],
)
def test_a_database_that_does_not_answer_is_named_with_the_driver_s_reason(url, parts):
    with pytest.raises(Unavailable) as error, Database(url).read():
        pass
    text = explained(error.value)
    assert all(re.search(part, text) for part in parts), text
    assert "hidden" not in text
    # clients are told nothing of it
    assert str(error.value) == "the database does not answer"


@pytest.fixture
def log(monkeypatch):
    """A logger with the filter, a clock to turn, and the lines that were written."""
    lines, clock = [], [1000.0]
    monkeypatch.setattr("fragdex.service.logs.time.monotonic", lambda: clock[0])

    class Lines(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())

    handler = Lines()
    handler.addFilter(OncePerMinute())
    logger = logging.Logger("test")
    logger.addHandler(handler)
    return logger, clock, lines


def test_what_is_said_again_and_again_is_written_once_a_minute(log):
    logger, clock, lines = log
    for _ in range(1400):
        logger.warning("the %s does not answer", "database")
        clock[0] += 0.125
    assert lines == [
        "the database does not answer",
        "the database does not answer (479 times more)",
        "the database does not answer (479 times more)",
    ]


def test_other_lines_and_what_is_no_warning_are_all_written(log):
    logger, _, lines = log
    for number in range(3):
        logger.warning("job %s waits", "abc"[number] + "x")
        logger.info("a request")
    assert len(lines) == 6


def test_numbers_and_ids_do_not_make_a_line_another_one(log):
    """200 connections were refused in 200 lines: each named another number of them."""
    logger, clock, lines = log
    for number in range(200):
        logger.warning("%d connections are open: one more was refused", number)
        logger.warning("file %s: %.1f s", uuid.UUID(int=number), number / 7)
        logger.warning("object %032x is missing", number * 7919)
    assert len(lines) == 3
    clock[0] += 60
    logger.warning("7 connections are open: one more was refused")
    assert lines[-1].endswith("(199 times more)")


def test_the_job_engine_speaks_in_lines_of_the_service(caplog):
    """Its tracebacks and SQL of each poll are no news; the reason is."""
    engine._quiet(JobOptions())
    try:
        try:
            raise OSError("connection refused")
        except OSError as reason:
            raise DBAPIError(
                "SELECT workflow_uuid FROM dbos.workflow_status", {}, reason
            ) from reason
    except DBAPIError as error:
        text = f"Exception in queue: {error}\nTraceback (most recent call last):\n  File"
        logging.getLogger("dbos").error(text, exc_info=error)
    (record,) = caplog.records
    assert record.name == "fragdex.jobs"
    line = SafeFormatter("%(message)s").format(record)
    assert line.startswith("the job engine: Exception in queue: ")
    assert "connection refused" in line
    for raw in ("Traceback", "SELECT", "sqlalche.me", "\n"):
        assert raw not in line


def divide():
    return 1 / 0


def look_up():
    return {}["missing"]


def test_faults_at_two_places_are_two_lines(log):
    logger, _, lines = log
    for fault in (divide, look_up, divide):
        try:
            fault()
        except (ZeroDivisionError, KeyError):
            logger.exception("fault")
    assert len(lines) == 2


def test_a_message_that_quotes_a_stranger_begins_no_line_of_its_own():
    quoted = "a.mp4\n2030-01-01 ERROR forged\x1b[2J\r\u2028"
    record = logging.makeLogRecord({"msg": "%s was refused", "args": (quoted,)})
    line = SafeFormatter("%(message)s").format(record)
    assert line == r"a.mp4\n2030-01-01 ERROR forged\x1b[2J\r\u2028 was refused"


@pytest.mark.parametrize("text", ["a\x85b", "a\u2028b", "a\ud800b", "a\nb", "a\x1b[2Jb"])
def test_a_line_of_json_is_one_line_whatever_strangers_send(text):
    record = logging.makeLogRecord({"msg": text, "fields": {"target": text, "other": object()}})
    line = JsonFormatter().format(record)
    assert line.isascii()
    assert line.isprintable()
    fields = json.loads(line)
    assert fields["message"] == fields["target"] == text
