"""Many machines index a set: an executor for `write_set` whose work is tasks of Ray."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from importlib import import_module
from typing import Any, TypeVar

from fragdex.errors import SourceUnavailable

Result = TypeVar("Result")


class RayExecutor(Executor):
    """Calls as tasks of Ray, for `write_set("s3://bucket/films", …, executor=RayExecutor())`.

    A task whose worker or machine ends is run again by Ray, elsewhere. Rows come to the process
    that called `write_set`, which alone writes, so that each video is in the set once. If that
    process ends, the next run begins with what it saved.

    Args:
        retries: how often a task is run again whose worker ended; a video whose task has ended
            this often is broken, and does not stop the others.
        options: of the tasks, as `ray.remote` takes them; `num_cpus=0.1` runs ten a processor,
            for videos that are far away.

    Raises:
        ImportError: Ray is not installed.

    Ray has to be connected before (`ray.init`). Machines need the same versions of fragdex, and
    the same right to read the videos; local paths are those of a shared file system.
    """

    def __init__(self, *, retries: int = 4, **options: Any) -> None:
        ray: Any = import_module("ray")
        self._errors: Any = import_module("ray.exceptions")
        self._retries = retries
        self._task = ray.remote(_called).options(max_retries=retries, **options)

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """Call a function in a task.

        Returns: a future; its exception is `SourceUnavailable` where the task's worker ended too
        often, else what the function raised.
        """
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()

        def settle(task: Future[Result]) -> None:
            error = task.exception()
            if isinstance(error, self._errors.RayTaskError):  # the function itself raised
                future.set_exception(error.cause if isinstance(error.cause, Exception) else error)
            elif isinstance(error, self._errors.RayError):
                future.set_exception(
                    SourceUnavailable(
                        f"the worker of its task ended {self._retries + 1} times: {error}"
                    )
                )
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(task.result())

        self._task.remote(fn, args, kwargs).future().add_done_callback(settle)
        return future


def _called(fn: Callable[..., Result], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Result:
    return fn(*args, **kwargs)
