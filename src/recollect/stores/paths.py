"""Paths of stores that are folders: names as folders, what is there, and taking it away."""

from __future__ import annotations

import os
import re
import resource
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import cache

from recollect.stores.port import Place
from recollect.values.errors import InputError, UnreadableError

TRASH = ".trash-"
"""Folders that are going: moved away first, so that they are gone at once, and as a whole."""


def unreadable(error: OSError, path: str | os.PathLike[str]) -> UnreadableError:
    """Absent and unreadable are different things: what may be there must not be taken for nothing."""
    if isinstance(error, NotADirectoryError):
        problem = "something above it is a file, not a folder"
    else:
        problem = f"{error.strerror or error}. Check its owner and mode, and whether its disk is there"
    return UnreadableError(f"{os.fspath(path)} cannot be read: {problem}")


def path_exists(path: str | os.PathLike[str]) -> bool:
    """Whether a path names anything. UnreadableError if that cannot be told."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise unreadable(error, path) from error
    return True


def subfolders(path: str | os.PathLike[str]) -> list[str]:
    """The names of the folders in a folder, which may be missing."""
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unreadable(error, path) from error


_PLAIN = re.compile(r"[a-z0-9_][a-z0-9_.@+-]*")
_KEPT = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_.@+-")
_CODED = re.compile(r"=([A-Z])|((?:%[0-9a-f]{2})+)")


def folder_name(name: str) -> str:
    """A name as a folder: no two names share one, even where file names ignore case, and none leads elsewhere.

    Capitals are marked with `=`; what not every file system takes is written as the bytes `%2f`, also at the beginning
    what would hide the folder or look like an option.
    """
    if _PLAIN.fullmatch(name):
        return name
    return "".join(_coded(letter, first=not at) for at, letter in enumerate(name))


def _coded(letter: str, first: bool) -> str:
    if "A" <= letter <= "Z":
        return f"={letter}"
    if letter in _KEPT and not (first and letter in ".@+-"):
        return letter
    return "".join(f"%{byte:02x}" for byte in letter.encode())


def names_in(parent: str | os.PathLike[str]) -> list[str]:
    """The names whose folders are in a folder."""
    return list(dict.fromkeys(map(_name_of, subfolders(parent))))


def _name_of(folder: str) -> str:
    """A folder that was not made here has its own name."""
    name = _CODED.sub(lambda match: match[1] or _text_of(match[2]), folder)
    return name if folder_name(name).replace("=", "") == folder.replace("=", "") else folder


def _text_of(coded: str) -> str:
    return bytes.fromhex(coded.replace("%", "")).decode(errors="replace")


def existing_or_coded(parent: str, name: str) -> str:
    """As `folder_name`, but capitals stay as they are where the file system tells them apart, or where they did before.

    So the folders of plain files have the names that people gave.
    """
    coded = folder_name(name)
    plain = coded.replace("=", "")
    if plain == coded or path_exists(os.path.join(parent, coded)):
        return coded
    return plain if plain in subfolders(parent) or _tells_case(parent) else coded


@cache
def _tells_case(folder: str) -> bool:
    """Whether the file system that a folder is on, or will be, tells capitals from small letters."""
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    head, tail = os.path.split(folder)
    if tail.swapcase() == tail:
        return _tells_case(head) if head != folder else True
    try:
        return not os.path.samefile(folder, os.path.join(head, tail.swapcase()))
    except OSError:
        return True


def may_hold(holds: Callable[[Place], bool], place: Place) -> bool:
    """Whether a place holds something. One that cannot be read is listed too: whoever asks for it is told why."""
    try:
        return holds(place)
    except UnreadableError:
        return True


def empty_trash(folder: str | os.PathLike[str]) -> None:
    """Also finishes what a killed process began. What cannot be taken away now is left for the next time."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(TRASH):
                shutil.rmtree(os.path.join(folder, name), ignore_errors=True)


def check_apart(folder: str, *roots: str) -> None:
    """InputError if the folder of a copy is, or is inside, what the store itself looks into."""
    for root in roots:
        if os.path.commonpath([os.path.realpath(root), os.path.realpath(folder)]) == os.path.realpath(root):
            raise InputError("target", f"{folder} is inside the store; give a folder outside {root}")


def open_files() -> int:
    """How many files a store may keep open: half of what the system allows the process, and 512 at most."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 512 if soft == resource.RLIM_INFINITY else max(32, min(512, soft // 2))
