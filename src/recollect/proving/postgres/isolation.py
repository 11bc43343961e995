"""Attacks on the wall between tenants: how one is tried on a real server, and how to tell that it failed.

Three tenants that nobody else knows: a victim who has things, an attacker who has the like, and a phantom who has
nothing. An attack on the victim must be answered exactly as the same attack on the phantom: whatever differs, be it a
count, an error or a plan, tells that the victim exists. And what the victim keeps secret must be in no answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, NamedTuple

from recollect.stores.port import Place
from recollect.stores.postgres import words
from recollect.stores.postgres.admin.setup import TABLES
from recollect.stores.postgres.connections import Location, driver
from recollect.stores.postgres.server import Server
from recollect.stores.postgres.statements import literal, whose

Script = Sequence[str]
"""Statements of one transaction, of which the last one's answer counts."""
Verdict = Literal["held", "leaked", "unproven", "limit"]
DUD = "the victim does not see its own rows either, so nothing was proven"
_REFUSALS = ("42501", "0A000", "22023")
"""No right to it; not under row-level security; there is no such role."""
_TOO_MUCH = "is more than a member of recollect_app: give the application a login that is not"
_SHARD = re.compile(r"(?<=[a-z])_[0-9]{5,}\b")
_WORKER = re.compile(r"\bon [^\s:]+:[0-9]+|host=\S+ port=[0-9]+")
_COLUMNS = {"search": "tenant, workspace, seq, part"}
"""What the application may read of a table, where that is not all."""


class TenantNames(NamedTuple):
    """What an attacker may know or guess of a tenant."""

    tenant: str
    workspace: str
    id: str
    seq: int
    audit: str
    shelf: str
    key: str
    conversation: str

    @property
    def word(self) -> str:
        """A word as the index has it, with the key of its place."""
        return words.place_key(Place(self.tenant, self.workspace))

    def of_tenant(self, text: str) -> str:
        """The text with everything that is only a name taken out, so that two tenants can be compared."""
        for name in ("id", "audit", "key", "conversation", "tenant", "word"):
            text = text.replace(getattr(self, name), f"<{name}>")
        return text


class ScriptOutput(NamedTuple):
    """Everything that a script brings to light."""

    rows: tuple[Any, ...]
    notices: tuple[str, ...]
    """Notices, what kind of statement it was, and how many rows it was about."""
    error: str = ""
    state: str = ""

    @property
    def changed(self) -> bool:
        """Whether the last statement was a change of at least one row."""
        return bool(self.notices) and re.fullmatch(r"(UPDATE|DELETE|INSERT 0) [1-9]\d*", self.notices[-1]) is not None

    @property
    def summary(self) -> str:
        """Without what was found, which may be anybody's."""
        return (
            f"error {self.state}"
            if self.error
            else f"{len(self.rows)} rows, {self.notices[-1] if self.notices else ''}"
        )

    @property
    def text(self) -> str:
        """All of it, in an order that does not depend on the plan.

        No script has an ORDER BY, so a parallel plan may return the same rows and notices in another order each time.
        """
        return "\n".join([*sorted(map(repr, self.rows)), *sorted(self.notices), self.error])


class AttackResult(NamedTuple):
    """What became of an attack."""

    name: str
    tried: str
    verdict: Verdict
    happened: str


class Attack(NamedTuple):
    """Scripts that try the same in several ways, or a function that returns what leaked."""

    name: str
    tried: str
    """For people: what was tried."""
    tries: Sequence[Script] = ()
    expect: Literal["same", "nothing", "refused"] = "same"
    """Answered as for a phantom; besides, no rows at all; or refused for lack of a right."""
    control: bool = True
    """Whether the victim, doing the same, finds something: else the attack proves nothing."""
    says: bool = True
    """Whether the transaction says which tenant it is of."""
    login: bool = False
    """Whether it is about what the login may become, and not what a transaction of the store may."""
    by: Callable[[Siege], str] | None = None


