"""Reading everything on disk again, and comparing it with every checksum and with the audit log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from recollect.stores.files import files
from recollect.stores.files.audit_file import last_changes
from recollect.stores.files.fileset import AUDIT, TOMBSTONES, UNREAD, FileSet
from recollect.stores.files.formats import Format
from recollect.stores.files.replay import Replay
from recollect.stores.port import Damage, Place

_TRIES = 20


def verify(place: Place, fileset: FileSet, format: Format) -> list[Damage]:
    """Through descriptors of its own, without the index; once more where files were replaced meanwhile."""
    damage: list[Damage] = []
    for _ in range(_TRIES):
        before = _inodes(fileset)
        damage = _verify(place, fileset, format)
        if not damage or before == _inodes(fileset):
            break
    return damage


def _inodes(fileset: FileSet) -> list[int]:
    """Another one where a workspace was dropped and begun anew, or compacted."""
    return [fileset.identity(name).inode for name in (fileset.main, AUDIT, TOMBSTONES)]


def _verify(place: Place, fileset: FileSet, format: Format) -> list[Damage]:
    fresh = Replay(place, format)
    logged = last_changes(files.read_whole(fileset.paths[AUDIT]).splitlines())
    identities = fileset.identities(fileset.read)
    ends = fileset.complete(fileset.note(), identities)
    for name in fileset.read:
        # What is added meanwhile is none of this, and what is not complete yet is no damage.
        data = files.read_whole(fileset.paths[name])[: ends[name].size]
        for line in files.lines(data):
            fresh.read(name, line)
    damage = list(fresh.damage.values())
    return damage if format.rewrites else [*damage, *_compared_with_audit(fresh, fileset, logged)]


def _compared_with_audit(replay: Replay, fileset: FileSet, before: Mapping[str, bool]) -> Iterator[Damage]:
    """Memories that are gone from the log of a session although nobody deleted them, or there although somebody did.

    `before` is what the audit log said before the session was read. What it says otherwise now was changed meanwhile.
    """
    after = last_changes(files.read_whole(fileset.paths[AUDIT]).splitlines())
    stored = {ident: is_stored for ident, is_stored in after.items() if before.get(ident) is is_stored}
    rows = {ident for ident, row in replay.rows.items() if row is not None}
    back = [ident for ident in rows if stored.get(ident) is False]
    if back:
        problem = f"has lost its end: {len(back):,} left out, which the audit log says were forgotten ({back[0]})"
        yield Damage(TOMBSTONES, problem)
    lost = [
        ident for ident, was_stored in stored.items() if was_stored and ident not in rows and ident not in replay.tombs
    ]
    unreadable = sum(name == fileset.main for name, _ in replay.damage) + len(
        files.read_whole(fileset.path(UNREAD)).splitlines()
    )
    if len(lost) > unreadable:  # what cannot be read is reported line by line
        problem = f"has lost {len(lost) - unreadable:,}, which the audit log says were stored (such as {lost[-1]})"
        yield Damage(fileset.main, problem)
