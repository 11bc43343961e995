"""Imports that are put off until they are needed, because they take longer than all the rest.

An interrupt in the middle of one leaves a module behind that can never be imported again in this process; numpy is one.
So they are made in a thread of their own, which no interrupt reaches.
"""

from __future__ import annotations

import sys
import threading
from _thread import start_new_thread
from importlib import import_module

from recollect.runtime import forking


def load(*names: str) -> None:
    """Import these modules. If the caller is interrupted, the import goes on in its thread."""
    for name in names:
        if not _is_installed(name):
            _load(name)


def _is_installed(name: str) -> bool:
    module = sys.modules.get(name)
    return module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False)


def _load(name: str) -> None:
    problems: list[BaseException] = []
    done = threading.Lock()

    def work() -> None:
        try:
            with forking.importing:
                import_module(name)
        except BaseException as problem:
            problems.append(problem)
        finally:
            done.release()

    done.acquire()
    if threading.current_thread() is threading.main_thread():
        start_new_thread(work, ())  # a Thread waits for its start in Python, where an interrupt would leave it hanging
        with done:
            pass
    else:
        work()
    if problems:
        raise problems[0]
