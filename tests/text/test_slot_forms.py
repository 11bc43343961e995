"""Slots in other languages than English: whose, which, what."""

from __future__ import annotations

import pytest

from recollect.text.statements.claims import read

SAID = [
    ("Ich wohne seit März in Graz.", "@me", "home", "graz"),
    ("Wir sind letzten Monat nach Bern gezogen.", "@me", "home", "bern"),
    ("Meine Schwester wohnt in Wien.", "my schwester", "home", "wien"),
    ("Ich arbeite jetzt bei Siemens.", "@me", "employer", "siemen"),
    ("Mein Name ist Anna Huber.", "@me", "name", "anna huber"),
    ("Ich bin 34 Jahre alt.", "@me", "age", "34"),
    ("Ich habe am 12. Juni Geburtstag.", "@me", "birthday", "12 juni"),
    ("Ich bin Veganerin.", "@me", "diet", "veganerin"),
    ("Ich bin allergisch gegen Nickel.", "@me", "allergy", "nickel"),
    ("Meine Frau heißt Petra.", "@me", "partner", "petra"),
    ("J'habite à Lyon depuis 2 ans.", "@me", "home", "lyon"),
    ("Ma sœur habite à Nantes.", "my sœur", "home", "nant"),
    ("Je travaille chez Ubisoft.", "@me", "employer", "ubisoft"),
    ("Je m'appelle Chloé.", "@me", "name", "chloé"),
    ("J'ai 28 ans.", "@me", "age", "28"),
    ("Mon anniversaire est le 3 juin.", "@me", "birthday", "3 juin"),
    ("Je suis végan depuis 2020.", "@me", "diet", "végan"),
    ("Je suis allergique au lait.", "@me", "allergy", "lait"),
    ("Mon mari s'appelle Paul.", "@me", "partner", "paul"),
    ("Vivo en Valencia desde mayo.", "@me", "home", "valencia"),
    ("Me he mudado a Bilbao.", "@me", "home", "bilbao"),
    ("Mi hermana vive en Quito.", "my hermana", "home", "quito"),
    ("Trabajo en Mercadona.", "@me", "employer", "mercadona"),
    ("Me llamo Lucía.", "@me", "name", "lucía"),
    ("Tengo 31 años.", "@me", "age", "31"),
    ("Mi cumpleaños es el 5 de mayo.", "@me", "birthday", "5 mayo"),
    ("Soy vegano.", "@me", "diet", "vegano"),
    ("Soy alérgica al gluten.", "@me", "allergy", "gluten"),
    ("Mi marido se llama Óscar.", "@me", "partner", "óscar"),
]


@pytest.mark.parametrize(("text", "owner", "slot", "value"), SAID)
def test_a_sentence_tells_a_slot_of_its_owner(text: str, owner: str, slot: str, value: str) -> None:
    told = [claim for claim in read(text).claims if claim.slot == slot]
    assert [(claim.owner, claim.value, claim.denied, claim.ended) for claim in told] == [
        (owner, frozenset(value.split()), False, False)
    ]
    assert not read(text).unsure


@pytest.mark.parametrize("text", ["Ich wohne nicht in Köln.", "Je n'habite pas à Lyon.", "No vivo en Roma."])
def test_what_is_denied_is_no_value(text: str) -> None:
    assert [claim.denied for claim in read(text).claims] == [True]


@pytest.mark.parametrize("text", ["Ich habe gekündigt.", "J'ai démissionné hier.", "He dejado el trabajo."])
def test_an_end_has_no_value(text: str) -> None:
    assert [(claim.slot, claim.ended) for claim in read(text).claims] == [("employer", True)]


@pytest.mark.parametrize(
    "text",
    [
        "Vielleicht ziehe ich nach Rom.",
        "Früher habe ich in Linz gewohnt.",
        "Si je vivais à Rome, je serais heureuse.",
        "Antes vivía en Lima.",
    ],
)
def test_what_was_or_may_be_is_unsure(text: str) -> None:
    assert read(text).unsure


def test_a_language_without_slots_gives_no_claims_of_the_speaker() -> None:
    assert read("Abito a Modena con mia sorella.").claims == ()
