"""The command in a process of its own, in a shell and in a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Mapping, Sequence
from typing import Any

from click.testing import CliRunner

from recollect import Memory, Record
from recollect.cli.app import cli
from support.fork_server import fork_server

SECRET = "AKIA" + "Z7QX4MPL2RWT9KDN"
MODULE = [sys.executable, "-m", "recollect"]
ANSI = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")

CLEAN = {
    name: value
    for name, value in os.environ.items()
    if (not name.startswith("RECOLLECT_") or name == "RECOLLECT_EMBEDDER")
    and name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "PYTHONUNBUFFERED")
}


def store(*texts: str, **fields: Any) -> list[Record]:
    """Memories to start with, stored by this process."""
    with Memory("./memory") as memory:
        return memory.remember_many([{"content": text, **fields} for text in texts])


def recollect(*words: str, input: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """The command in a process that is forked from one that has imported it; `started` is the same from nothing."""
    done = forked(words, CLEAN | env, input)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def forked(words: Sequence[str], env: Mapping[str, str], input: str = "") -> subprocess.CompletedProcess[str]:
    """The same in any environment."""
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        stdin.write(input.encode())
        stdin.seek(0)
        files = [stdin.fileno(), stdout.fileno(), stderr.fileno()]
        fork_server().start(words, env, files, terminal=False)
        code = fork_server().wait()
        for file in (stdout, stderr):
            file.seek(0)
        printed, problem = stdout.read().decode(), stderr.read().decode()
    return subprocess.CompletedProcess(words, code, printed, problem)


def started(*words: str, input: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """The command in a Python of its own, with pipes."""
    done = subprocess.run(
        [*MODULE, *words], input=input, env=CLEAN | env, capture_output=True, encoding="utf-8", timeout=120
    )
    assert "Traceback" not in done.stderr
    return done


def called(*words: str, input: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """The same in this process, which takes a tenth of the time."""
    removed = {name: None for name in os.environ if name not in CLEAN}
    done = CliRunner().invoke(cli, words, input=input, env=removed | env)
    assert "Traceback" not in done.stderr
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """A line for bash in which `recollect` is the command; the exit codes of its pipe are printed last, on stderr."""
    script = f'recollect() {{ "{sys.executable}" -m recollect "$@"; }}; {line}; echo "${{PIPESTATUS[@]}}" >&2'
    return subprocess.run(["bash", "-c", script], env=CLEAN, capture_output=True, encoding="utf-8", timeout=120)


def terminal(*words: str, answer: bytes = b"", columns: int = 80, **env: str) -> tuple[str, int]:
    """What a person sees who runs the command in a terminal and answers its question, and the exit code."""
    screen, other_end = pty.openpty()
    fcntl.ioctl(other_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    fork_server().start(words, CLEAN | {"TERM": "xterm-256color"} | env, [other_end] * 3, terminal=True)
    os.close(other_end)
    shown, asked = b"", False
    while True:
        # A key that interrupts can fall just before the program waits for keys; a person would press it again.
        if asked and answer == b"\x03" and not select.select([screen], [], [], 1)[0]:
            os.write(screen, answer)
        try:
            part = os.read(screen, 65536)
        except OSError:  # the process has ended
            break
        if not part:
            break
        shown += part
        if answer and not asked and b"[y/N]" in shown:
            os.write(screen, answer)
            asked = True
    os.close(screen)
    code = fork_server().wait()
    text = shown.decode().replace("\r\n", "\n")
    assert "Traceback" not in text, text
    return text, code
