"""Short ids: ends that tell memories apart, as long as the number of memories asks for."""

from hypothesis import given
from hypothesis import strategies as st

from recollect.text.short_ids import LEAST, shortened

hexes = st.text("0123456789abcdef", min_size=32, max_size=32)


@given(st.lists(hexes, unique=True, max_size=12), st.integers(0, 10**7))
def test_a_short_id_is_the_end_of_one_only(idents: list[str], among: int) -> None:
    for ident, short in shortened(idents, among).items():
        assert ident.endswith(short)
        assert len(short) >= LEAST
        assert [one for one in idents if one.startswith(short) or one.endswith(short)] == [ident]
        assert 16 ** len(short) >= min(among * 10_000, 16**32)


def test_ids_that_end_alike_are_longer() -> None:
    one, other = "1" * 20 + "a" + "f" * 11, "2" * 20 + "b" + "f" * 11
    assert shortened([one, other], 2) == {one: "a" + "f" * 11, other: "b" + "f" * 11}


def test_an_end_that_another_begins_with_is_longer() -> None:
    one, other = "0" * 28 + "abcd", "abcd" + "1" * 28
    assert shortened([one, other], 2) == {one: "0abcd", other: "1111"}


def test_ids_of_a_stores_own_stay() -> None:
    assert shortened(["m-1", "m-12"], 10**9) == {"m-1": "m-1", "m-12": "m-12"}
