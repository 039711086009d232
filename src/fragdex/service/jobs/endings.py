"""What the log says of an attempt that failed: whose matter it is decides how loud it is."""

from __future__ import annotations

import logging
from typing import Any

from fragdex.errors import ConfigError, FragdexError, MissingExtra, ServiceError, Unavailable
from fragdex.service.jobs.work import Job, SliceFailed
from fragdex.service.logs import explained

__all__ = ["log_done", "log_failure"]

logger = logging.getLogger("fragdex.jobs")


def log_failure(job: Job, error: Exception, *, final: bool, is_slice: bool) -> None:
    """Write one line for an attempt that failed.

    A fault of ours is one ERROR with its traceback, once its attempts are used up. What a user's
    file or page is guilty of is one line at INFO: that of the job, not those of its slices. What
    the operator can mend, or passes by itself, is a line at WARNING.

    Args:
        final: there are no more attempts.
        is_slice: the job that waits for this one says it again.
    """
    what, more = _named(job), {"fields": _fields(job)}
    if not final:
        reason = explained(error) or type(error).__name__
        logger.warning("%s is tried again: %s", what, reason, extra=more)
    elif is_fault(error):
        logger.error("%s failed", what, exc_info=error, extra=more)
    elif isinstance(error, Unavailable | OSError | ConfigError | MissingExtra):
        logger.warning("%s failed: %s", what, explained(error), extra=more)
    else:
        level = logging.DEBUG if is_slice else logging.INFO
        logger.log(level, "%s failed: %s", what, explained(error), extra=more)


def log_done(job: Job, seconds: float) -> None:
    """Write one line for a job that is done; slices are told at DEBUG alone."""
    level = logging.INFO if job.parent is None else logging.DEBUG
    fields = {**_fields(job), "seconds": round(seconds, 3)}
    logger.log(level, "%s is done after %.1f s", _named(job), seconds, extra={"fields": fields})


def _named(job: Job) -> str:
    return f"{job.name} of {job.record_id} (job {job.id}, attempt {job.attempt})"


def _fields(job: Job) -> dict[str, Any]:
    """What a line of JSON says of a job."""
    return {
        "work": job.name,
        "record": job.record_id,
        "job": job.id,
        "parent": job.parent,
        "attempt": job.attempt,
    }


def is_fault(error: Exception) -> bool:
    """Whether an error is a fault of the service itself: nobody has raised it on purpose.

    >>> is_fault(KeyError("a")), is_fault(Unavailable("the database does not answer"))
    (True, False)
    """
    if isinstance(error, SliceFailed):
        return False  # the slice has said it
    return not isinstance(error, FragdexError) or type(error) in (FragdexError, ServiceError)