class Siege:
    """One deployment, with the three tenants on it."""

    def __init__(
        self, server: Server, run: str, victim: TenantNames, attacker: TenantNames, phantom: TenantNames, secret: str
    ) -> None:
        """`run` is what the names of the three begin with, and nobody else's."""
        self.server = server
        self.run = run
        self.victim, self.attacker, self.phantom = victim, attacker, phantom
        self.secret = secret
        self.location: Location = server.location
        self.tables = [*TABLES, *(["vectors"] if server.facts.vectors else [])]
        self._connection: Any = None
        """The connection of the attack that is being tried."""

    def suffer(self, attack: Attack) -> AttackResult:
        """Try an attack, on a connection of its own. What it changed is taken back."""
        with self.connected() as self._connection:
            try:
                return self._suffered(attack)
            finally:
                self._connection = None

    def _suffered(self, attack: Attack) -> AttackResult:
        before = self.holdings(self.victim)
        problem = attack.by(self) if attack.by is not None else self._try_all(attack)
        if not problem and self.holdings(self.victim) != before:
            problem = "what the victim has was changed"
        if not problem:
            return AttackResult(attack.name, attack.tried, "held", _describe_held(attack))
        if problem == DUD:
            return AttackResult(attack.name, attack.tried, "unproven", problem)
        steps_down = attack.login and self.server.facts.role is not None
        advice = f"; {self.server.facts.user} {_TOO_MUCH}" if steps_down else ""
        return AttackResult(attack.name, attack.tried, "limit" if steps_down else "leaked", problem + advice)

    def _try_all(self, attack: Attack) -> str:
        return next(filter(None, (self._try(attack, script) for script in attack.tries)), "")

    def _try(self, attack: Attack, script: Script) -> str:
        whose_turn = self.attacker.tenant if attack.says else None
        real = self.answer(script, self.victim, whose_turn)
        none = self.answer(script, self.phantom, whose_turn)
        shown = _shortened(self.filled(script[-1], self.victim))
        if self.secret in real.text:
            return f"{shown} showed what the victim keeps secret"
        if self._plain(self.victim, real) != self._plain(self.phantom, none):
            return f"{shown} was answered otherwise than for a tenant that does not exist: {real.summary}"
        if attack.expect == "refused" and real.state not in _REFUSALS:
            return f"{shown} was not refused: {real.summary}"
        if attack.expect != "refused" and real.changed:
            return f"{shown} changed rows: {real.summary}"
        if attack.expect == "nothing" and (real.rows or real.error):
            return f"{shown} was answered: {real.summary}"
        refused_to_all = self.server.facts.citus and bool(none.error)  # such as functions that no worker has
        if attack.control and attack.expect != "refused" and not refused_to_all and self._dud(script, none):
            blank = not none.rows and not none.error
            return DUD if blank else f"{shown} was answered as to the victim itself: {real.summary}"
        return ""

    def _dud(self, script: Script, none: ScriptOutput) -> bool:
        own = self.answer(script, self.victim, self.victim.tenant)
        return self._plain(self.victim, own) == self._plain(self.phantom, none)

    def _plain(self, names: TenantNames, output: ScriptOutput) -> str:
        """An answer without names. On Citus a name is also enough to work out which shard and worker a tenant is on."""
        text = names.of_tenant(output.text)
        return _WORKER.sub("<worker>", _SHARD.sub("", text)) if self.server.facts.citus else text

    def answer(self, script: Script, about: TenantNames, tenant: str | None) -> ScriptOutput:
        """What a transaction is told that says it is a tenant's, and is rolled back."""
        with self._cleared() as connection, _listened(connection) as notices:
            for statement in (*self.beginning(tenant), "SET LOCAL lock_timeout = '1s'"):  # nobody is to wait for this
                connection.execute(statement)
            rows: tuple[Any, ...] = ()
            try:
                for statement in script:
                    rows, status = _executed(connection, self.filled(statement, about))
                    notices.append(status)
            except driver().Error as error:
                return ScriptOutput((), tuple(notices), _whole(error), error.sqlstate or "")
            return ScriptOutput(rows, tuple(notices))

    def beginning(self, tenant: str | None) -> list[str]:
        """As the store begins a transaction, and with its role; for nobody without a tenant."""
        begin = self.server.prefix(tenant or "")
        return begin if tenant is not None else [statement for statement in begin if statement != whose("")]

    @contextmanager
    def connected(self) -> Generator[Any]:
        """A session of its own. What is not committed is lost when it ends."""
        connection = driver().connect(self.location.url, autocommit=True, prepare_threshold=None)
        try:
            yield connection
        finally:
            with suppress(Exception):
                connection.close()

    @contextmanager
    def _cleared(self) -> Generator[Any]:
        """The connection of the attack as it was at first, or one of its own where no attack is being tried.

        A new connection for every statement would cost more than the statement: the server reads its catalogue anew.
        """
        connection = self._connection
        if connection is None or connection.closed:
            with self.connected() as connection:
                yield connection
            return
        try:
            yield connection
        finally:
            try:
                for statement in ("ROLLBACK", "DISCARD ALL"):
                    connection.execute(statement)
            except driver().Error:
                connection.close()  # it cannot be cleared

    def filled(self, statement: str, about: TenantNames) -> str:
        """With the names in a statement, as texts of SQL."""
        values = {name: literal(value) for name, value in about._asdict().items() if isinstance(value, str)}
        values |= {"seq": str(about.seq), "word": literal(f"'{about.word}{self.secret}'"), "s": self.location.schema}
        run, me = literal(self.run), literal(self.attacker.tenant)
        values["others"] = f"(pg_catalog.strpos(tenant, {run}) > 0 AND tenant OPERATOR(pg_catalog.<>) {me})"
        values |= {"me": me, "schema": literal(self.location.schema)}
        for name, value in values.items():
            statement = statement.replace(f"{{{name}}}", value)
        return statement

    def columns(self, table: str) -> str:
        return _COLUMNS.get(table, "*")

    def holdings(self, of: TenantNames) -> list[tuple[Any, ...]]:
        """How much of a tenant's is in each table, and a hash of it, as the tenant sees it."""
        parts = [
            f"SELECT {literal(table)}, count(*), sum(hashtext(r::text)::bigint) FROM "
            f"(SELECT {self.columns(table)} FROM {{s}}.{table} WHERE tenant = {{tenant}}) r"
            for table in self.tables
        ]
        with self._cleared() as connection:
            for statement in self.beginning(of.tenant):
                connection.execute(statement)
            # Sorted, because a parallel plan gives the parts in any order.
            return sorted(connection.execute(self.filled(" UNION ALL ".join(parts), of)).fetchall())

    def remove(self, of: TenantNames) -> None:
        """Everything of a tenant's, for good."""
        with self.connected() as connection:
            for statement in self.beginning(of.tenant):
                connection.execute(statement)
            places = connection.execute(self.filled("SELECT workspace FROM {s}.places WHERE tenant = {tenant}", of))
            for table in self.tables:
                if table not in ("audit", "places"):
                    connection.execute(self.filled(f"DELETE FROM {{s}}.{table} WHERE tenant = {{tenant}}", of))
            for (workspace,) in places.fetchall():
                place = of._replace(workspace=workspace)
                dropped = "SELECT {s}.drop_place({tenant}, {workspace}) FROM {s}.places"
                connection.execute(
                    self.filled(f"{dropped} WHERE tenant = {{tenant}} AND workspace = {{workspace}}", place)
                )
            connection.execute("COMMIT")


