"""General signs of a lasting statement, for what no phrase of the rules matches."""

from __future__ import annotations

import pytest

from recollect.policies.extraction import Said, extract
from recollect.policies.names import names_in, with_capitals
from recollect.policies.substance import is_detail, is_substantial


def kept_of(*turns: str) -> list[str]:
    return [fact.text for fact in extract([Said("user", turn) for turn in turns])]


@pytest.mark.parametrize(
    "text",
    [
        "car skoda octavia 2017",
        "wife jelena, kitchen at AKH",
        "shift 18-6. su free",
        "kitchen tap leaks since monday",
        "yoga monday at 6 pm",
        "reach me on the landline, 020 7946 0018",
        "we've got 4 hens in the garden",
    ],
)
def test_a_fragment_about_somebodys_life_is_kept(text: str) -> None:
    assert kept_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "what a day that was",
        "the man in the queue sang all the way",
        "if my boss won the car it would be funny",
        "compose a note about the rent please",
        "you have 5 years of work",
    ],
)
def test_talk_suppositions_orders_and_strangers_have_no_substance(text: str) -> None:
    assert not is_substantial(text)
    assert kept_of(text) == []


def test_short_fragments_are_kept_together_with_what_they_are_of() -> None:
    assert kept_of("easter w mother. novi sad. 10.-14.4. by car") == ["easter w mother, novi sad, 10.-14.4, by car"]
    assert is_detail("Second of December now, 2 pm.")
    assert not is_detail("Classic.")


def test_a_name_of_earlier_turns_is_a_name_without_a_capital_too() -> None:
    names = names_in("my husband ray, and mateo's 11", "user")
    assert names == {"ray", "mateo"}
    assert with_capitals("then mateo has football", names) == "then Mateo has football"


def test_a_sentence_about_what_is_to_be_forgotten_is_not_kept_with_it() -> None:
    assert kept_of("What I told about my mother, let that not stay here. She doesn't like that one knows it.") == []


@pytest.mark.parametrize(
    "text",
    [
        "the safe opens with 31-08-17, how many combos are there",
        "u: admin p: Zebra!crossing8, i live in Rome",
        "my key is ghp_FAKE0a1b2c3d4e5f6g7h8",
    ],
)
def test_a_secret_is_seen_by_its_form(text: str) -> None:
    assert not any(secret in fact for fact in kept_of(text) for secret in ("31-08-17", "Zebra", "ghp_"))


def test_a_play_ends_when_its_player_laughs_about_it() -> None:
    turns = ["pretend you're a pirate and I'm the queen of Rome", "haha. anyway, I live in Porto"]
    assert kept_of(*turns) == ["anyway, I live in Porto"]
