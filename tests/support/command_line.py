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
import termios
from typing import Any

from click.testing import CliRunner

from recollect import Memory, Record
from recollect.cli.app import cli

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
    done = subprocess.run(
        [*MODULE, *words], input=input, env=CLEAN | env, capture_output=True, encoding="utf-8", timeout=120
    )
    assert "Traceback" not in done.stderr
    return done


def called(*words: str, input: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """The same in this process, which takes a tenth of the time."""
    kept = {name: None for name in os.environ if name not in CLEAN}
    done = CliRunner().invoke(cli, words, input=input, env=kept | env)
    assert "Traceback" not in done.stderr
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """A line for bash in which `recollect` is the command; the exit codes of its pipe are printed last, on stderr."""
    script = f'recollect() {{ "{sys.executable}" -m recollect "$@"; }}; {line}; echo "${{PIPESTATUS[@]}}" >&2'
    return subprocess.run(["bash", "-c", script], env=CLEAN, capture_output=True, encoding="utf-8", timeout=120)


def terminal(*words: str, answer: bytes = b"", columns: int = 80, **env: str) -> tuple[str, int]:
    """What a person sees who runs the command in a terminal and answers its question, and the exit code."""
    pid, screen = pty.fork()
    if not pid:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execve(sys.executable, [*MODULE, *words], CLEAN | {"TERM": "xterm-256color"} | env)
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
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    text = shown.decode().replace("\r\n", "\n")
    assert "Traceback" not in text
    return text, code
