from pathlib import Path

import pytest

from recollect.policies.importance import ENGLISH, Importance, Rule, assess, check
from recollect.values.errors import PresetError

ENGLISH_POLICY = Importance()

# Rule → texts in which it must fire, and texts in which it must not.
EXAMPLES: dict[str, tuple[list[str], list[str]]] = {
    "remember": (
        [
            "Remember this: the staging password rotates on Mondays",
            "remember that I prefer tabs over spaces",
            "Please remember the door code has changed",
            "please remember",
            "Could you remember that my son is called Ole?",
            "I want you to remember that I hate early flights",
            "Don't forget that the demo is on Friday",
            "don’t forget to water the plants",
            "Do not forget this",
            "Remember: never deploy on a Friday",
            "Ship it. Remember that Bob must sign.",
            "One more thing: don't forget the invoice",
            "Book it and remember that I hate early flights",
            '"Remember this for next time"',
            "Here it is\nRemember this",
            "The plan is set (don't forget the keys)",
            "- remember that the shop closes at six",
            "Keep in mind that the API is slow",
            "Save this to your memory",
            "REMEMBER THIS",
            "Make sure to remember this",
            "Make sure you remember this",
            "You should remember this one",
            "Let's remember this for next time",
            "You must remember this",
            "We need to remember this: production is frozen",
            "It's important to remember this",
            "It is important that you remember this",
            "ok remember this",
            "It would be great if you could remember this",
            "Would you mind remembering this",
            "You'll want to remember this",
            "Do remember this",
            "This should be remembered",
            "Please make sure you never forget this",
        ],
        [
            "he asked me to remember this",
            "She told me you should remember this",
            "He said we must remember this",
            "My boss asked us to remember this",
            "You don't need to remember this",
            "No need to remember this",
            "Make sure not to remember this",
            "You may not remember this",
            "I wonder if we should remember this",
            "I can't remember this",
            "Do you remember that?",
            "do you remember that restaurant in Rome",
            "I don't remember that meeting",
            "I remember that day well",
            "She will always be remembered",
            "Who can remember this long a number?",
            "We forgot about it",
            "I never forget a face",
            "Users often forget their passwords",
            "he couldn't remember this either",
            "It is hard to remember the details",
            "The function saves this to disk",
        ],
    ),
    "decision": (
        [
            "We decided to use PostgreSQL",
            "The decision: blue it is",
            "Decided: no meeting on Fridays",
            "The team agreed on two-week sprints",
            "They settled on Rust",
            "We chose the cheaper vendor",
            "We are going with option B",
            "I'll switch to the annual plan",
            "we will use tabs",
            "(decided on the phone)",
        ],
        [
            "We have not decided yet",
            "We haven't decided on a name",
            "Still undecided about the colour",
            "The weather is nice",
            "There was no decision",
            "We will see",
        ],
    ),
    "action": (
        [
            "Deployed version 2.3 to production",
            "The order was cancelled",
            "Bob merged the pull request",
            "I rolled back the release",
            "The meeting was scheduled for Monday",
            "Action item: call the bank",
            "customer refunded",
        ],
        [
            "It was not deployed",
            "It hasn't shipped",
            "How does deploying work?",
            "The action movie was long",
            "a merger of equals",
        ],
    ),
    "approval": (
        [
            "Alice approved the budget",
            "Waiting for approval from legal",
            "The request was rejected by Bob",
            "Access denied by the owner",
            "Carol signed off on it",
            "They gave the go-ahead",
            "Authorised by finance",
        ],
        ["It was proven wrong", "The projector is broken", "An approximate number", "green tea"],
    ),
    "money": (
        [
            "It costs $500",
            "US$ 1,200 a year",
            "The budget is 45.000 €",
            "€20 a month",
            "Invoice over 300 EUR",
            "about 5 million dollars",
            "USD 12.50 per seat",
            "(£30 each)",
            "¥ 9000",
        ],
        ["echo $HOME", "Europe is large", "The centre of town", "We have 500 users", "$ ls -l", "5 miles"],
    ),
    "small_talk": (
        [
            "ok thanks!",
            "hi",
            "Hi there!",
            "lol",
            "LOL",
            "Thanks!",
            "thank you so much",
            "ok",
            "Ok.",
            "Sounds good, thanks!",
            "good morning everyone",
            "How are you?",
            "👍",
            "no problem :)",
            "Got it, will do.",
            "hahaha nice",
            "you're welcome",
            "bye, see you tomorrow",
        ],
        [
            "Thanks to the new cache, the p95 latency fell from 900 ms to 120 ms",
            "ok, the server is at 10.0.0.3",
            "hi, my name is Ole",
            "Thanks, the order number is 4711",
            "no meat please, I am allergic",
            "Hello World is printed twice",
            "!!!",
            "42",
            "",
            "谢谢",
        ],
    ),
}


