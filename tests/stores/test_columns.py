"""The resident columns: filled at once or one by one, and what they keep for the next question."""

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from recollect.recall.calibrated import MEASURED, lendings
from recollect.recall.pool import Pool
from recollect.stores.port import Place
from recollect.stores.resident.codes import Ids
from recollect.stores.resident.columns import Batch, Columns
from recollect.stores.resident.shortlist import resident_shortlist
from recollect.stores.resident.snapshot import ALWAYS, NEVER
from recollect.stores.resident.vectors import Vectors
from recollect.stores.shortlist import Ask, Shortlist
from recollect.text.query import TextQuery
from recollect.values.filters import Filter
from recollect.values.record import EPOCH, Address, to_micros

LINKS = ("before", "after", "conversation", "key", "created", "expires", "valid_from", "valid_until")
LINKS += ("importance", "archived", "length")
NOW = EPOCH + timedelta(days=100)


def memory(key: int, **other: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "key": key,
        "ident": f"m{key}",
        "created": key,
        "expires": NEVER,
        "valid_from": ALWAYS,
        "valid_until": NEVER,
        "importance": 0.5,
        "archived": False,
        "superseded_by": None,
        "length": 10 * key,
        "kind": "fact",
        "role": None,
        "source": None,
        "lifetime": "long_term",
        "tags": (),
        "speaker": "",
        "who": (Address(), "workspace"),
    }
    return given | other


def batch(memories: Sequence[dict[str, Any]]) -> Batch:
    return Batch(**{name: [one[name] for one in memories] for name in Batch._fields})


def columns(*memories: dict[str, Any]) -> Columns:
    made = Columns()
    made.extend(batch(memories))
    return made


def in_conversation(name: str | None) -> tuple[Address, str]:
    return Address(conversation=name), "workspace"


