"""What a newer statement does to an older one."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from recollect.text.statements.changes import asks, change
from recollect.text.statements.claims import ME, read
from recollect.text.statements.tasks import task_effect

TESTS = Path(__file__).parents[1]

CHANGED = [
    ("I live in Lisbon", "I've moved to Porto"),
    ("Alice lives in Lisbon", "Alice has just moved to Porto"),
    ("I work at Bosch", "I quit my job last week"),
    ("I work for Bosch", "Started at Siemens on Monday"),
    ("I'm a vegetarian", "I eat meat again"),
    ("My phone number is 0171 555 23", "my new number is 0171 999 77"),
    ("Our backend runs on Flask", "Our backend runs on FastAPI"),
    ("We use Jenkins for the builds", "We switched from Jenkins to GitHub Actions"),
    ("The demo is on Friday at 10", "We had to call the demo off"),
    ("Dinner with Tom on Friday", "Dinner with Tom was moved to Saturday"),
    ("I smoke", "I quit smoking in March"),
    ("We own a Volvo", "We sold the Volvo"),
    ("I have a gym membership at FitX", "I cancelled my gym membership at FitX"),
    ("Answer me in German", "Please answer me in English"),
    ("My boss is Renata", "My boss is Aldo"),
    ("The rent is 900 euros", "The rent went up to 950 euros"),
    ("I owe Piotr 120 zloty", "I owe Piotr 70 zloty"),
]
STAYS = [
    ("I live in Lisbon", "My sister has moved to Porto"),
    ("I live in Lisbon", "This week I am in Rome"),
    ("I live in Lisbon", "I might move to Porto"),
    ("I live in Lisbon", "Would Porto be a better place to live?"),
    ("I live in Lisbon", "I lived in Porto as a child"),
    ("I live in Berlin", "I live in a small flat"),
    ("I like jazz", "I like the blues"),
    ("I am allergic to nuts", "I am allergic to shellfish"),
    ("Alice works at Bosch", "Bob works at Siemens"),
    ("I work at Bosch", "I also work at a bar at weekends"),
    ("The demo for Nordwind is on Friday", "We called the demo for Southbank off"),
    ("My birthday is 4 May", "Dad's birthday is 7 May"),
    ("I speak German", "I speak Polish"),
    ("I drive a Fiat", "The neighbour sold his Fiat"),
    ("We see the dentist on Monday", "We see the architect on Friday"),
    ("I'm learning Korean", "Dougie has given up Korean"),
]


def effect(old: str, new: str) -> str | None:
    found = change(old, new)
    return None if found is None else found.effect


@pytest.mark.parametrize(("old", "new"), CHANGED)
def test_a_newer_statement_replaces_or_ends_an_older_one(old: str, new: str) -> None:
    assert effect(old, new) in ("replaces", "ends")
    assert asks(new), "nothing older would be looked for"


@pytest.mark.parametrize(("old", "new"), STAYS)
def test_what_is_of_another_or_unsure_or_of_many_stays(old: str, new: str) -> None:
    assert effect(old, new) in (None, "possible")


def test_what_says_more_than_its_change_is_only_perhaps_over() -> None:
    assert effect("My name is Ada and I live in Lisbon", "I've moved to Porto") == "possible"


def test_a_place_within_another_is_no_move() -> None:
    assert effect("Alice lives in Berlin", "Alice lives in Germany") != "replaces"


@pytest.mark.parametrize(
    ("file", "old", "new", "label", "yes"),
    [
        (TESTS / "maintenance" / "superseding.tsv", "old", "new", "contradicts", "yes"),
        (TESTS.parent / "benchmarks" / "freshness.tsv", "older", "newer", "label", "contradict"),
    ],
    ids=["superseding", "freshness"],
)
def test_no_labelled_pair_is_wrongly_taken_for_a_change(file: Path, old: str, new: str, label: str, yes: str) -> None:
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    sure = [row for row in rows if effect(row[old], row[new]) in ("replaces", "ends")]
    assert [(row[old], row[new]) for row in sure if row[label] != yes] == []
    assert len(sure) > 60


@pytest.mark.parametrize(
    ("text", "owner", "slot", "value"),
    [
        ("I moved to Porto last month.", ME, "home", {"porto"}),
        ("My sister Ana works at Siemens", "my sister ana", "employer", {"siemen"}),
        ("- city: Turin", ME, "home", {"turin"}),
        ("my phone number is 0171 555", ME, "phone", {"0171", "555"}),
        ("Bob: I live in Rome", "bob", "home", {"rom"}),
        ("I'm 34 years old", ME, "age", {"34", "year"}),
    ],
)
def test_a_claim_has_an_owner_a_slot_and_a_value(text: str, owner: str, slot: str, value: set[str]) -> None:
    assert (owner, slot, value) in [(claim.owner, claim.slot, claim.value) for claim in read(text).claims]


@pytest.mark.parametrize(
    ("task", "said", "wanted"),
    [
        ("I need to renew my passport", "got my passport renewed today!", "closes"),
        ("I have to call the dentist", "I called the dentist this morning", "closes"),
        ("I must pay the electricity bill", "The electricity bill is done", "closes"),
        ("I have to buy a suit", "I no longer need to buy the suit", "closes"),
        ("submit the tax return by 31 July", "the tax return deadline was moved to 15 August", "moves"),
        ("I need to renew my passport", "my brother's passport was renewed", None),
        ("I need to renew my passport", "I still have to renew my passport", None),
        ("I need to renew my passport", "Did I renew my passport?", None),
        ("write chapter 5", "chapter 3 is done", None),
        ("write the letters", "12 letters written, 40 to go", None),
    ],
)
def test_a_task_is_closed_by_who_says_that_it_is_done(task: str, said: str, wanted: str | None) -> None:
    assert task_effect(task, said) == wanted


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Lisbon.", "I moved to Porto in 2010."),
        ("I live in Lisbon.", "I almost moved to Porto last year."),
        ("I live in Lisbon.", "I live in Porto in the winter."),
        ("I live in Lisbon.", "I moved to Linux."),
        ("I live in Lisbon with my wife Ana and our two dogs.", "I moved to Porto last month."),
        ("I work at Bosch.", "I work at home."),
        ("I work at Bosch.", "I'm starting at Siemens next month."),
        ("My phone number is 1234 55", "My work phone number is 999 12"),
        ("My name is Ada", "My name is on the list."),
        ("I'm married.", "I got divorced in 2001."),
        ("My rent is 900 euros.", "My rent was 800 euros in 2019."),
        ("Ich wohne in Bern.", "Ich bin 2010 nach Genf gezogen."),
        ("I'm vegan.", "I eat meat at Christmas."),
    ],
)
def test_what_was_is_elsewhere_or_says_less_takes_no_place(old: str, new: str) -> None:
    assert effect(old, new) in (None, "possible")


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("I need to call Bob.", "Bob called me."),
        ("I need to call Bob.", "I called Bob's sister."),
        ("I have to pay the rent for June", "paid the rent for May"),
        ("I must submit the tax report", "Submitted the travel report!"),
        ("I need to book flights and a hotel", "Booked the hotel!"),
        ("I need to renew my passport", "My wife got her passport renewed!"),
        ("I need to renew my passport", "I got my passport renewed in 2015"),
    ],
)
def test_what_another_did_or_at_another_time_closes_no_task(task: str, said: str) -> None:
    assert task_effect(task, said) is None