def fired(text: str) -> set[str]:
    return {reason.rule for reason in assess(text, ENGLISH_POLICY).reasons}


SAMPLE = Path(__file__).with_name("importance_sample.txt")


@pytest.mark.clause("ATL-02")
@pytest.mark.parametrize(("rule", "precision", "recall"), [("action", 0.95, 0.9), ("money", 0.95, 0.95)])
def test_actions_and_amounts_are_found_in_labelled_sentences(rule: str, precision: float, recall: float) -> None:
    lines = [line.split(" | ") for line in SAMPLE.read_text().splitlines() if not line.startswith("#")]
    meant = {text for labels, text in lines if rule in labels.split(",")}
    raised = {text for _, text in lines if rule in fired(text)}
    assert len(lines) >= 190
    assert len(raised & meant) / len(raised) >= precision, raised - meant
    assert len(raised & meant) / len(meant) >= recall, meant - raised


def test_every_english_rule_has_examples() -> None:
    assert set(EXAMPLES) == {rule.name for rule in ENGLISH}


@pytest.mark.clause("ATL-02")
@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, (yes, _) in EXAMPLES.items() for text in yes])
def test_rule_fires(rule: str, text: str) -> None:
    assert rule in fired(text)


@pytest.mark.clause("ATL-02")
@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, (_, no) in EXAMPLES.items() for text in no])
def test_rule_does_not_fire(rule: str, text: str) -> None:
    assert rule not in fired(text)


@pytest.mark.clause("ATL-02")
@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("Alice lives in Oslo", 0.5),
        ("We decided to use PostgreSQL", 0.7),
        ("Alice approved it", 0.7),
        ("It costs $500", 0.7),
        ("Deployed version 2.3", 0.65),
        ("Alice approved $500 for the team", 0.9),
        ("We decided that it is fine: Alice approved $500, and Bob cancelled the trip", 1.0),
        ("ok thanks!", 0.15),
    ],
)
def test_score(text: str, score: float) -> None:
    assert assess(text, ENGLISH_POLICY).score == pytest.approx(score)


@pytest.mark.clause("ATL-02")
@pytest.mark.parametrize("base", [0.0, 0.5, 0.9, 1.0])
def test_being_asked_to_remember_gives_exactly_one(base: float) -> None:
    judged = assess("Remember that I prefer tabs, we decided it for $5", Importance(base=base))
    assert judged.score == 1.0
    assert judged.explicit
    assert [reason.rule for reason in judged.reasons] == ["remember"]


@pytest.mark.clause("ATL-03")
@pytest.mark.parametrize("text", ["ok thanks!", "hi", "lol"])
def test_small_talk_falls_under_the_limit_of_early_cleanup(text: str) -> None:
    assert assess(text, ENGLISH_POLICY).score < 0.2


def test_reasons_add_up_to_the_score() -> None:
    judged = assess("Bob approved the invoice of 300 EUR", ENGLISH_POLICY)
    assert judged.score == pytest.approx(0.5 + sum(reason.change for reason in judged.reasons))
    assert {reason.rule for reason in judged.reasons} == {"approval", "money"}


@pytest.mark.parametrize(("base", "change", "score"), [(0.9, 0.5, 1.0), (0.1, -0.5, 0.0), (0.5, 0.1, 0.6)])
def test_the_score_stays_between_zero_and_one(base: float, change: float, score: float) -> None:
    policy = Importance(base=base, use=(), rules=(Rule("x", "x", change),))
    assert assess("x", policy).score == score


def test_without_rules_every_text_is_worth_the_base() -> None:
    fixed = Importance(base=0.5, use=())
    for text in ("Remember this!", "ok", "Alice approved $500"):
        judged = assess(text, fixed)
        assert (judged.score, judged.reasons, judged.explicit) == (0.5, (), False)


def test_own_rules_work_beside_the_english_ones_and_in_any_case() -> None:
    policy = Importance(rules=(Rule("incident", r"\bSEV-?[12]\b", 0.3), Rule("merke", "^merke dir", explicit=True)))
    assert assess("a sev1 was resolved", policy).score == pytest.approx(0.95)
    assert assess("Merke dir das", policy).explicit
    assert not assess("Bitte merke dir das", policy).explicit


def test_a_bad_pattern_is_refused_by_name() -> None:
    policy = Importance(rules=(Rule("fine", "x"), Rule("broken", "(oops")))
    with pytest.raises(PresetError, match=r"importance\.rules\.broken\.pattern.*\(oops"):
        check(policy)
    with pytest.raises(PresetError, match="broken"):
        assess("x", policy)


@pytest.mark.parametrize(
    "text", ["a" * 1_000_000, "ok " * 300_000, "remember " * 100_000, "$ " + "5" * 1_000_000, "\n" * 999]
)
def test_long_texts_are_judged_too(text: str) -> None:
    assert 0.0 <= assess(text, ENGLISH_POLICY).score <= 1.0