def some(count: int, seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [
        memory(
            3 * key,
            who=in_conversation(rng.choice([None, "a", "b", "c"])),
            speaker=rng.choice(["ann", "bob", "user", "", "dr. who"]),
            role=rng.choice(["user", "assistant", None]),
            tags=rng.choice([(), ("x",), ("x", "y")]),
            importance=rng.random(),
        )
        for key in range(1, count + 1)
    ]


def said(found: Columns) -> list[str]:
    return [found.speakers.values[code] for code in found.column("speaker")]


@pytest.mark.parametrize("seed", range(5))
def test_in_one_go_in_parts_and_one_by_one_are_the_same(seed: int) -> None:
    all_of_them = some(300, seed)
    at_once = columns(*all_of_them)
    for cuts in ([1] * 300, [100, 1, 199], [7] * 43):
        by_parts, start = Columns(), 0
        for cut in cuts:
            by_parts.extend(batch(all_of_them[start : start + cut]))
            start += cut
        for name in LINKS:
            assert np.array_equal(at_once.column(name), by_parts.column(name)), name
        assert said(at_once) == said(by_parts)
        assert list(at_once.ids) == list(by_parts.ids) == [one["ident"] for one in all_of_them]


@pytest.mark.parametrize("seed", range(5))
def test_neighbours_are_the_last_and_next_of_the_same_conversation_that_are_left(seed: int) -> None:
    rng = random.Random(seed)
    all_of_them = some(80, seed)
    made = columns(*all_of_them)
    gone = rng.sample(all_of_them, 30)
    for one in gone:
        made.remove(one["key"])
    left = [one for one in all_of_them if one not in gone]
    for one in left:
        at, name = made.position(one["key"]), one["who"][0].conversation
        same = [other for other in left if name is not None and other["who"][0].conversation == name] or [one]
        here = same.index(one)
        expected = [same[n]["key"] if 0 <= n < len(same) else -1 for n in (here - 1, here + 1)]
        steps = [int(made.column(step)[at]) for step in ("before", "after")]
        assert [int(made.column("key")[step]) if step >= 0 else -1 for step in steps] == expected
    assert all(made.position(one["key"]) is None for one in gone)


def test_a_conversation_has_a_number_below_the_size_that_no_other_has() -> None:
    made, rng = Columns(), random.Random(1)
    for key in range(1, 300):
        made.extend(batch([memory(key, who=in_conversation(rng.choice([None, "a", "b"])))]))
        living = made.column("key")[made.column("alive")].tolist()
        for gone in {living[-1], rng.choice(living)} if rng.random() < 0.6 else ():
            made.remove(gone)
        alive = made.column("alive")
        numbers, whos = made.column("conversation")[alive].tolist(), made.column("who")[alive].tolist()
        assert max(numbers, default=-1) < made.size
        talks = [made.who.values[who][0].conversation for who in whos]
        assert len(set(numbers)) == len({talk for talk in talks if talk}) + talks.count(None)


def test_the_last_number_may_come_again_for_another() -> None:
    made = columns(memory(1), memory(2, speaker="ann", who=in_conversation("a")), memory(3))
    made.vectors = Vectors("m", 2, 3)
    made.vectors.fill(np.arange(3), [np.array([3, 4], "<f4").tobytes()] * 3)
    made.remove(2)
    assert (made.size, made.last_key) == (3, 3)
    made.remove(3)
    assert (made.size, made.last_key, list(made.ids)) == (1, 1, ["m1"])
    made.extend(batch([memory(2, ident="other", who=in_conversation("a"))]))
    assert (list(made.ids), made.position(2)) == (["m1", "other"], 1)
    assert [int(made.column(name)[1]) for name in ("before", "after")] == [-1, -1]
    assert made.vectors.has(2).tolist() == [True, False]
    assert made.missing(2, 5) == ["other"]


@pytest.mark.parametrize("keys", [range(5, 50), range(5, 200, 3)], ids=["dense", "sparse"])
def test_positions_of_keys_that_are_there(keys: range) -> None:
    made = columns(*(memory(key) for key in keys))
    made.remove(keys[3])
    wanted = [0, 1, keys[0], keys[2], keys[3], keys[2] + 1, keys[-1], 1000]
    expected = [keys.index(key) for key in wanted if key in keys and key != keys[3]]
    assert made.positions(np.array(wanted)).tolist() == expected
    assert [made.position(key) for key in (keys[0], keys[3], 1000)] == [0, None, None]


def test_what_changed_is_taken_in_and_nothing_else() -> None:
    made = columns(memory(1), memory(4), memory(9))
    made.restate(batch([memory(4, importance=0.9, archived=True, tags=("t",), length=7)]))
    assert made.column("importance").tolist() == [0.5, 0.9, 0.5]
    assert made.column("archived").tolist() == [False, True, False]
    assert made.column("length").tolist() == [10, 40, 90]


def test_what_a_filter_sees_is_kept_until_something_changes() -> None:
    made = columns(memory(1), memory(2), memory(3))
    where = Filter(seen_from=Address(), now=NOW)
    first = made.seen(where)
    assert made.seen(Filter(seen_from=Address(), now=NOW + timedelta(days=1))) is first
    assert made.seen(Filter(seen_from=Address(), now=NOW, kinds=("task",))).mask.tolist() == [False] * 3
    for change, expected in (
        (lambda: made.restate(batch([memory(2, archived=True)])), [True, False, True]),
        (lambda: made.remove(1), [False, False, True]),
        (lambda: made.extend(batch([memory(4)])), [False, False, True, True]),
    ):
        before = made.seen(where)
        change()
        assert made.seen(where) is not before
        assert made.seen(where).mask.tolist() == expected


def test_what_a_filter_sees_knows_when_memories_expire() -> None:
    days = [(NOW + timedelta(days=n)) for n in (1, 2)]
    made = columns(memory(1, expires=to_micros(days[0])), memory(2, expires=to_micros(days[1])), memory(3))

    def live(when: Any) -> list[bool]:
        return made.seen(Filter(seen_from=Address(), now=when)).mask.tolist()

    moment = timedelta(microseconds=1)
    assert live(NOW) == [True, True, True]
    assert live(days[0] - moment) == [True, True, True]
    assert live(days[0]) == [False, True, True]
    assert live(days[1] - moment) == [False, True, True]
    assert live(days[1]) == [False, False, True]
    assert live(NOW) == [True, True, True]


def test_only_a_few_filters_are_kept() -> None:
    made = columns(memory(1))
    first = made.seen(Filter(seen_from=Address(), now=NOW))
    for number in range(10):
        made.seen(Filter(seen_from=Address(agent=f"a{number}"), now=NOW))
    assert made.seen(Filter(seen_from=Address(), now=NOW)) is not first


def test_vectors_are_of_length_one_wherever_they_come() -> None:
    vectors = Vectors("m", 2, 2)
    vectors.fill(np.array([1, 2]), [np.array([3, 4], "<f4").tobytes(), np.array([0, 0], "<f4").tobytes()])
    vectors.fill(np.array([5, 0]), [np.array([0, 2], "<f4").tobytes(), np.array([-5, 0], "<f4").tobytes()])
    assert vectors.has(6).tolist() == [True, True, True, False, False, True]
    for question, expected in (([1, 0], [-1, 0.6, 0, 0]), ([0, 1], [0, 0.8, 0, 1])):
        cosines = vectors.cosines(np.array(question, np.float32), 6)
        assert np.allclose(cosines[[0, 1, 2, 5]], expected, atol=0.005)
        assert np.isnan(cosines[3:5]).all()
    vectors.put(1, b"\0" * 12)  # of another dimension
    assert not vectors.has(2)[1]


def test_ids_are_a_sequence_of_any_strings() -> None:
    ids, names = Ids(), ["a", "", "žluťoučký", "0190f5" * 6, "last"]
    ids.extend(names)
    assert (list(ids), len(ids), ids[-1], ids[1:3]) == (names, 5, "last", names[1:3])
    with pytest.raises(IndexError):
        ids[5]
    first = ids.cut(3)
    first.extend(["again"])
    assert (list(first), list(ids)) == ([*names[:3], "again"], names)


def shortlist(where: Filter, made: Columns) -> Shortlist:
    ask = Ask(where, TextQuery())
    return resident_shortlist(
        Place("default", None), made, ask, lambda _: np.zeros(0, np.int64), lambda _: None, lambda _: {}
    )


def pool(where: Filter, *places: Columns) -> Pool:
    return Pool([shortlist(where, made) for made in places])


def test_what_was_handed_out_never_changes() -> None:
    turns = [memory(key, who=in_conversation("a"), speaker="ann") for key in range(1, 40)]
    made, where = columns(*turns[:20]), Filter(seen_from=Address(), now=NOW)
    answer = shortlist(where, made)

    def shown() -> Any:
        block = answer.block
        arrays = (answer.seen.mask, block.created, block.length, block.before, block.after, block.speaker)
        return [array.tolist() for array in arrays], [block.ids[at] for at in range(block.size)], list(block.speakers)

    before = shown()
    for change in (
        lambda: made.extend(batch(turns[20:])),
        lambda: made.restate(batch([memory(3, archived=True)])),
        lambda: made.remove_from(15),
        lambda: made.extend(batch([memory(key, ident=f"x{key}", who=in_conversation("b")) for key in range(15, 90)])),
        lambda: made.remove(1),
        lambda: made.remove_from(2),
        lambda: made.extend(batch([memory(key, ident=f"y{key}") for key in range(2, 60)])),
    ):
        change()
        assert shown()[0] == before[0]
        assert shown()[1] == before[1]


@pytest.mark.parametrize("places", [1, 2, 3])
def test_what_places_lend_apart_is_what_they_lend_together(places: int) -> None:
    where = Filter(seen_from=Address(), now=NOW, min_importance=0.2)  # so that some are skipped
    several = pool(where, *(columns(*some(60, seed)) for seed in range(places)))
    together = lendings(several.columns(), MEASURED, several.shown)
    assert any((one.position >= 60 * (places - 1)).any() for one in together)
    for _ in range(2):  # made, and kept
        for mine, theirs in zip(several.lending(MEASURED), together, strict=True):
            assert np.array_equal(mine.position, theirs.position)
            assert np.array_equal(mine.share, theirs.share)


def test_what_is_kept_goes_with_what_it_was_made_of() -> None:
    where, one = Filter(seen_from=Address(), now=NOW), columns(*some(20, 1))
    before = pool(where, one).lending(MEASURED)
    assert pool(where, one).lending(MEASURED) is before
    one.extend(batch([memory(1000, who=in_conversation("a"), speaker="zoe")]))
    assert len(pool(where, one).lending(MEASURED)[0].share) == 21
    assert "zoe" in one.seen(where).speakers()
    assert "zoe" not in one.seen(Filter(seen_from=Address(), now=NOW, until=EPOCH)).speakers()
