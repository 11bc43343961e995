"""Moving a tenant to another server while it is used.

    copying   its rows are copied page by page; writers go on, and log the keys of what they change
    frozen    for some milliseconds nobody writes: the last changes follow, and what was compared is compared again
              where it changed. Then `home` says that the tenant is on the target, and writers go on there
    gone      the source has nothing of it any more, and says where it went

The row on `home` decides: until it names the target, the source is the tenant's server and the move can be taken back;
from then on it can only be finished. Each run has a name of its own that all servers must know, so a run that another
has taken over from can do nothing any more. Nothing else is remembered anywhere: a killed run is run again.
"""

from __future__ import annotations

import getpass
import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from recollect.stores.audit import Entry
from recollect.stores.port import Place
from recollect.stores.postgres.admin.nearest import not_moved
from recollect.stores.postgres.tables import PostgresTables
from recollect.stores.postgres.tenants import transfer
from recollect.stores.postgres.tenants.placement import HOME, PLACEMENT, Placement, lock_key
from recollect.stores.postgres.tenants.servers import Servers
from recollect.stores.postgres.tenants.transfer import Group, Key, Run, Side
from recollect.stores.tables.audit import AuditTable
from recollect.values.errors import ConcurrencyError, CorruptionError, InputError, NotFoundError, StoreError
from recollect.values.record import new_id, to_micros, utc_now

log = logging.getLogger("recollect.stores.postgres.tenants.moving")
T = TypeVar("T")
Progress = Callable[[str, int, int | None], None]
"""What is done, how much of it, and of how much."""


def _silent(what: str, done: int, total: int | None) -> None:
    pass


_PAGE = 500
_FEW = 20
"""Changes that may wait when writers are stopped."""
_ROUNDS = 50
_LOCK = 0.3
"""Seconds for which whoever writes may have to wait behind a move that waits for a long transaction."""
_PATIENCE = 60.0
"""Seconds after which a move gives up because somebody writes all the time."""
_STEADY = "ISOLATION LEVEL REPEATABLE READ"
_ROW = "SELECT state, server, move, mover, started_at, position FROM {s}.moves WHERE tenant = %s"
_COPIED, _UNLIKE = "copied", "unlike"


class MoveRow(NamedTuple):
    """What a server knows of the tenant's move."""

    state: Literal["copying", "frozen", "gone", "arriving"]
    server: str
    move: str
    mover: str
    started_at: int
    position: str


class MoveReceipt(msgspec.Struct, frozen=True):
    """What became of a move."""

    tenant: str
    source: str
    target: str
    state: Literal["moved", "rolled back", "there already"]
    move: str = ""
    by: str = ""
    rows: Mapping[str, int] = {}
    """By table."""
    checksum: str = ""
    """Of all rows, as they were when writers were stopped."""
    seconds: float = 0.0
    frozen_ms: float | None = None
    """For how long nobody could write; None if the run that stopped them was killed."""
    advice: str = ""
    """What is left to do on the target."""

    @property
    def memories(self) -> int:
        return self.rows.get("memories", 0)


class TakenOverError(ConcurrencyError):
    """Another run moves the tenant now."""

    def __init__(self, tenant: str) -> None:
        super().__init__(f"another run has taken over the move of {tenant}; this one has stopped and harmed nothing")


def move(servers: Servers, tenant: str, to: str, progress: Progress = _silent, *, empty: bool = False) -> MoveReceipt:
    """Move a tenant, or go on with a move that was stopped; one that has nothing yet only if it may be `empty`."""
    return Mover(servers, tenant, progress).move(to, empty)


def roll_back(servers: Servers, tenant: str) -> MoveReceipt:
    """Leave the tenant where it was, if the move has not come so far that it can only be finished."""
    return Mover(servers, tenant).roll_back()


