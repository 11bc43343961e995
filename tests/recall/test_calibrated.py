"""The score of the default preset: what each part counts, and for whom."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recollect.recall.calibrated import Neighbours, Scores, Weights, lendings, score

NAN = float("nan")
NEVER = float("-inf")
PARTS = ("text", "meaning", "neighbours", "speaker", "time", "company")


def floats(*values: float) -> NDArray[np.float32]:
    return np.array(values, np.float32)


def columns(conversations: list[int], length: list[float] | None = None) -> Neighbours:
    """The links of conversations that may be interleaved."""
    n = len(conversations)
    before, after, last = np.full(n, -1), np.full(n, -1), dict[int, int]()
    for i, conversation in enumerate(conversations):
        if (previous := last.get(conversation)) is not None:
            before[i], after[previous] = previous, i
        last[conversation] = i
    return Neighbours(floats(*(length or [10.0] * n)), np.array(conversations, np.int64), before, after)


def lent(held: Neighbours, weights: Weights | None = None, visible: Any = None) -> list[list[tuple[int, float]]]:
    """For each memory from whom it borrows, and what share."""
    found = lendings(held, weights or Weights(), visible)
    return [
        [(int(at[i]), pytest.approx(float(share[i]))) for at, share in found if share[i]]
        for i in range(len(held.length))
    ]


def test_neighbours_are_those_of_the_same_conversation() -> None:
    assert lent(columns([0, 1, 0, 0, 1])) == [
        [(2, 0.3), (3, 0.15)],
        [(4, 0.3)],
        [(0, 0.3), (3, 0.3)],
        [(2, 0.3), (0, 0.15)],
        [(1, 0.3)],
    ]


def test_long_turns_lend_and_borrow_less() -> None:
    # (300 / 600) ** 4 = 1/16, also across the long one
    assert lent(columns([0, 0, 0, 0], [10, 600, 300, 0])) == [
        [(1, 0.3 / 16), (2, 0.15 / 16)],
        [(0, 0.3 / 16), (2, 0.3 / 16), (3, 0.15 / 16)],
        [(1, 0.3 / 16), (0, 0.15 / 16), (3, 0.3)],
        [(2, 0.3), (1, 0.15 / 16)],
    ]
    assert lent(columns([0, 0], [10, 200]), Weights(neighbour=0.5, short=100)) == [[(1, 0.5 / 16)], [(0, 0.5 / 16)]]


def test_what_is_hidden_stands_between_nobody() -> None:
    hidden = np.array([True, False, False, False, True, True, False])
    held = columns([0] * 7, [10, 600, 600, 600, 10, 10, 600])
    assert lent(held, visible=hidden) == [
        [(4, 0.3), (5, 0.15)],
        [],
        [],
        [],
        [(0, 0.3), (5, 0.3)],
        [(4, 0.3), (0, 0.15)],
        [],
    ]
    assert lent(held, visible=np.zeros(7, bool)) == [[]] * 7


def test_scores_by_hand() -> None:
    # cosines of mean 0.3 and deviation 0.1; the first two memories are one conversation
    found = score(
        floats(0, 5, 2.5, 0),
        floats(0.2, 0.4, 0.2, 0.4),
        columns([0, 0, 1, 2]),
        speaker=floats(1, 0, 0, 1),
        time=floats(0, 0.5, 0, 1),
    )
    assert found.text.tolist() == pytest.approx([0, 4, 2, 0])
    assert found.meaning.tolist() == pytest.approx([-1, 1, -1, 1], abs=1e-5)
    assert found.neighbours.tolist() == pytest.approx([1.5, -0.3, 0, 0], abs=1e-5)
    assert found.speaker.tolist() == [4, 0, 0, 4]
    assert found.time.tolist() == pytest.approx([0, 1.5, 0, 3])
    # alone: 4.5, 6.2, 1, 8
    assert found.company.tolist() == pytest.approx([1.24, 1.24, 0.2, 1.6], abs=1e-5)
    assert found.total.tolist() == pytest.approx([5.74, 7.44, 1.2, 9.6], abs=1e-5)


def test_what_has_neither_a_match_nor_a_vector_is_no_candidate() -> None:
    found = score(floats(0, 1, 0, 0), floats(NAN, NAN, 0.5, NAN), columns([0, 0, 0, 0]), speaker=floats(1, 0, 0, 1))
    assert found.candidate.tolist() == [False, True, True, False]
    assert found.total.tolist() == pytest.approx([NEVER, 4.0 + 0.8, 1.2 + 0.8, NEVER])
    assert [getattr(found, part)[[0, 3]].tolist() for part in PARTS] == [[0, 0]] * 6  # nor does it speak for others


def test_only_candidates_recommend_their_conversation() -> None:
    found = score(floats(0, 0, 0), floats(0.2, 0.4, NAN), columns([0, 1, 0]), speaker=floats(0, 0, 1))
    assert found.company.tolist() == pytest.approx([-0.2, 0.2, 0.0], abs=1e-5)


def test_a_match_is_a_candidate_even_if_text_counts_nothing() -> None:
    found = score(floats(1, 0), None, columns([0, 1]), weights=Weights(text=0.0))
    assert found.total.tolist() == [0.0, NEVER]


def test_without_a_model_there_is_no_meaning() -> None:
    found = score(floats(2, 1, 0), None, columns([0, 1, 2]))
    assert found.meaning.tolist() == [0, 0, 0]
    assert found.total.tolist() == pytest.approx([4.8, 2.4, NEVER])


@pytest.mark.parametrize("cosine", [[0.7], [0.1, 0.1, 0.1], [0.3] * 7, [0.3, 0.30000003], [0.6, NAN]])
def test_cosines_that_do_not_differ_say_nothing(cosine: list[float]) -> None:
    n = len(cosine)
    found = score(floats(*[0.0] * n), floats(*cosine), columns(list(range(n))))
    assert found.meaning.tolist() == pytest.approx([0.0] * n, abs=1e-5)
    assert found.candidate.tolist() == [value == value for value in cosine]


def test_nothing_is_scored_in_nothing() -> None:
    nothing = score(floats(), floats(), columns([]), speaker=floats(), time=floats(), visible=np.zeros(0, bool))
    assert [part.tolist() for part in nothing] == [[]] * 8
    hidden = score(floats(1, 2), floats(NAN, 0.5), columns([0, 0]), visible=np.zeros(2, bool))
    assert hidden.total.tolist() == [NEVER, NEVER]


def test_a_preset_can_name_the_weights() -> None:
    assert msgspec.convert({"text": 2, "short": 500}, Weights) == Weights(text=2.0, short=500.0)
    for wrong in ({"text": -1}, {"short": 0}, {"tekst": 1}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, Weights)


class Given(msgspec.Struct):
    text: NDArray[np.float32]
    cosine: NDArray[np.float32] | None
    conversations: list[int]
    length: list[float]
    speaker: NDArray[np.float32]
    time: NDArray[np.float32]
    visible: NDArray[np.bool_]

    def scores(self, **options: Any) -> Scores:
        held = columns(self.conversations, self.length)
        return score(self.text, self.cosine, held, speaker=self.speaker, time=self.time, **options)

    def only(self, rows: NDArray[np.int64]) -> "Given":
        return Given(
            self.text[rows],
            None if self.cosine is None else self.cosine[rows],
            [self.conversations[row] for row in rows],
            [self.length[row] for row in rows],
            self.speaker[rows],
            self.time[rows],
            self.visible[rows],
        )


@st.composite
def memories(draw: st.DrawFn, with_cosine: bool | None = None) -> Given:
    n = draw(st.integers(1, 24))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    cosine = rng.uniform(-1, 1, n).astype(np.float32)
    if with_cosine is None:
        cosine[rng.random(n) < 0.3] = np.nan
    return Given(
        (rng.uniform(0, 9, n) * (rng.random(n) < 0.5)).astype(np.float32),
        cosine if with_cosine or draw(st.booleans()) else None,
        rng.integers(0, draw(st.integers(1, 5)), n).tolist(),
        rng.integers(0, 900, n).astype(float).tolist(),
        (rng.random(n) < 0.4).astype(np.float32),
        rng.random(n).astype(np.float32),
        rng.random(n) < 0.6,
    )


def reference(given: Given) -> NDArray[np.float64]:
    """The formula as it was measured, of memories that all have vectors and stand conversation after conversation."""
    assert given.cosine is not None
    n, conversation, length = len(given.text), given.conversations, given.length
    text, cosine = given.text.astype(np.float64), given.cosine.astype(np.float64)
    own = 4.0 * text / max(text.max(), 1e-9) + (cosine - cosine.mean()) / (cosine.std() or 1.0)
    alone = own + 4.0 * given.speaker + 3.0 * given.time
    for i in range(n):
        for offset, share in ((-2, 0.15), (-1, 0.3), (1, 0.3), (2, 0.15)):
            low, high = min(i, i + offset), max(i, i + offset)
            if low >= 0 and high < n and conversation[low] == conversation[high]:
                alone[i] += share * min(1.0, 300 / max(*length[low : high + 1], 1.0)) ** 4 * own[i + offset]
    best = {c: max(alone[i] for i in range(n) if conversation[i] == c) for c in conversation}
    return np.array([alone[i] + 0.2 * best[conversation[i]] for i in range(n)])


@given(memories(with_cosine=True))
def test_scores_are_those_of_the_formula(given: Given) -> None:
    given.conversations.sort()
    assert given.scores().total.tolist() == pytest.approx(reference(given).tolist(), rel=1e-4, abs=1e-4)


@given(memories())
def test_the_parts_add_up_to_the_total(given: Given) -> None:
    found = given.scores(visible=given.visible)
    total = sum(getattr(found, part).astype(np.float64) for part in PARTS)
    assert total[found.candidate].tolist() == pytest.approx(found.total[found.candidate].tolist(), rel=1e-5, abs=1e-5)
    assert np.isfinite(total).all()
    assert (found.total[~found.candidate] == NEVER).all()


def agree(one: Scores, other: Scores) -> None:
    for a, b in zip(one, other, strict=True):
        assert a.tolist() == pytest.approx(b.tolist(), rel=1e-5, abs=1e-5)


@given(memories())
def test_hidden_is_the_same_as_not_being_there(given: Given) -> None:
    rows = np.flatnonzero(given.visible)
    found = given.scores(visible=given.visible)
    agree(Scores(*(part[rows] for part in found)), given.only(rows).scores())
    assert not found.candidate[~given.visible].any()
    assert all(not getattr(found, part)[~given.visible].any() for part in PARTS)


@given(memories(), st.randoms(use_true_random=False))
def test_how_conversations_are_interleaved_does_not_matter(given: Given, random: Any) -> None:
    turns = {c: [i for i, other in enumerate(given.conversations) if other == c] for c in given.conversations}
    order = list(given.conversations)
    random.shuffle(order)
    rows = np.array([turns[conversation].pop(0) for conversation in order])
    agree(Scores(*(part[rows] for part in given.scores())), given.only(rows).scores())


@given(memories())
def test_what_was_kept_gives_the_same(given: Given) -> None:
    held = columns(given.conversations, given.length)
    kept = lendings(held, Weights(), given.visible)
    agree(given.scores(visible=given.visible, lending=kept), given.scores(visible=given.visible))
