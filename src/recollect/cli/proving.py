"""Proving claims on a deployment: prove isolation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from recollect.cli import output, text
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import BAD, CAREFUL, GOOD, QUIET, STRONG
from recollect.cli.progress import progress
from recollect.cli.target import Target, scoped

if TYPE_CHECKING:
    from recollect.proving.postgres.isolation import AttackResult

_LOOKS = {"held": ("held", GOOD), "leaked": ("LEAKED", BAD), "unproven": ("?", BAD), "limit": ("limit", CAREFUL)}

_OWN_LOGIN = "run this with the login of your application"
_BAD = {"leaked": "LEAKED", "unproven": "could not be tried"}


@click.group(cls=LazyGroup, sections={"Claims": {"isolation": "proving:isolation"}})
def prove() -> None:
    """Prove on your own deployment what is claimed of it.

    \b
    Example:
      recollect prove isolation --store postgresql://app@localhost/memory
    """


@click.command(cls=Leaf)
@scoped
def isolation(target: Target) -> None:
    """Attack the wall between tenants of a PostgreSQL store. Exits with 1 if something leaks.

    A login that may bypass row-level security, such as a superuser, proves nothing: that also exits with 1.

    One tenant is made that has things and one that tries to reach them: by SQL as the application's role, and by every
    verb with the other's ids. Both have names that nobody can guess, and are removed at the end, also after an error
    or Ctrl-C. Nothing that is there is touched. Give the location that your application uses, with its user.

    \b
    Example:
      recollect prove isolation --store postgresql://app@localhost/memory
      recollect prove isolation --json
    """
    from recollect.proving.isolation import besieged
    from recollect.proving.postgres.attacks import LIMITS

    with besieged(target.location) as proof:
        planned, outcomes = proof.attacks(), list["AttackResult"]()
        where, facts = proof.siege.location.shown, proof.siege.server.facts
        with progress("Attacking", len(planned)) as tell:
            for number, attack in enumerate(planned, 1):
                outcomes.append(proof.siege.suffer(attack))
                tell(number)
    leaked = [outcome for outcome in outcomes if outcome.verdict in ("leaked", "unproven")]
    user, role = facts.user, facts.role or facts.user
    if target.json:
        attacks = [outcome._asdict() for outcome in outcomes]
        facts_of_run = {"store": where, "user": user, "role": role, "bypasses": facts.unbound, "removed": True}
        output.emit({"ok": not leaked, **facts_of_run, "attacks": attacks, "limits": LIMITS})
    else:
        output.say(("Attacked ", STRONG), f"{where} as {user}, whose transactions are {role}'s\n")
        _print(outcomes)
        _print_limits(LIMITS)
        _print_end([outcome.verdict for outcome in outcomes])
        if facts.unbound:
            output.say((f"Nothing is proven for {user}, which may bypass row-level security: {_OWN_LOGIN}", BAD))
    if leaked:
        click.get_current_context().exit(1)


def _print(outcomes: Sequence[AttackResult]) -> None:
    for outcome in outcomes:
        word, look = _LOOKS[outcome.verdict]
        output.hanging((f"{word:<6}", look), f"{outcome.name}: {outcome.tried} — {outcome.happened}")


def _print_limits(limits: Sequence[str]) -> None:
    output.say("")
    output.say(("What row-level security cannot keep from anybody", STRONG))
    for limit in limits:
        output.hanging(("-", QUIET), limit)


def _print_end(verdicts: Sequence[str]) -> None:
    output.say("")
    output.say("The tenants made for this were removed, with all that was in them.")
    counts = {verdict: verdicts.count(verdict) for verdict in _LOOKS}
    tried = text.count(len(verdicts), "attack", "attacks")
    if bad := [f"{counts[verdict]} {word}" for verdict, word in _BAD.items() if counts[verdict]]:
        output.say((f"Of {tried}, {' and '.join(bad)}", BAD))
    elif counts["limit"]:
        output.say(
            (f"Of {tried}, {counts['held']} held; {counts['limit']} are beyond what this login can hold", CAREFUL)
        )
    else:
        output.say((f"All of {tried} held", GOOD))
