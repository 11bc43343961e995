"""What tests of every kind use: a folder, a memory in it, a clock that can be set, and other processes."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support import fork_server, seeds, stores
from support import postgres as servers
from support.browser import browser_missing
from support.common import DISK, LONG, Clock, Script
from support.schedule import arranged

from recollect import Memory

_UNHURRIED: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}
# Other examples in every run, so that few in each are many in a week; a failure prints how to repeat it.
settings.register_profile("ci", max_examples=20, stateful_step_count=30, print_blob=True, **_UNHURRIED)
settings.register_profile("long", max_examples=1000, stateful_step_count=50, **_UNHURRIED)
settings.load_profile("long" if LONG else "ci")

# Hundreds of tests start a Python, which would compile all of recollect again each time, and every worker would rewrite
# the assertions of all tests, where the environment says that no bytecode is written.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# In memory, where there is room: most tests make a folder, and no disk is what they are about. Those of tests/faults
# are about one. A worker of pytest-xdist learns which from whoever started it.
os.environ["RECOLLECT_TEST_DISK"] = DISK
if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK):
    os.environ["TMPDIR"] = tempfile.tempdir = "/dev/shm"
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", os.path.join(DISK, "data-gym-cache"))  # where it was, if it is there
gc.disable()  # until all tests are collected
# A shell's background job ignores Ctrl-C, and so would all that it starts. What tests interrupt must notice.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
# A model may be installed where tests run. Those that are about meaning ask for one themselves.
os.environ["RECOLLECT_EMBEDDER"] = "none"
# Scripts that tests start import from tests/support as the tests do.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(Path(__file__).parent)]))
# So do processes of a run that want a PostgreSQL: they share one.
servers.begin()
seeds.begin()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the slow ones, so that no worker is alone with one at the end."""
    items[:] = arranged(items, getattr(config, "workerinput", {"workercount": 1})["workercount"])


def pytest_sessionstart(session: pytest.Session) -> None:
    """Print the seed. Not by pytest_report_header, whose lines `-q` leaves out."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(reporter, pytest.TerminalReporter) and not hasattr(session.config, "workerinput"):
        reporter.write_line(seeds.banner())


def pytest_collection_finish() -> None:
    """Keep the garbage collector from modules and tests, which stay: it would visit millions of objects each time.

    What is garbage by now stays as well. Looking for it would take longer than it is worth.
    """
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    gc.enable()  # also in the process that starts the workers, and collects nothing


def pytest_runtest_setup(item: pytest.Item) -> None:
    seeds.reseed(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    yield
    stores.sweep()


def pytest_unconfigure() -> None:
    fork_server.stop()
    stores.remove()
    servers.end()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tests that could not be run for want of a program are not passed over in silence; a failure can be repeated."""
    if terminalreporter.getreports("failed") or terminalreporter.getreports("error"):
        terminalreporter.write_line(seeds.banner())
    for missing in filter(None, (servers.bouncer_missing(), servers.distribution_missing(), browser_missing())):
        if any(missing in str(report.longrepr) for report in terminalreporter.getreports("skipped")):
            terminalreporter.write_line(missing, red=True, bold=True)


@pytest.fixture(scope="session")
def postgres() -> servers.Database:
    """The PostgreSQL that all tests share. One that is to be stopped, killed or paused is a `Server` of one's own."""
    return servers.shared()


@pytest.fixture
def fresh_postgres() -> str:
    """A location on the shared PostgreSQL where nothing has ever been."""
    return stores.fresh_location(untouched=True)


@pytest.fixture
def clock() -> Clock:
    return Clock(datetime(2026, 3, 1, 12, tzinfo=UTC))


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    return str(tmp_path / "memory")


@pytest.fixture
def memory(store_url: str, clock: Clock) -> Iterator[Memory]:
    with Memory(store_url, clock=clock) as memory:
        yield memory


@pytest.fixture
def start() -> Iterator[Callable[..., Script]]:
    """Start a script."""
    started: list[Script] = []

    def start(*arguments: Any, **options: Any) -> Script:
        started.append(Script(*arguments, **options))
        return started[-1]

    yield start
    for script in started:
        script.kill()
        script.communicate()


@pytest.fixture
def run(start: Callable[..., Script]) -> Callable[..., str]:
    """Run a script to its end and return what it printed. An error in it is an error here."""
    return lambda *arguments, **options: start(*arguments, **options).finish()
