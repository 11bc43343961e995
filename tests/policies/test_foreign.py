"""What is kept of turns in other languages than English: statements by their shape."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from recollect.policies.extraction import Said, extract

TURNS = [
    line.split("\t") for line in (Path(__file__).parent / "foreign_turns.tsv").read_text("utf-8").splitlines() if line
]


def kept(text: str) -> list[str]:
    return [fact.text for fact in extract([Said("user", text)])]


@pytest.mark.parametrize(("code", "label", "text"), TURNS)
def test_statements_are_kept_and_talk_is_dropped(code: str, label: str, text: str) -> None:
    assert kept(text) == ([text] if label == "kept" else [])


def test_every_language_has_thirty_turns_and_more() -> None:
    assert min(Counter(code for code, _, _ in TURNS).values()) >= 30


MIXED = [
    ("I live in Rome. Ich wohne seit Mai in Wien.", ["I live in Rome.", "Ich wohne seit Mai in Wien."]),
    ("Thanks, great! Je suis allergique aux noix.", ["Je suis allergique aux noix."]),
    ("Can you check this? Mi jefe se llama Ramón.", ["Mi jefe se llama Ramón."]),
    ("Bedankt! I am allergic to peanuts.", ["I am allergic to peanuts."]),
    ("Danke dir, super! Ich wohne jetzt in Graz.", ["Ich wohne jetzt in Graz."]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "halves"), MIXED)
def test_each_sentence_of_a_mixed_turn_is_read_in_its_own_language(text: str, halves: list[str]) -> None:
    assert kept(text) == halves


def test_the_items_of_a_list_are_kept_with_what_stands_above_them() -> None:
    assert kept("Meine Allergien:\n- Haselnuss\n- Hausstaub\n\nDanke!") == ["Meine Allergien: Haselnuss, Hausstaub"]


def test_a_block_of_fields_is_kept_field_by_field() -> None:
    assert kept("Nombre: Wilmer\nEdad: 31\nOficio: electricista") == [
        "Nombre: Wilmer",
        "Edad: 31",
        "Oficio: electricista",
    ]


ROLES = [
    "Rollenspiel: du bist ein Wirt. Ich bin Ritter und wohne in einer Burg.",
    'Mein Chef schrieb: "Ich wohne ab Mai in Bern und brauche die Akten bis Freitag."',
    "Ich wohne jetzt im Weißen Haus. War nur Spaß!",
    "Corrige ce texte :\nJe habite à Paris et j'ai deux chat.",
    'Was heißt das: "Ich wohne ab Mai in Bern. Meine Frau heißt Petra und kommt mit."',
    "[08:14] Sandra: ich wohne jetzt in Ulm",
]


@pytest.mark.parametrize("text", ROLES)
def test_roles_quotes_jokes_and_pasted_texts_are_not_what_the_user_says(text: str) -> None:
    assert kept(text) == []


def test_a_fact_in_a_clause_beside_a_question_is_kept() -> None:
    assert kept("Mi suegra viene de Badajoz y no come carne, ¿qué le hago?") != []
    assert kept("Wenn mein Bruder nach Kiel fährt, was soll er sehen?") == []


def test_reminders_are_tasks_unless_they_are_for_the_next_minutes() -> None:
    (task,) = extract([Said("user", "Erinnere mich am Montag an den Zahnarzt.")])
    assert task.kind == "task"
    assert kept("Erinnere mich in 10 min an die Nudeln.") == []


KINDS = [
    ("Ich hasse Rosinen im Kuchen.", "preference"),
    ("On a décidé de passer à PostgreSQL.", "decision"),
    ("Tengo que entregar la memoria antes del 30 de junio.", "task"),
    ("Abito a Modena con mia sorella.", "fact"),
    ("Responde sempre em português, por favor.", "preference"),
]


@pytest.mark.parametrize(("text", "kind"), KINDS)
def test_a_statement_has_a_kind(text: str, kind: str) -> None:
    assert [fact.kind for fact in extract([Said("user", text)])] == [kind]


UNKNOWN = [
    ("Mieszkam w Krakowie od trzech lat.", True),
    ("Dziękuję bardzo!", False),
    ("Gdzie jest Kraków?", False),
    ("私はポルトに住んでいます。", True),
    ("ありがとうございます。", False),
    ("私の文章を直してください。", False),
    ("저는 부산에 살아요.", True),
]


@pytest.mark.parametrize(("text", "is_kept"), UNKNOWN)
def test_of_languages_without_a_file_only_what_names_something_is_kept(text: str, is_kept: bool) -> None:
    assert kept(text) == ([text] if is_kept else [])


def test_no_text_takes_long() -> None:
    for word in ("ich ", "mein ", "no ", "bin ", "Ana ", "der die das ", ", ", "« ", "12. ", "a: "):
        kept(word * 3000)
        kept("Ich wohne " + word * 100)
