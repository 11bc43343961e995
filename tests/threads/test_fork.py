"""A program may fork at any time: the child's memory works at once, whatever threads of the parent were doing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.watchdog import STACKS, ended

from recollect import Memory

if TYPE_CHECKING:
    from support.common import Script

    Start = Callable[..., Script]

FORK = (
    STACKS
    + """
import os, signal, sys, threading, time
from recollect import Memory
from support.concepts import Concepts

class Slow(Concepts):
    def embed_documents(self, texts):
        busy.set()
        time.sleep(0.3)
        return super().embed_documents(texts)

faulthandler.register(signal.SIGALRM, chain=True)
busy, done = threading.Event(), threading.Event()
model = Slow() if sys.argv[2] == "embeds" else "none"
memory = Memory(sys.argv[1], embedder=model)
ann = memory.at(workspace="shop", account="ann")
ann.remember("Ann has a dog", kind="preference", tier="account")
for n in range(5):
    ann.remember(f"dog {n} in the shop")

def recall():
    while not done.is_set():
        ann.recall("dog")

threads = [threading.Thread(target=recall, daemon=True) for _ in range(2 * (sys.argv[2] == "recalls"))]
for thread in threads:
    thread.start()
if model != "none":
    assert busy.wait(5)
for n in range(3):
    begin = time.monotonic()
    child = os.fork()
    if not child:
        signal.alarm(6)  # the parent's watchdog stayed behind
        try:
            assert len(ann.recall("dog", limit=50)) >= 6
            ann.remember(f"dog {n} of the child")
            assert ann.list()[0].text == f"dog {n} of the child"
            os._exit(0)
        except BaseException as problem:
            import traceback
            traceback.print_exc()
            os._exit(3)
    forked = time.monotonic() - begin
    assert forked < 5, forked
    assert os.waitpid(child, 0)[1] == 0
    ann.remember(f"dog {n} of the parent")
done.set()
for thread in threads:
    thread.join()
assert len(ann.recall("dog", limit=50)) == 12
memory.close()
"""
)


@pytest.mark.parametrize("parent", ["embeds", "recalls"])
def test_a_child_forked_while_the_parent_is_busy_recalls_at_once(url: str, parent: str, start: Start) -> None:
    ended(start(FORK, url, parent, start_new_session=True), 25)
    with Memory(url) as memory:
        assert len(memory.at(workspace="shop", account="ann").list()) == 12


WORDS = (
    STACKS
    + """
import os, threading
from recollect.stores.port import Place
from recollect.stores.postgres.words import vectors

place = Place("local", None)
for n in range(200):
    threads = [threading.Thread(target=vectors, args=(place, "a dog in the shop")) for _ in range(4)]
    for thread in threads:
        thread.start()
    child = os.fork()
    if not child:
        os._exit(0 if vectors(place, "a dog") else 3)
    assert os.waitpid(child, 0)[1] == 0
    for thread in threads:
        thread.join()
"""
)


def test_a_child_finds_words_while_threads_of_the_parent_begin_to(start: Start) -> None:
    ended(start(WORDS, start_new_session=True))


IMPORTS = """
import os, sys, threading, time
from types import SimpleNamespace
import recollect
from recollect.runtime import forking
started, release = threading.Event(), threading.Event()
sys.modules["events"] = SimpleNamespace(started=started, release=release)
sys.path.insert(0, sys.argv[1])
def sleep(seconds):
    release.set()
    time.sleep(seconds)
forking.time = SimpleNamespace(sleep=sleep, monotonic=time.monotonic)
thread = threading.Thread(target=__import__, args=("slow_to_import",))
thread.start()
started.wait()
threading.Timer(5, release.set).start()  # where no fork waits, the parent ends all the same
pid = os.fork()
if pid == 0:
    import signal
    signal.alarm(10)
    import slow_to_import
    os._exit(slow_to_import.whole)
print(os.waitpid(pid, 0)[1])
thread.join()
"""


def test_a_fork_waits_for_a_module_that_another_thread_imports(tmp_path: Path) -> None:
    """Nobody would ever give the module back to the child."""
    (tmp_path / "slow_to_import.py").write_text(
        "import events\nevents.started.set()\nevents.release.wait()\nwhole = 0\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", IMPORTS, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr[-2000:]
