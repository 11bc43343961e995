"""Clears away what a run of tests started, also when the run is killed. A process of its own, beside the run."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil


def start(folder: Path) -> None:
    """Have the folder of a run cleared away when whoever began the run is gone."""
    program = [sys.executable, __file__, str(folder)]
    nothing = subprocess.DEVNULL
    # By way of a shell that leaves at once, so that nobody has to wait for it.
    detached = ["sh", "-c", '"$@" &', "sh", *program]
    subprocess.run(detached, check=True, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)


def owner(folder: Path) -> int:
    """The process that began the run."""
    return int(folder.name.split("-")[-2])


def processes(pid_file: Path, mark: Path) -> list[psutil.Process]:
    """The process that a file names and those that it started; none if that number is somebody else's by now."""
    try:
        first = psutil.Process(int(pid_file.read_text().split()[0]))
        if not any(str(mark) in word for word in first.cmdline()):
            return []
        return [first, *first.children(recursive=True)]
    except (OSError, IndexError, ValueError, psutil.NoSuchProcess):
        return []


def end(folder: Path) -> None:
    """Stop the server, or the pooler, that has this folder, and delete the folder."""
    for pooler in processes(folder / "pgbouncer.pid", folder):  # which has nothing to put in order
        with suppress(psutil.NoSuchProcess):
            pooler.kill()
    pid_file = folder / "data/postmaster.pid"
    _stop(processes(pid_file, folder / "data"))
    release(pid_file)
    shutil.rmtree(folder, ignore_errors=True)


def clear(folder: Path) -> None:
    """End all that a run started."""
    for _ in range(100):
        if not folder.exists():
            return
        for inner in [path for path in folder.iterdir() if path.is_dir()]:
            end(inner)
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.05)


def _stop(processes: list[psutil.Process]) -> None:
    """Quickly, and by its own hand: it then takes its shared memory with it. Who does not hear is killed."""
    for number in (signal.SIGCONT, signal.SIGQUIT, signal.SIGKILL):
        for process in processes if number != signal.SIGQUIT else processes[:1]:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        if number != signal.SIGCONT:
            processes = still(processes, 5)


def still(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Those that are not gone after some time. One that is dead is gone, though nobody has asked how it ended."""
    until = time.monotonic() + seconds
    while (processes := [process for process in processes if _alive(process)]) and time.monotonic() < until:
        time.sleep(0.01)
    return processes


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def release(pid_file: Path) -> None:
    """A server that was killed leaves a little shared memory, which belongs to nobody then, and its number, which
    keeps others away until somebody has asked how it ended."""
    try:
        lines = pid_file.read_text().splitlines()
    except OSError:
        return
    if len(lines) > 6 and lines[6].split():
        subprocess.run(["ipcrm", "-m", lines[6].split()[-1]], check=False, capture_output=True)
    pid_file.unlink()


def main(folder: Path) -> None:
    try:
        began = psutil.Process(owner(folder))
    except psutil.NoSuchProcess:
        return clear(folder)
    while folder.exists() and _alive(began):
        time.sleep(0.5)
    return clear(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
