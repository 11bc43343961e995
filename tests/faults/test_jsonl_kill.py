"""Ledgers and notebooks whose writers are killed: what was acknowledged stays, and nothing is done by halves."""

from __future__ import annotations

import random
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from support.common import LONG
from support.jsonl import KINDS, Kept, Model, Server, assert_sound, copied, quick_folder, seen

pytestmark = [pytest.mark.clause("LED-11"), pytest.mark.clause("LED-12"), pytest.mark.clause("AEG-12")]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def folder() -> Iterator[Path]:
    with quick_folder() as folder:
        yield folder


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.clause("LED-19")
def test_killed_at_any_time_nothing_acknowledged_is_lost(server: Server, folder: Path, kind: str) -> None:
    rounds = 16 if LONG else 4
    first = 0 if LONG else random.randrange(1_000)  # where there is no time, others in each run
    print(f"{first=}")
    chance = random.Random(f"{kind} {first}")
    killed = acknowledged = 0
    for number in range(first, first + rounds):
        kept, model = Kept(kind, folder / str(number) / "memory"), Model()
        for turn in range(40):
            seed = 1000 * number + turn
            said, died = server.run(kept, [""] * 1000, seed=seed, delay=chance.uniform(0, 0.015))
            killed += died
            acknowledged += sum("done" in line for line in said)
            model.follow(said, seen(kept))
        assert_sound(kept, model)
    assert killed > 30 * rounds
    assert acknowledged


OPS = {
    "first": ["remember"],
    "first batch": ["batch"],
    "remember": ["remember"],
    "batch": ["batch"],
    "revise": ["revise"],
    "archive": ["archive"],
    "forget": ["forget"],
    "forget many": ["forget_many"],
    "erase": ["erase"],
    "prune": ["prune"],
    "compact": ["compact"],
    "counting retrievals": ["recall", "close"],
    "closing": ["remember", "close"],
}

ESSENTIAL = {op: OPS[op] for op in ("first", "batch", "revise", "forget", "compact")}


def template(server: Server, folder: Path, kind: str, op: str) -> tuple[Kept, Model]:
    """A memory with some of everything, that the operation is to be done on."""
    kept, model = Kept(kind, folder / op / "memory"), Model()
    if not op.startswith("first"):
        said, _ = server.run(kept, ["batch", "batch", "revise", "archive", "forget", "remember", "remember"], seed=7)
        model.follow(said, seen(kept))
        assert len(model.state) > 4
    return kept, model


@pytest.mark.slow
@pytest.mark.parametrize(("how", "op"), [*(("before", op) for op in ESSENTIAL), *(("half", op) for op in OPS)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.clause("AEG-04")
@pytest.mark.clause("AEG-05")
@pytest.mark.clause("AEG-07")
def test_killed_at_each_call_of_an_operation_it_is_done_or_not(
    server: Server, folder: Path, kind: str, how: str, op: str
) -> None:
    ops = (OPS if how == "half" else ESSENTIAL)[op]
    small = folder / "small.toml"
    small.write_text(files("recollect.presets").joinpath("aegis.toml").read_text().replace("quota = 500", "quota = 4"))
    before, known = template(server, folder, kind, op)
    step = 1 if LONG else 4  # where there is no time, at every fourth one, and at others in each run
    number, died = random.randint(1 - step, 0), True
    while died:
        number += step
        kept = copied(before, folder / "crash" / "memory")
        preset = str(small) if op == "prune" else kept.preset
        said, died = server.run(kept, ops, seed=number, die=number, how=how, preset=preset)
        model = Model(known.state)
        model.follow(said, seen(kept))
        more, _ = server.run(kept, ["remember"], seed=1_000_000 + number)
        model.follow(more, seen(kept))
        assert_sound(kept, model if number % 3 == 0 or not died else None)
    assert number > 3, f"{op} makes {number} calls"


@pytest.mark.slow
@pytest.mark.parametrize("op", ["batch", "revise", "forget"])
@pytest.mark.parametrize("kind", KINDS)
def test_killed_while_recovering_from_a_kill_nothing_is_done_by_halves(
    server: Server, folder: Path, kind: str, op: str
) -> None:
    recoveries = 0
    before, known = template(server, folder, kind, op)
    step = 1 if LONG else 2  # where there is no time, at every other one, and at others in each run
    first, died = random.randint(1 - step, 0), True
    kept, model = before, known
    while died:
        first += step
        second, again = random.randint(1 - step, 0), True
        while again:
            second += step
            kept, model = copied(before, folder / "crash" / "memory"), Model(known.state)
            said, died = server.run(kept, [op], seed=first, die=first, how="half")
            model.follow(said, seen(kept))
            if b'"from"' not in (kept.aside / "lock").read_bytes():
                break  # it had begun nothing, or finished all
            said, again = server.run(kept, ["remember"], seed=500_000 + second, die=second, how="half")
            model.follow(said, seen(kept))
            more, _ = server.run(kept, ["remember"], seed=1_000_000 + second)
            model.follow(more, seen(kept))
            recoveries += 1
        assert_sound(kept, model)
    assert first > 3
    assert recoveries > (15 if LONG else 3)
