"""The parts that every operation is given: settings, database, store, jobs.

An operation is a function `name(house, tenant, …)`: it decides, writes records and returns values.
It knows no HTTP. What it raises is the caller's answer.
"""

from __future__ import annotations

from dataclasses import dataclass
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
