"""Time that passes when a test says so, for what makes vectors."""

import math
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from recollect.models import backlog, vectors


class Hours:
    """Time that passes when a test says so, for the thread that makes vectors."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        hours, real = self, threading.Condition.wait_for

        class Condition(threading.Condition):
            def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
                end = math.inf if timeout is None else hours.now + timeout
                while not (met := predicate()) and hours.now < end:
                    real(self, predicate, 0.005)
                return met

        patch.setattr(backlog, "threading", SimpleNamespace(Condition=Condition, Lock=threading.Lock))
        for module in (backlog, vectors):
            patch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        time.sleep(0.1)  # for threads that do something now; those that wait for later are not seen to
