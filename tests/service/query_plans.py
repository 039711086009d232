"""Watches every statement that the service sends to SQLite: none may read a large table whole."""

import sys
from pathlib import Path

import sqlalchemy as sa

import fragdex

SMALL = {"fragdex_tenants", "fragdex_keys", "fragdex_secrets", "fragdex_executors"}
SOURCE = str(Path(fragdex.__file__).parent)
WORDS = ("SELECT", "UPDATE", "DELETE", "INSERT", "WITH")


class PlanWatch:
    """Explains each statement when it is met first; `scans` holds those that read a table whole."""

    def __init__(self):
        self.known = set()
        self.scans = []

    def install(self):
        sa.event.listen(sa.Engine, "before_cursor_execute", self.look)

    def look(self, connection, cursor, statement, parameters, context, executemany):
        if connection.dialect.name != "sqlite" or not statement.startswith(WORDS):
            return
        if statement in self.known or "fragdex_" not in statement or not asked_by_the_service():
            return
        self.known.add(statement)
        values = parameters[0] if executemany else parameters
        plan = cursor.connection.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
        for *_, step in plan:
            # a table read by an index says "SCAN table USING INDEX"
            kind, name, *way = step.split()
            if kind == "SCAN" and not way and name.startswith("fragdex_") and name not in SMALL:
                self.scans.append(f"{name} is read whole by: {statement}")


def asked_by_the_service():
    """Whether the nearest caller outside of SQLAlchemy is the service, not a test."""
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(SOURCE):
            return "/migrations/" not in file
        if "/sqlalchemy/" not in file and "/contextlib" not in file:
            return False
        frame = frame.f_back
    return False