def _executed(connection: Any, statement: str) -> tuple[tuple[Any, ...], str]:
    """The rows, and what kind of statement it was and how many rows it was about."""
    cursor = connection.cursor()
    if statement.startswith("COPY") and statement.endswith("STDOUT"):
        with cursor.copy(statement) as copy:
            return tuple(bytes(part) for part in copy), "COPY"
    if statement.startswith("COPY"):
        sql, _, rows = statement.partition("\n")
        with cursor.copy(sql) as copy:
            copy.write(rows)
        return (), "COPY"
    cursor.execute(statement)
    return (tuple(cursor.fetchall()) if cursor.description else ()), cursor.statusmessage or ""


@contextmanager
def _listened(connection: Any) -> Generator[list[str]]:
    """The list that the notices of a connection are added to."""
    notices: list[str] = []

    def hear(notice: Any) -> None:
        notices.append(f"{notice.message_primary} {notice.message_detail or ''}")

    connection.add_notice_handler(hear)
    try:
        yield notices
    finally:
        connection.remove_notice_handler(hear)


def _whole(error: Any) -> str:
    """All that the server says of an error: a detail or a hint gives things away as well as a message does.

    Except that it happened in a parallel worker: that depends on the plan, and the same error may come from the leader.
    """
    diagnostics = error.diag
    context = [line for line in (diagnostics.context or "").splitlines() if line != "parallel worker"]
    parts = (
        diagnostics.message_primary or error,
        diagnostics.message_detail,
        diagnostics.message_hint,
        "\n".join(context),
    )
    return "\n".join(str(part) for part in parts if part)


def _describe_held(attack: Attack) -> str:
    """What to report of an attack that did not succeed."""
    if attack.by is not None:
        return "nothing of the victim's was seen or changed"
    what = {"refused": "refused", "nothing": "nothing was found", "same": "answered as for a tenant that is not there"}
    times = len(attack.tries)
    return what[attack.expect] + (f", {times} times" if times > 1 else "")


def _shortened(text: str, most: int = 160) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[:most]}…"