class Mover:
    def __init__(self, servers: Servers, tenant: str, progress: Progress = _silent) -> None:
        self.tenant = tenant
        self._progress = progress
        self._started = time.monotonic()
        self._run = new_id()
        self._sides = {name: Side(name, server, tenant) for name, server in servers.named.items()}
        self._home = self._sides[HOME]
        self._move = ""
        self._frozen: float | None = None
        self._suspects: dict[Group, set[Key]] = {}
        """What differed when it was compared. Compared once more when nobody writes."""

    def move(self, to: str, empty: bool = False) -> MoveReceipt:
        if to not in self._sides:
            raise InputError("to", f"{to!r} is not the name of a server here; known: {', '.join(self._sides)}")
        placed, unfinished = self._placed(), self._unfinished()
        if unfinished is None:
            if placed.server == to:
                return self._receipt_without_move(to)
            self._source, self._target, self._move = self._side(placed.server), self._side(to), new_id()
            if not empty:
                self._check_name()
        else:
            self._resume(*unfinished)
            if self._target.name != to:
                raise InputError(
                    "to", f"{self.tenant} is being moved to {self._target.name}; finish that, or roll back"
                )
        if self._flipped(placed):
            return self._finish()
        self._claim()
        self._copy()
        self._compare()
        self._freeze()
        return self._finish()

    def roll_back(self) -> MoveReceipt:
        unfinished = self._unfinished()
        if unfinished is None:
            raise NotFoundError(f"{self.tenant} is not being moved: there is nothing to roll back")
        self._resume(*unfinished)
        with self._home.transaction() as run:
            # The same row decides for both: either this run of a move is over, or it has arrived.
            if not run.named(_GIVE_UP_HOME, to=self._target.name, move=self._move).rowcount:
                raise InputError(
                    "rollback",
                    f"{self.tenant} is on {self._target.name} already: run the move again to finish it, and move it "
                    f"back with --to {self._source.name}",
                )
        with self._target.transaction() as run:
            if run.named(_TURNED_AWAY, move=self._move).rowcount:
                transfer.remove_all(run)
        self._thaw()
        return self._receipt("rolled back")

    # Who is where

    def _side(self, name: str) -> Side:
        if name not in self._sides:
            raise InputError("servers", f"{self.tenant} is on the server {name!r}, whose URL was not given")
        return self._sides[name]

    def _placed(self) -> Placement:
        with self._home.transaction() as run:
            rows = run.rows(PLACEMENT)
        return Placement(*rows[0]) if rows else Placement()

    def _unfinished(self) -> tuple[Side, MoveRow] | None:
        """The source of a move that was begun: it is marked first, and unmarked last."""
        for side in self._sides.values():
            with side.transaction() as run:
                rows = [MoveRow(*row) for row in run.rows(_ROW)]
            if rows and rows[0].state in ("copying", "frozen"):
                return side, rows[0]
        return None

    def _resume(self, source: Side, row: MoveRow) -> None:
        self._source, self._target, self._move = source, self._side(row.server), row.move

    def _flipped(self, placed: Placement) -> bool:
        return placed.move == self._move and placed.server == self._target.name

    def _check_name(self) -> None:
        with self._source.transaction() as run:
            if not transfer.holds_something(run):
                raise NotFoundError(
                    f"there is nothing of a tenant {self.tenant} on {self._source.name}; to have it begin on "
                    f"{self._target.name}, pass --empty"
                )

    def _receipt_without_move(self, to: str) -> MoveReceipt:
        self._source = self._target = self._side(to)
        with self._target.transaction() as run:
            return self._receipt("there already", transfer.counts(run))

    # Beginning

    def _claim(self) -> None:
        """Tell all three that this run moves the tenant, so that no other does any more."""
        if self._source.server.facts.vectors != self._target.server.facts.vectors:
            raise InputError("to", "pgvector must be on both servers or on none; run `recollect db status` on each")
        with self._home.transaction() as run:
            run.named(_CLAIM_HOME, source=self._source.name, run=self._run)
        self._alone(self._source, self._leave)
        try:
            self._alone(self._target, self._receive)
        except InputError:
            self._thaw()
            raise

    def _leave(self, run: Run) -> None:
        """From now on writers log what they change. Those that a killed run has stopped may write again."""
        values = {"to": self._target.name, "move": self._move, "run": self._run, "at": to_micros(utc_now())}
        if not run.named(_LEAVE, **values).rowcount:
            raise StoreError(f"{HOME} says that {self.tenant} is on {self._source.name}, which says that it is not")

    def _receive(self, run: Run) -> None:
        """Let the target wait for the tenant, which it must have nothing of."""
        rows = [MoveRow(*row) for row in run.rows(_ROW)]
        state = rows[0].state if rows else None
        if state in ("copying", "frozen"):
            raise InputError("to", f"{self._target.name} and {self._source.name} are the same database")
        if state == "arriving" and rows[0].move == self._move:
            run.named("UPDATE {s}.moves SET mover = %(run)s WHERE tenant = %(tenant)s", run=self._run)
            return
        if state == "arriving":
            transfer.remove_all(run)  # of a run that did not know that it was rolled back
        elif transfer.holds_something(run):
            raise InputError("to", f"{self._target.name} holds something of {self.tenant} already; nothing was moved")
        values = {"source": self._source.name, "move": self._move, "run": self._run, "at": to_micros(utc_now())}
        run.named(_RECEIVE, **values)

    def _alone(self, side: Side, act: Callable[[Run], T]) -> T:
        """When nobody writes. Others wait meanwhile, so it gives way to long transactions and tries again."""
        until = time.monotonic() + _PATIENCE
        while True:
            alone = False
            try:
                with side.transaction(patience=_LOCK) as run:
                    run(_LOCKED, lock_key(side.server.location.schema, self.tenant))
                    alone = True
                    return act(run)
            except ConcurrencyError:
                if alone or time.monotonic() > until:
                    raise
            time.sleep(_LOCK)

    def _thaw(self) -> None:
        def act(run: Run) -> None:
            run("DELETE FROM {s}.changes WHERE tenant = %s")
            run.named("DELETE FROM {s}.moves WHERE tenant = %(tenant)s AND move = %(move)s", move=self._move)

        self._alone(self._source, act)

    # Copying

    def _copy(self) -> None:
        """Page by page. How far it came is written with each page, so none is copied twice."""
        with self._target.transaction() as run:
            position = MoveRow(*run.rows(_ROW)[0]).position
        if position == _COPIED:
            return
        reached, after = msgspec.json.decode(position) if position else (0, None)
        with self._source.transaction() as run:
            total, done = transfer.counts(run)["memories"], 0
        for number, group in enumerate(transfer.groups(self._source)):
            edge: Key | None = tuple(after) if number == reached and after else None
            while number >= reached:
                with self._source.transaction(_STEADY) as run:
                    keys = transfer.page(run, group, edge, _PAGE)
                    rows = transfer.copied(run, group, keys)
                if not keys:
                    break
                edge = keys[-1]
                self._put(msgspec.json.encode((number, edge)).decode(), group, (), rows)
                done += len(keys) if group.what == "memory" else 0
                self._progress("copying", done, total)
        self._put(_COPIED)

    def _put(
        self, position: str, group: Group | None = None, over: Iterable[Key] = (), rows: Mapping[str, list[str]] = {}
    ) -> None:
        """Write rows into the target, in place of those that are there of some keys."""
        with self._target.transaction() as run:
            self._still(run.named(_ARRIVES, run=self._run, position=position))
            if group is not None:
                transfer.remove(run, group, over)
                transfer.write(run, rows)

    def _still(self, cursor: Any) -> None:
        """What the servers keep of a move is changed by the run that moves the tenant, and by no other."""
        if not cursor.rowcount:
            raise TakenOverError(self.tenant)

    def _follow(self) -> int:
        """Copy what was changed, and compare it. Returns how many changes there were."""
        with self._source.transaction(_STEADY) as run:
            changes = run.rows("SELECT transaction, workspace, what, key FROM {s}.changes WHERE tenant = %s")
        if not changes:
            return 0
        # First, because what was put into a workspace of the same name later is in the log as well.
        for workspace in {workspace for _, workspace, what, _ in changes if what == "drop"}:
            with self._target.transaction() as run:
                self._still(run.named(_ARRIVES, run=self._run, position=_COPIED))
                transfer.remove_all(run, workspace)
        for group in transfer.groups(self._source):
            keys = {transfer.key_of(w, key) for _, w, what, key in changes if what == group.what}
            if group.what == "head":
                keys |= {(workspace,) for _, workspace, what, _ in changes if what == "drop"}
            if keys:
                self._copy_again(group, keys)
        with self._source.transaction() as run:
            run("DELETE FROM {s}.changes WHERE tenant = %s AND transaction = ANY(%s)", [row[0] for row in changes])
        return len(changes)

    def _catch_up(self) -> None:
        """Until little is left, or it is clear that others write as quickly."""
        for _ in range(_ROUNDS):
            if self._follow() <= _FEW:
                return

    def _copy_again(self, group: Group, keys: set[Key]) -> None:
        with self._source.transaction(_STEADY) as run:
            rows, here = transfer.copied(run, group, keys), transfer.digest_of(run, group, keys)
        self._put(_COPIED, group, keys, rows)
        with self._target.transaction(_STEADY) as run:
            copy_digest = transfer.digest_of(run, group, keys)
        suspects = self._suspects.setdefault(group, set())
        suspects -= keys
        suspects |= transfer.differing(here, copy_digest)

    # Comparing

    def _compare(self) -> None:
        """All rows, page by page, while others write. Where it differs, it was changed, or is compared again later."""
        self._catch_up()
        with self._source.transaction() as run:
            total, done = transfer.counts(run)["memories"], 0
        for group in transfer.groups(self._source):
            edge: Key | None = None
            suspects = self._suspects.setdefault(group, set())
            while True:
                with self._source.transaction(_STEADY) as run:
                    keys = transfer.page(run, group, edge, _PAGE)
                    until = keys[-1] if len(keys) == _PAGE else None
                    here = transfer.digest_between(run, group, edge, until)
                with self._target.transaction(_STEADY) as run:
                    copy_digest = transfer.digest_between(run, group, edge, until)
                suspects |= transfer.differing(here, copy_digest)
                done += len(keys) if group.what == "memory" else 0
                self._progress("comparing", done, total)
                if until is None:
                    break
                edge = until

    # The moment

    def _freeze(self) -> None:
        """Stop the writers, let the last changes follow, and say that the tenant is on the target."""
        self._catch_up()
        self._frozen = time.monotonic()
        self._alone(self._source, self._stop)
        with ExitStack() as stack:
            self._follow()
            self._compare_suspects()
            with self._source.transaction() as run:
                here, limits = transfer.counts(run), transfer.limits_of(run)
            with self._target.transaction() as run:
                self._still(run.named(_ARRIVES, run=self._run, position=_COPIED))
                transfer.write_limits(run, limits)
            # It stays as it is now, to be compared as a whole when writers need not wait for it any more.
            then = stack.enter_context(self._target.transaction(_STEADY))
            if (copy_counts := transfer.counts(then)) != here:
                raise _unlike(self.tenant, [name for name in here if here[name] != copy_counts[name]])
            with self._home.transaction() as run:
                self._still(run.named(_FLIP, to=self._target.name, move=self._move, run=self._run))
            self._open()
            self._frozen = time.monotonic() - self._frozen
            with self._source.transaction() as run:
                before, after = transfer.sums(run), transfer.sums(then)
            if before != after:
                self._keep_both()

    def _keep_both(self) -> None:
        """The target is written already. No later run may empty the source before somebody has looked."""
        with self._source.transaction() as run:
            run.named("UPDATE {s}.moves SET position = %(unlike)s WHERE tenant = %(tenant)s", unlike=_UNLIKE)
        raise self._incomplete_copy()

    def _incomplete_copy(self) -> CorruptionError:
        schema = self._source.server.location.schema
        return CorruptionError(
            f"{self.tenant} is on {self._target.name} now, but what was copied there is not all that "
            f"{self._source.name} had. Both are kept. When you have compared them, have {self._source.name} emptied: "
            f"UPDATE {schema}.moves SET position = '' WHERE tenant = …, and run the move again"
        )

    def _stop(self, run: Run) -> None:
        self._frozen = time.monotonic()
        self._still(run.named(_FREEZE, run=self._run))

    def _compare_suspects(self) -> None:
        for group, keys in self._suspects.items():
            if keys:
                with self._source.transaction() as run:
                    here = transfer.digest_of(run, group, keys)
                with self._target.transaction() as run:
                    copy_digest = transfer.digest_of(run, group, keys)
                if transfer.differing(here, copy_digest):
                    raise _unlike(self.tenant, group.tables)

    def _open(self) -> None:
        """Let writers in."""
        with self._target.transaction() as run:
            arrived = "state = 'arriving' AND move = %(move)s"
            run.named(f"DELETE FROM {{s}}.moves WHERE tenant = %(tenant)s AND {arrived}", move=self._move)

    # Finishing

    def _finish(self) -> MoveReceipt:
        """The tenant is on the target. Until the source is empty this can be done again."""
        self._open()
        self._progress("finishing", 0, None)
        with self._source.transaction() as run:
            if [MoveRow(*row).position for row in run.rows(_ROW)] == [_UNLIKE]:
                raise self._incomplete_copy()
        with self._source.transaction() as run:
            rows, checked = transfer.counts(run), transfer.sums(run)
            ((indexes,),) = run.rows("SELECT count(nearest) FROM {s}.places WHERE tenant = %s")
        checksum = hashlib.sha256(msgspec.json.encode(checked, order="sorted")).hexdigest()
        receipt = self._receipt("moved", rows, checksum)
        self._log(receipt)
        with self._source.transaction() as run:
            self._still(run.named(_GONE, move=self._move))
            transfer.remove_all(run)
            run("DELETE FROM {s}.changes WHERE tenant = %s")
        advice = not_moved(self.tenant, indexes, self._target.server.location)
        if advice:
            log.warning("%s", advice)
        return msgspec.structs.replace(receipt, seconds=time.monotonic() - self._started, advice=advice)

    def _receipt(
        self, state: Literal["moved", "rolled back", "there already"], rows: Mapping[str, int] = {}, checksum: str = ""
    ) -> MoveReceipt:
        frozen = None if self._frozen is None else round(1000 * self._frozen, 1)
        seconds = time.monotonic() - self._started
        ends = self._source.name, self._target.name
        return MoveReceipt(self.tenant, *ends, state, self._move, _whoami(), rows, checksum, seconds, frozen)

    def _log(self, receipt: MoveReceipt) -> None:
        """In the tenant's own audit log, once: the entry has the name of the move."""
        server, place = self._target.server, Place(self.tenant, None)
        summary = {"from": receipt.source, "to": receipt.target, "by": receipt.by, "checksum": receipt.checksum}
        details = {**summary, "rows": dict(receipt.rows)}
        message = f"moved the tenant from the server {receipt.source} to {receipt.target}"
        entry = Entry(0, self._move, utc_now(), "move", message, None, {"details": details})
        with server.writing([place]) as transaction:
            sql = "SELECT FROM {s}.audit WHERE tenant = %s AND workspace = '' AND id = %s"
            if not transaction.execute(sql, (self.tenant, self._move)).rowcount:
                AuditTable(PostgresTables(server, {})).append(place, entry)


