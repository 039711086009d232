"""Operations on health. Written by tools/make_client.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fragdex.client.api.health_records import Health
from fragdex.client.request import Request

__all__ = ["get_health", "get_metrics", "get_readiness"]


def get_health() -> Request[Health]:
    """Whether the process answers; asks nobody else."""
    return Request("GET", "/healthz", result=Health)


def get_metrics() -> Request[bytes]:
    """Metrics of this process and of the installation, in Prometheus' text form."""
    return Request("GET", "/metrics", result=bytes)


def get_readiness() -> Request[Mapping[str, Any]]:
    """Whether requests can be answered now: database, store, and no end in sight.

    It also names the browser, the speech engine and how full the disks are.
    """
    return Request("GET", "/readyz", result=Mapping[str, Any])
