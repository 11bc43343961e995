"""The files of one place, appended to all at once or not at all, and replaced one by one.

While files are written, a note in the lock file says how long each was and will be. Readers go by it, and so does
whoever comes after a writer that died: what is not complete is taken back, what is complete stays.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from recollect.stores.files import files
from recollect.stores.files.files import AppendOnly, FileIdentity
from recollect.stores.files.lock import Lock, LockNote, Patience, read_note
from recollect.stores.paths import path_exists

CHANGES, VECTORS, TOMBSTONES, SHELVES = "changes.jsonl", "vectors.jsonl", "tombstones.jsonl", "shelves.jsonl"
UNDO, AUDIT = "undo.jsonl", "audit.jsonl"
COUNTER, AUDITED, UNREAD = "counter", "audited", "unread.jsonl"
INDEX_FILE = "index.db"
"""Derived from the others. SQLite has more files beside it whose names begin like this."""


class FileSet:
    """Which files there are. It opens none, and is for any number of threads."""

    def __init__(self, folder: str, memories: str, main: str) -> None:
        self.folder = folder
        self.main = main
        """The name of the file of memories."""
        self.lock_path = os.path.join(folder, "lock")
        beside = (CHANGES, VECTORS, TOMBSTONES, SHELVES, UNDO, AUDIT)
        self.paths = {main: memories, **{name: os.path.join(folder, name) for name in beside}}
        self._more_paths: dict[str, str] = {}
        """Of other files that were asked for."""
        self.log = (main, CHANGES, VECTORS, TOMBSTONES)
        """Those that say which memories there are."""
        self.read = (*self.log, SHELVES)
        """Those that are read into a state."""

    @property
    def main_path(self) -> str:
        return self.paths[self.main]

    def path(self, name: str) -> str:
        path = self.paths.get(name) or self._more_paths.get(name)
        if path is None:
            path = self._more_paths[name] = os.path.join(self.folder, name)
        return path

    def identity(self, name: str) -> FileIdentity:
        return files.identity(self.path(name))

    def identities(self, names: Iterable[str]) -> dict[str, FileIdentity]:
        return {name: files.identity(self.paths[name]) for name in names}

    def exists(self) -> bool:
        if path_exists(self.main_path):
            return True
        return path_exists(self.folder) and any(map(path_exists, self.paths.values()))

    def size(self, *more: str) -> int:
        return sum(self.identity(name).size for name in (*self.paths, *more))

    def note(self) -> LockNote:
        return read_note(self.lock_path)

    def complete(self, note: LockNote, identities: Mapping[str, FileIdentity]) -> dict[str, FileIdentity]:
        """How far each file can be read: to its end, or to where an unfinished write began."""
        # The audit log may lag behind: what it lacks is added by whoever writes next.
        current = {name: self.identity(name) for name in note.began if name == UNDO} | dict(identities)
        writing = {
            name: (size, note.ends.get(name, size))
            for name, (inode, size) in note.began.items()
            if name in current and current[name].inode == inode
        }
        if all(current[name].size >= end for name, (_, end) in writing.items()):
            return dict(identities)
        return {
            name: FileIdentity(was.inode, min(was.size, writing[name][0])) if name in writing else was
            for name, was in identities.items()
        }


class Appender:
    """The writer's side: the lock, and descriptors that are open only while it is held. For one thread at a time."""

    def __init__(self, fileset: FileSet, patience: Patience) -> None:
        self._fileset = fileset
        self.lock = Lock(fileset.lock_path, patience)
        self._files = {name: AppendOnly(path) for name, path in fileset.paths.items()}
        self.uncut: dict[str, int] = {}
        """While something is written, and if that failed until it is taken back: the sizes before it."""

    def file(self, name: str) -> AppendOnly:
        return self._files[name]

    def recover(self, left: LockNote) -> str:
        """What was done about what a killed process was writing: `taken back`, `unlogged` if it is all there but not
        in the audit log, or nothing."""
        if self.uncut and left.pid == os.getpid():  # this process's own
            try:
                self.cut()
            except OSError:
                return ""  # the next write tries again
            self.lock.settle()
            return "taken back"
        self.uncut = {}
        now = {name: self._fileset.identity(name) for name in left.began if name in self._files}
        same = {name for name, (inode, _) in left.began.items() if name in now and now[name].inode == inode}
        missing = {name for name in same if now[name].size < left.ends[name]}
        outcome = ""
        if same == left.began.keys() and missing - {AUDIT}:
            for name in same:
                if self._files[name].open():
                    self._files[name].cut(left.began[name][1])
            outcome = "taken back"
        elif same == left.began.keys() and missing:
            return "unlogged"  # the note stays until it is logged
        self.lock.settle()
        return outcome

    def append(self, parts: Mapping[str, bytes], line_ends: Mapping[str, int], *, durable: bool = True) -> None:
        """After an error or interrupt nothing of it is left, or whoever comes next removes it.

        `line_ends` are the sizes up to which each file is known to end with a whole line.
        """
        self.cut()
        began: dict[str, tuple[int, int]] = {}
        starts: dict[str, int] = {}
        fresh = False
        for name in parts:
            file = self._files[name]
            if not file.open():
                fresh = file.open(create=True)
            inode, size, _ = file.identity()
            began[name] = inode, size
            # A line that somebody left without its end must not become a part of ours.
            torn = size > 0 and size != line_ends.get(name) and file.read(size - 1, size) != b"\n"
            starts[name] = size + torn
        if fresh:
            files.sync_folder(self._fileset.folder)
            files.sync_folder(os.path.dirname(self._fileset.paths[self._fileset.main]))
        several = len(parts) - (AUDIT in parts) > 1 or any(
            parts.get(name, b"").count(b"\n") > 1 for name in (self._fileset.main, SHELVES)
        )
        ends = {name: starts[name] + len(data) for name, data in parts.items()}
        before = {name: size for name, (_, size) in began.items()}
        self.lock.announce(began, ends, durable=several and durable)
        self.uncut, self.lock.unsettled = before, True
        try:
            for name, data in parts.items():
                self._files[name].append(data if starts[name] == began[name][1] else b"\n" + data)
            for name in _synced(parts) if durable else ():
                self._files[name].sync()
            self.uncut, self.lock.unsettled = {}, False
        except BaseException:
            self.cut()
            raise

    def cut(self) -> None:
        """Take back what a failed write left behind. If that fails too, the note in the lock file stays."""
        for name, size in self.uncut.items():
            if self._files[name].open():
                self._files[name].cut(size)
        if self.uncut:
            self.uncut = {}
            self.lock.unsettled = False

    def sync(self, *names: str) -> None:
        for name in names:
            if self._files[name].open():
                self._files[name].sync()

    def release(self) -> None:
        """Also closes the files. An OSError means that the note could not be written."""
        try:
            self.lock.release()
        finally:
            self.close_files()

    def close_files(self) -> None:
        for file in self._files.values():
            file.close()

    def let_go(self) -> None:
        """In the middle of whatever it was."""
        self.close_files()
        self.lock.let_go()

    def abandon(self) -> None:
        """In a forked child: the parent's lock is the parent's."""
        self.close_files()
        self.lock.forget()


def _synced(parts: Mapping[str, bytes]) -> list[str]:
    """The audit log follows without waiting: what it would lose in a power cut is found missing and added again."""
    return list(parts) if list(parts) == [AUDIT] else [name for name in parts if name != AUDIT]