def _unlike(tenant: str, tables: Iterable[str]) -> CorruptionError:
    return CorruptionError(
        f"the copy of {tenant} is not like what was copied (in {', '.join(tables)}). Nothing was deleted; run the move "
        "again, or with --rollback"
    )


def _whoami() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


_LOCKED = "SELECT pg_advisory_xact_lock(x.key) FROM (SELECT %s::text, %s::bigint AS key) x"
_CLAIM_HOME = """INSERT INTO {s}.placements AS p (tenant, server, mover) VALUES (%(tenant)s, %(source)s, %(run)s)
    ON CONFLICT (tenant) DO UPDATE SET mover = excluded.mover"""
_GIVE_UP_HOME = """UPDATE {s}.placements SET mover = ''
    WHERE tenant = %(tenant)s AND NOT (server = %(to)s AND move = %(move)s)"""
_FLIP = """UPDATE {s}.placements SET server = %(to)s, move = %(move)s, mover = ''
    WHERE tenant = %(tenant)s AND mover = %(run)s"""
_LEAVE = """INSERT INTO {s}.moves AS m (tenant, state, server, move, mover, started_at)
    VALUES (%(tenant)s, 'copying', %(to)s, %(move)s, %(run)s, %(at)s)
    ON CONFLICT (tenant) DO UPDATE SET state = 'copying', mover = excluded.mover
    WHERE m.move = excluded.move AND m.state IN ('copying', 'frozen')"""
_FREEZE = """UPDATE {s}.moves SET state = 'frozen'
    WHERE tenant = %(tenant)s AND mover = %(run)s AND state = 'copying'"""
_GONE = """UPDATE {s}.moves SET state = 'gone', mover = ''
    WHERE tenant = %(tenant)s AND move = %(move)s AND state = 'frozen'"""
_RECEIVE = """INSERT INTO {s}.moves (tenant, state, server, move, mover, started_at)
    VALUES (%(tenant)s, 'arriving', %(source)s, %(move)s, %(run)s, %(at)s)
    ON CONFLICT (tenant) DO UPDATE SET state = excluded.state, server = excluded.server, move = excluded.move,
    mover = excluded.mover, started_at = excluded.started_at, position = ''"""
_ARRIVES = """UPDATE {s}.moves SET position = %(position)s
    WHERE tenant = %(tenant)s AND mover = %(run)s AND state = 'arriving'"""
_TURNED_AWAY = """UPDATE {s}.moves SET state = 'gone', mover = '', position = ''
    WHERE tenant = %(tenant)s AND move = %(move)s AND state = 'arriving'"""
