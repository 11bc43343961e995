"""Programs that end while a model is at work: cleanly, whatever else they do, and nothing acknowledged is lost."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from recollect import Memory

pytest_plugins = ["support.model_files"]

FILL = """
import sys
{before}
from recollect import Memory
memory = Memory(sys.argv[1], embedder="local:" + sys.argv[2])
memory.remember_many([f"note {{n}} about gardens, rivers and the price of tea in town {{n % 17}}" for n in range(800)])
{after}
"""

WAYS = {
    "at once": ("", ""),
    "after a recall": ("", "memory.recall('tea')"),
    "with the model imported first": ("import onnxruntime, numpy", "memory.recall('tea')"),
    "with an error": ("", "memory.recall('tea')\ntry:\n    sys.exit(0)\nfinally:\n    memory.remember('last words')"),
    "in a handler of its own": (
        "import atexit\natexit.register(lambda: memory.recall('tea'))",
        "atexit.register(lambda: memory.remember('from the end'))",
    ),
    "in a thread that nobody waits for": (
        "import threading, time",
        "ask = lambda: [memory.recall('tea', limit=3) for _ in range(10_000)]\n"
        "for _ in range(4):\n    threading.Thread(target=ask, daemon=True).start()\ntime.sleep(0.3)",
    ),
    "in a thread that is waited for": (
        "import threading",
        "threading.Thread(target=lambda: [memory.recall('tea') for _ in range(5)]).start()",
    ),
    "after a fork": (
        "import os",
        "memory.recall('tea')\nif pid := os.fork():\n    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0\n"
        "else:\n    memory.remember('from the child')\n    memory.recall('tea')",
    ),
    "closed": ("", "memory.close()"),
    "dropped": ("", "del memory"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_program_ends_cleanly_while_vectors_are_made(
    way: str, tmp_path: Path, model_folder: Path, run: Callable[..., str]
) -> None:
    before, after = WAYS[way]
    run(FILL.format(before=before, after=after), str(tmp_path / "m"), str(model_folder))
    with Memory(tmp_path / "m", embedder="none") as memory:
        assert len(memory.list(limit=1000)) >= 800
        assert memory.verify() == []


def test_pytest_ends_cleanly_too(tmp_path: Path, model_folder: Path, run: Callable[..., str]) -> None:
    body = FILL.format(before="", after="").replace("sys.argv[1]", repr(str(tmp_path / "m")))
    body = body.replace("sys.argv[2]", repr(str(model_folder))).strip().replace("\n", "\n    ")
    (tmp_path / "test_it.py").write_text(f"def test_it():\n    {body}\n    globals()['kept'] = memory\n")
    script = "import subprocess, sys; subprocess.run([sys.executable, '-m', 'pytest', '-q', sys.argv[1]], check=True)"
    assert "1 passed" in run(script, str(tmp_path / "test_it.py")), sys.executable
