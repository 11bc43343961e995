"""Our WordPiece against the `tokenizers` package: the same tokens for every text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unicodedata import category

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from recollect.models.embedders.wordpiece import WordPiece, supports

pytest_plugins = ["support.model_files"]

HOSTILE = [
    "",
    " ",
    "\t\n\r ",
    "Alice prefers tabs over spaces, doesn't she?",
    "naïve café Ångström İstanbul ŞİŞLİ ÇĞ ﬁne ǆ ß ẞ",
    "ΟΔΥΣΣΕΥΣ ΣΑΣ σΣ Σ",
    "Ελληνικά, русский Ёлка йод, українська ґ",
    "日本語のテキスト。東京は大きい",
    "中文字符 mixed with English中文and more",
    "한국어 텍스트는 자모로 나뉜다",
    "שָׁלוֹם עולם مرحبا بالعالم \u200f\u202eright to left\u202c",
    "emoji 😀👨‍👩‍👧‍👦🏳️‍🌈 👍🏽 ☃️ and text😀glued",
    "zero\u200bwidth\u200cjoiners\u200dand\ufeffmarks\u2060here",
    "soft\u00adhyphen non\u00a0breaking\u3000ideographic\u2028line\u2029para",
    "controls\x00null\x01\x02\x07bell\x0bvt\x0cff\x1c\x1d\x1e\x1f\x7f\x85nel\x9f",
    "replacement\ufffdcharacter private\ue000use \U000f0000plane",
    "combining e\u0301 o\u0308\u0304 z\u0351\u032b\u0343\u0346 a\u0300\u0316\u0301",
    "Zalgo H̸̡̪̯ͨ͊̽̅̾̎Ȩ̬̩̾͛ͪ̈́̀́͘ ̶̧̨̱̹̭̯ͧ̾ͬC̷̙̲̝͖ͭ̏ͥͮ͟Oͮ͏̮̪̝͍M̲̖͊̒ͪͩͬ̚̚͜Ȇ̴̟̟͙̞ͩ͌͝",
    "हिन्दी देवनागरी ไทย ภาษา বাংলা தமிழ் ພາສາລາວ မြန်မာ",
    "a" * 99,
    "a" * 100,
    "a" * 101,
    "pneumonoultramicroscopicsilicovolcanoconiosis antidisestablishmentarianism",
    "x" * 5000 + " end",
    "漢" * 5000,
    "https://example.com/a/b?c=d&e=%20#frag user@example.org C:\\dir\\file.txt",
    "def f(x): return x**2  # ->[int]_{i,j} ~`!@#$%^&*()-=+",
    "[CLS] and [SEP] and [MASK] and [PAD] and [UNK] inside",
    "foo[SEP]bar[sep]baz[ SEP ][[CLS]][CL",
    "$100 €50 £20 ¥1000 ₿1 50% ½ ² ™ © ®",
    "“quotes” ‘single’ «guillemets» –dash— …ellipsis •bullet 、。「」！？",
    "１２３ ＡＢＣ ｶﾀｶﾅ 豈更 \U0002f800\U00020000",
    "\U0002b820\U0002b91f\U0002b920 at the edge of the ideographs",
    "ᾳ ΐ ﷺ ŉ ǰ ẖ \u0344 \u0340 \u1fef \u037e \u212a \u212b",
    "𝒻𝒶𝓃𝒸𝓎 𝕋𝕖𝕩𝕥 ⓒⓘⓡⓒⓛⓔ",
]

ALPHABET = "aA zZ0.,'-[]éÉΣσñ中日한\u0301\u0308\u200b\u00ad\u0000\u0085\t\n\u3000שل😀\u200d\ufe0fİß#_\u2e43\u1ab0\u08e2"


@pytest.fixture(scope="module")
def document(model_folder: Path) -> dict[str, Any]:
    return json.loads((model_folder / "tokenizer.json").read_bytes())


@pytest.fixture(scope="module")
def ours(document: dict[str, Any]) -> WordPiece:
    return WordPiece(document, 512)


@pytest.fixture(scope="module")
def theirs(document: dict[str, Any]) -> Tokenizer:
    return reference(document)


def reference(document: dict[str, Any], limit: int = 512) -> Tokenizer:
    tokenizer = Tokenizer.from_str(json.dumps(document))
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)
    return tokenizer


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[:30])
def test_a_hostile_text_has_the_same_tokens(ours: WordPiece, theirs: Tokenizer, text: str) -> None:
    assert ours.encode(text) == theirs.encode(text).ids


@settings(max_examples=500, deadline=None)
@given(st.text(max_size=200))
def test_any_text_has_the_same_tokens(ours: WordPiece, theirs: Tokenizer, text: str) -> None:
    assert ours.encode(text) == theirs.encode(text).ids


@settings(max_examples=500, deadline=None)
@given(st.text(alphabet=ALPHABET, max_size=60))
def test_letters_that_meet_badly_have_the_same_tokens(ours: WordPiece, theirs: Tokenizer, text: str) -> None:
    assert ours.encode(text) == theirs.encode(text).ids


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*HOSTILE, "[SEP]", "[MASK]", "the", "Ünïcode"]), max_size=6).map("".join))
def test_hostile_texts_together_have_the_same_tokens(ours: WordPiece, theirs: Tokenizer, text: str) -> None:
    assert ours.encode(text) == theirs.encode(text).ids


@pytest.mark.slow
def test_every_character_there_is_has_the_same_tokens(document: dict[str, Any]) -> None:
    """Of those that no script uses, which are most and all alike, every hundredth."""
    ours, theirs = WordPiece(document, 100_000), reference(document, 100_000)
    codes = (code for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    letters = [chr(code) for code in codes if category(chr(code)) not in ("Cn", "Co") or code % 100 == 0]

    for at in range(0, len(letters), 2000):
        text = " ".join(f"a{letter}b {letter}" for letter in letters[at : at + 2000])
        assert ours.encode(text) == theirs.encode(text).ids, f"from U+{ord(letters[at]):04X} on"


@pytest.mark.parametrize(
    "options",
    [
        {"lowercase": False},
        {"lowercase": False, "strip_accents": True},
        {"strip_accents": False},
        {"handle_chinese_chars": False},
        {"clean_text": False},
        {"clean_text": False, "strip_accents": False, "handle_chinese_chars": False, "lowercase": False},
    ],
    ids=str,
)
def test_the_normalisation_is_what_the_file_says(document: dict[str, Any], options: dict[str, bool]) -> None:
    changed = {**document, "normalizer": document["normalizer"] | options}
    ours, theirs = WordPiece(changed, 512), reference(changed)

    for text in [*HOSTILE, *ALPHABET, ALPHABET]:
        assert ours.encode(text) == theirs.encode(text).ids, text


def test_the_ends_may_be_given_the_old_way(document: dict[str, Any]) -> None:
    changed = {**document, "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 102], "cls": ["[CLS]", 101]}}

    assert supports(changed)
    assert WordPiece(changed, 512).encode("tea") == reference(changed).encode("tea").ids == [101, 5572, 102]


@pytest.mark.parametrize("limit", [3, 4, 10, 511, 512])
def test_what_is_too_long_is_cut_and_still_ended(document: dict[str, Any], limit: int) -> None:
    ours, theirs = WordPiece(document, limit), reference(document, limit)

    for text in ["one two three " * 400, "漢字" * 400, "[SEP]" * 600, "antidisestablishmentarianism " * 90]:
        ids = ours.encode(text)
        assert ids == theirs.encode(text).ids
        assert len(ids) == min(limit, 512)
        assert ids[-1] == 102


def test_a_word_has_the_same_tokens_when_it_comes_again(ours: WordPiece, theirs: Tokenizer) -> None:
    text = "Antidisestablishmentarianism, \u200b antidis\u00adestablishmentarianism ¿antidisestablishmentarianism?"

    assert ours.encode(text) == ours.encode(text) == theirs.encode(text).ids


def test_more_words_than_are_remembered_do_no_harm(document: dict[str, Any], theirs: Tokenizer) -> None:
    ours = WordPiece(document, 512)
    for number in range(60_000):
        ours.encode(f"w{number}")

    assert ours.encode("w7 w50000 w59999 tea") == theirs.encode("w7 w50000 w59999 tea").ids


def test_half_a_surrogate_pair_is_left_out(ours: WordPiece) -> None:
    assert ours.encode("te\ud800a") == ours.encode("tea")


@pytest.mark.parametrize(
    "change",
    [
        {"model": {"type": "BPE"}},
        {"model": {"type": "Unigram"}},
        {"normalizer": None},
        {"normalizer": {"type": "Lowercase"}},
        {"pre_tokenizer": {"type": "Whitespace"}},
        {"post_processor": None},
        {"added_tokens": [{"content": "x", "id": 1, "normalized": True, "single_word": False}]},
        {"added_tokens": [{"content": "x", "id": 1, "normalized": False, "single_word": True}]},
    ],
    ids=str,
)
def test_other_kinds_are_told_apart(document: dict[str, Any], change: dict[str, Any]) -> None:
    assert supports(document)
    assert not supports(document | change)
