"""Imports that are put off until they are needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from recollect.runtime import imports

INTERRUPTED = """
import os, signal, sys, threading, time
from recollect import Memory
memory = Memory(sys.argv[1], embedder="none")
memory.remember("a heron in the reeds")
assert "numpy" not in sys.modules

def interrupt():
    while "numpy" not in sys.modules:
        time.sleep(0.0001)
    time.sleep(float(sys.argv[2]))
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    memory.recall("heron")
    time.sleep(1)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
assert [hit.memory.text for hit in memory.recall("heron")] == ["a heron in the reeds"]
"""


def test_what_tests_start_can_be_interrupted_in_a_background_run_too() -> None:
    shown = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n"


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.03])
def test_an_interrupt_while_numpy_is_imported_breaks_nothing(tmp_path: Path, seconds: float) -> None:
    command = [sys.executable, "-c", INTERRUPTED, f"sqlite:{tmp_path}/memory", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "interrupted\n"


def test_what_cannot_be_imported_is_an_error_each_time() -> None:
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="nothing_like_that"):
            imports.load("nothing_like_that")


def test_what_is_there_is_not_imported_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "_load", lambda name: pytest.fail(name))
    imports.load("sys", "recollect", "recollect.memory")


WITHOUT_MCP = """
import sys
from recollect import Memory
from support.served import served
from support import plain
with Memory(sys.argv[1], embedder="none") as memory, served(memory) as server:
    assert plain.get(f"{server.url}/readyz").status_code == 200
    assert plain.post(f"{server.url}/mcp", json={}).status_code == 401
    print("mcp" in sys.modules)
    accepted = {"accept": "application/json, text/event-stream"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    answer = plain.post(f"{server.url}/mcp", json=call, headers=server.headers() | accepted)
    print("recall" in answer.text, "mcp" in sys.modules)
"""


def test_a_server_imports_the_package_of_mcp_for_the_first_who_asks(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_MCP, f"sqlite:{tmp_path}/memory"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("False\nTrue True\n", "")
