"""Ledgers and notebooks whose writers are killed: what was acknowledged stays, and nothing is done by halves."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from support.common import LONG
from support.jsonl import KINDS, NEVER, Kept, Model, Server, assert_sound, copied, quick_folder, seen
from support.seeds import some_of

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
    rounds = 16 if LONG else 1
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
    seed = random.randrange(1000)

    def try_dying_at(number: int, check_all: bool) -> bool:
        shutil.rmtree(folder / "crash", ignore_errors=True)  # so that every try makes the same folders
        kept = copied(before, folder / "crash" / "memory")
        preset = str(small) if op == "prune" else kept.preset
        said, died = server.run(kept, ops, seed=seed, die=number, how=how, preset=preset)
        model = Model(known.state)
        model.follow(said, seen(kept))
        more, _ = server.run(kept, ["remember"], seed=1_000_000 + number)
        model.follow(more, seen(kept))
        assert_sound(kept, model if check_all else None)
        return died

    assert not try_dying_at(NEVER, check_all=True)
    calls = server.calls
    assert calls > 3, f"{op} makes {calls} calls"
    for number in some_of(range(1, calls + 1)):
        assert try_dying_at(number, check_all=number % 3 == 0), f"at call {number} of {calls}"


@pytest.mark.slow
@pytest.mark.parametrize("op", ["batch", "revise", "forget"])
@pytest.mark.parametrize("kind", KINDS)
def test_killed_while_recovering_from_a_kill_nothing_is_done_by_halves(
    server: Server, folder: Path, kind: str, op: str
) -> None:
    before, known = template(server, folder, kind, op)
    kept, seed = Kept(kind, folder / "crash" / "memory"), random.randrange(1000)

    def interrupted(number: int) -> Model:
        """A fresh copy in which the operation died at that call."""
        copied(before, kept.root)
        model = Model(known.state)
        said, _ = server.run(kept, [op], seed=seed, die=number, how="half")
        model.follow(said, seen(kept))
        return model

    interrupted(NEVER)
    firsts = [number for number in range(1, server.calls + 1) if interrupted(number) and unfinished(kept)]
    assert firsts, "there is nothing to recover from"
    recoveries = 0
    for first in some_of(firsts, 0.15):
        interrupted(first)
        server.run(kept, ["remember"], seed=500_000, die=NEVER, how="half")
        model = Model()
        for second in some_of(range(1, server.calls + 1), 0.25):
            model = interrupted(first)
            said, died = server.run(kept, ["remember"], seed=500_000, die=second, how="half")
            assert died, f"at call {second} of the recovery from a kill at call {first}"
            model.follow(said, seen(kept))
            more, _ = server.run(kept, ["remember"], seed=1_000_000 + second)
            model.follow(more, seen(kept))
            recoveries += 1
        assert_sound(kept, model)
    assert recoveries > (15 if LONG else 1), firsts


def unfinished(kept: Kept) -> bool:
    """Whether the writer that died had begun something and not finished it."""
    return b'"from"' in (kept.aside / "lock").read_bytes()
