"""What is recognised as personal data, and what the presets do with it, through every door."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from recollect import Memory, SecretError
from recollect.policies.personal import Personal, find_personal
from recollect.policies.sensitive_topics import topics
from recollect.presets import Preset, load

CARD, IBAN = "4111 1111 1111 " + "1111", "DE89 3704 0044 " + "0532 0130 00"
MESSAGES = [{"role": "user", "content": "what do you know about me and my health?"}]


def with_rules(**rules: str) -> Preset:
    return replace(load("recollect"), personal=Personal(**rules))  # pyright: ignore[reportArgumentType]


def on_disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("text", "type", "mask"),
    [
        (f"my visa is {CARD}, exp 12/27", "card", "•••• 1111"),
        (f"amex: 3782.822463.10005, visa {CARD.replace(' ', '-')}", "card", "•••• 0005"),
        (f"IBAN {IBAN}", "iban", "DE•• •••• 3000"),
        ("please pay to nl91abna0417164300 until friday", "iban", "NL•• •••• 4300"),
        ("my social is 219 09 9999", "ssn", "•••• 99"),
        ("Meine Steuer-ID lautet 86095742719", "ssn", "•••• 19"),
        ("mi DNI es 12345678Z", "ssn", "•••• 8Z"),
        ("codice fiscale RSSMRA85T10A562S", "ssn", "•••• 2S"),
        ("mon numéro de sécu : 2 55 08 14 168 025 38", "ssn", "•••• 38"),
        ("meu CPF é 529.982.247-25", "ssn", "•••• 25"),
        ("mijn BSN is 111222333", "ssn", "•••• 33"),
        ("my passport number is C01X00T47", "passport", "•••• 47"),
        ("my pin is twenty-two eleven", "pin", "••••"),
        ("mijn pincode is vier vier zeven een", "pin", "••••"),
        ("mi PIN es veintidós once", "pin", "••••"),
        ("4471 is my pin", "pin", "••••"),
        ("the gate code is 4711", "code", "••••"),
        ("the wifi password is fluffy99", "password", "••••"),
        ("das WLAN-Passwort lautet SonnenBlume", "password", "••••"),
        ("la contraseña del wifi es gatito", "password", "••••"),
        ("le mot de passe du wifi est chaton42", "password", "••••"),
        ("la password del wifi è gattino", "password", "••••"),
        ("a senha do wifi é banana123", "password", "••••"),
        ("het wachtwoord is poesje12", "password", "••••"),
        ("my password is purple horse battery staple", "password", "••••"),
    ],
)
def test_an_identifier_is_found_and_masked(text: str, type: str, mask: str) -> None:
    first = find_personal(text)[0]
    assert (first.type, first.mask) == (type, mask)


@pytest.mark.parametrize(
    "text",
    [
        "order 4111 1111 1111 1112 has shipped",  # the checksum is wrong
        "the IBAN DE89 3704 0044 0532 0130 01 was mistyped",
        "part 219 09 9999 is out of stock",  # nothing says what it is
        "my passport expires on 20310115",
        "pin 13 is ground, and pin every dependency",
        "our PIN code is 560001, Bangalore",
        "the password is expired",
        "the password is written on the fridge",
        "das Passwort ist falsch",
        "le mot de passe est incorrect",
        "my password manager is Bitwarden",
        "passwords must have 12 characters",
    ],
)
def test_what_only_looks_like_an_identifier_is_left_alone(text: str) -> None:
    assert find_personal(text) == []


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("I'm diabetic", "health"),
        ("meine Schwester ist schwanger", "health"),
        ("mon frère est asthmatique", "health"),
        ("soy celíaca", "health"),
        ("Anna converted to Islam", "religion"),
        ("mia nonna è cattolica praticante", "religion"),
        ("I voted for the greens", "politics"),
        ("my brother came out as gay", "sexuality"),
        ("my mother is Kurdish", "ethnicity"),
        ("ich bin in der Gewerkschaft", "union"),
        ("meu tio foi preso em 2019", "crime"),
    ],
)
def test_a_sensitive_topic_is_recognised(text: str, topic: str) -> None:
    assert topics(text) == (topic,)


@pytest.mark.parametrize(
    "text",
    [
        "my mum is a nurse in a cancer ward",
        "the church is on the corner",
        "the neighbour's dog has epilepsy",
        "I wrote my thesis on depression",
        "Does diabetes run in families?",
        "I ate, cut the bread and lent him a book",
    ],
)
def test_a_topic_that_is_no_fact_about_a_person_is_not_sensitive(text: str) -> None:
    assert topics(text) == ()


def test_what_is_asked_to_be_remembered_is_kept_with_a_tag(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory") as memory:
        kept = memory.remember(f"my visa is {CARD}", tags=["money"])
        assert (kept.content, kept.tags) == (f"my visa is {CARD}", ("money", "personal.card"))
        assert memory.remember("I'm diabetic").tags == ("sensitive", "sensitive.health")
        assert memory.doctor().ok


@pytest.mark.parametrize(
    ("text", "type"), [("my pin is twenty-two eleven", "pin"), ("our wifi pw is fluffy99", "password")]
)
def test_a_refusal_names_type_and_field_and_not_the_value(tmp_path: Path, text: str, type: str) -> None:
    with Memory(tmp_path / "memory") as memory:
        with pytest.raises(SecretError) as refused:
            memory.remember(text)
        assert (refused.value.field, refused.value.rule) == ("content", type)
        entry = memory.audit.search(action="refuse")[0]
        assert type in str(entry)
    for value in ("eleven", "fluffy99"):
        assert value not in f"{refused.value} {entry}"
        assert value.encode() not in on_disk(tmp_path)


def test_a_preset_refuses_by_name_of_the_type(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory", preset=with_rules(card="refuse", topics="refuse")) as memory:
        with pytest.raises(SecretError, match="a card number") as refused:
            memory.remember(f"my visa is {CARD}")
        assert (refused.value.rule, "1111" in str(refused.value)) == ("card", False)
        with pytest.raises(SecretError, match="health"):
            memory.remember("I'm diabetic")
        assert memory.remember(f"IBAN {IBAN}").tags == ("personal.iban",)


def test_a_masked_value_is_nowhere_on_the_disk(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory", preset=with_rules(card="mask", password="mask")) as memory:
        kept = memory.remember(f"my visa is {CARD}, and the wifi password is fluffy99")
        assert kept.content == "my visa is •••• 1111, and the wifi password is ••••"
        assert kept.tags == ("personal.card", "personal.password")
        nested = memory.remember({"visa": CARD, "note": ["pays in euros"]})
        assert nested.content == {"visa": "•••• 1111", "note": ["pays in euros"]}
        with pytest.raises(SecretError):
            memory.remember("paid", metadata={"card": CARD})
    for value in (CARD, "fluffy99"):
        assert value.encode() not in on_disk(tmp_path)


def test_a_revision_has_the_tags_of_its_own_words(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory") as memory:
        kept = memory.remember(f"my visa is {CARD}", tags=["money"])
        assert memory.revise(kept.id, content="I pay in cash").tags == ("money",)


def test_tags_beyond_the_presets_limit_are_left_out(tmp_path: Path) -> None:
    preset = replace(with_rules(), remember=replace(load("recollect").remember, max_tags=1))
    with Memory(tmp_path / "memory", preset=preset) as memory:
        assert memory.remember(f"my visa is {CARD}", tags=["money"]).tags == ("money",)


def test_a_rule_of_secrets_that_is_switched_off_refuses_no_password(tmp_path: Path) -> None:
    preset = replace(load("recollect"), secrets=replace(load("recollect").secrets, allow=("password",)))
    with Memory(tmp_path / "memory", preset=preset) as memory:
        assert memory.remember("the wifi pw is fluffy99").tags == ("personal.password",)


TOLD = (
    f"My new card is {CARD}. I moved to Lisbon in May. You need my social security number for that form. "
    "Please remember that it is 078 05 1120. I work as a baker."
)


def test_the_end_of_a_conversation_leaves_the_sentence_out_and_keeps_the_others(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory") as memory:
        with memory.conversation("a talk") as talk:
            talk.say("user", TOLD)
        facts = [record.text for record in memory.list() if record.kind != "conversation"]
        assert {"I moved to Lisbon in May.", "I work as a baker."} <= set(facts)
        assert not [fact for fact in facts if "1111" in fact or "05 1120" in fact or "⟦" in fact]
        rules = {entry.meta.get("rule") for entry in memory.audit.search(action="refuse")}
        assert rules == {"card", "ssn"}


def test_automatic_facts_are_masked_where_the_preset_says_so(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory", preset=with_rules(automatic="mask")) as memory:
        with memory.conversation("a talk") as talk:
            talk.say("user", TOLD)
        by_text = {record.text: record.tags for record in memory.list() if record.kind != "conversation"}
        assert by_text["My new card is •••• 1111."] == ("personal.card",)
        assert not any("⟦" in text or "05 1120" in text for text in by_text)


def test_an_observation_is_automatic(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory") as memory, memory.conversation("a talk") as talk:
        with pytest.raises(SecretError):
            talk.observe(f"Their card is {CARD}")
        assert talk.observe("They moved to Lisbon").tags == ()


@pytest.mark.parametrize("preset", ["recollect", "aegis", "atlas"])
def test_a_context_leaves_out_what_is_sensitive_where_it_is_asked_to(tmp_path: Path, preset: str) -> None:
    with Memory(tmp_path / "memory", preset=preset, embedder="none") as memory:
        memory.remember("about my health: I am diabetic", tags=["sensitive.health"])
        memory.remember("about my health: I swim on Mondays")
        assert "diabetic" in str(memory.context(MESSAGES).messages)
        left = str(memory.context(MESSAGES, without_tags=["sensitive"]).messages)
        assert "diabetic" not in left
        assert "Mondays" in left


def test_a_preset_leaves_tags_out_of_every_context(tmp_path: Path) -> None:
    rules = load("recollect")
    preset = replace(rules, context=replace(rules.context, without_tags=("sensitive",)))
    with Memory(tmp_path / "memory", preset=preset, embedder="none") as memory:
        memory.remember("about my health: I am diabetic")
        memory.remember("about my health: I swim on Mondays")
        assert "diabetic" not in memory.context(MESSAGES).text
        assert "diabetic" in memory.context(MESSAGES, without_tags=[]).text
        assert len(memory.recall("my health")) == 2
        assert [hit.memory.text for hit in memory.recall("my health", without_tags=["sensitive"])] == [
            "about my health: I swim on Mondays"
        ]


def test_erased_numbers_stay_erased(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory", embedder="none") as memory:
        kept = memory.remember(f"my visa is {CARD}")
        assert CARD.encode() in on_disk(tmp_path)
        memory.forget(kept.id, erase=True)
        assert memory.list() == []
    assert CARD.encode() not in on_disk(tmp_path)


def test_an_export_with_a_kept_number_can_be_imported(tmp_path: Path) -> None:
    with Memory(tmp_path / "one") as memory, Memory(tmp_path / "two") as other:
        memory.remember(f"my visa is {CARD}")
        memory.export(tmp_path / "all.jsonl")
        other.import_(tmp_path / "all.jsonl")
        assert [record.tags for record in other.list()] == [("personal.card",)]
    with (
        Memory(tmp_path / "three", preset=with_rules(card="refuse")) as strict,
        pytest.raises(SecretError),
    ):
        strict.import_(tmp_path / "all.jsonl")


def test_the_doctor_counts_memories_with_identifiers(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory") as memory:
        kept = memory.remember(f"my visa is {CARD}")
        (finding,) = memory.doctor().findings
        assert (finding.problem, finding.severity, finding.examples) == ("personal data", "info", (kept.id,))
