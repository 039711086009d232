"""The parts that every operation is given: settings, database, store, jobs.

An operation is a function `name(house, tenant, …)`: it decides, writes records and returns values.
It knows no HTTP. What it raises is the caller's answer.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fragdex.service.config import Settings
    from fragdex.service.jobs.door import Jobs
    from fragdex.service.records.database import Database
    from fragdex.service.store.contract import Store


@dataclass(frozen=True, slots=True)
class House:
    """What a process of the service is made of; made once by `app.open_house`."""

    settings: Settings
    database: Database
    store: Store
    jobs: Jobs

    def work_folder(self, name: str) -> Path:
        """An empty folder of this machine for one piece of work; what was in it is removed.

        Args:
            name: the id of the record, a dot, and which work it is.
        """
        work = self.settings.data / "work"
        work.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = work / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        return folder

    def work_left(self, record_id: str) -> Iterator[Path]:
        """The folders of this machine that work on a record has made and not removed."""
        yield from (self.settings.data / "work").glob(f"{record_id}.*")
