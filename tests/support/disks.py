"""Disks that are full, small or not to be written, in a mount namespace that ends with its process."""

from __future__ import annotations

import hashlib
import subprocess
from functools import cache
from pathlib import Path

import pytest

NAMESPACES = (("unshare", "--mount"), ("unshare", "--mount", "--map-root-user"))


@cache
def _namespace() -> tuple[str, ...] | None:
    """What starts a process that may mount, if this system allows that."""
    for command in NAMESPACES:
        try:
            if subprocess.run([*command, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True).returncode == 0:
                return command
        except OSError:
            continue
    return None


def mounted(*commands: str) -> tuple[str, ...]:
    """The beginning of a command line, for a process that sees what these shell commands have mounted."""
    namespace = _namespace()
    if namespace is None:
        pytest.skip("this system does not allow mounting, not even in a namespace")
    return (*namespace, "sh", "-ec", "; ".join([*commands, 'exec "$@"']), "sh")


def small_disk(path: Path, size: str) -> tuple[str, ...]:
    path.mkdir(parents=True, exist_ok=True)
    return mounted(f"mount -t tmpfs -o size={size} tmpfs '{path}'")


def read_only_disk(path: Path) -> tuple[str, ...]:
    return mounted(f"mount --bind '{path}' '{path}'", f"mount -o remount,bind,ro '{path}'")


def fingerprint(folder: Path) -> dict[str, str]:
    """What every file under a folder holds."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
