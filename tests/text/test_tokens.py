"""Tokens: the estimate against what real tokenizers count, and the exact counter where there is one."""

import logging
import sys
from pathlib import Path

import pytest
import tiktoken.load
import tiktoken.registry
from hypothesis import given
from hypothesis import strategies as st

from recollect.text import tokens
from recollect.text.tokens import counter, estimate

KNOWN = [
    # text, tokens by cl100k_base, tokens by o200k_base
    ("Hey Mel! Good to see you! How have you been?", 13, 13),
    ("I'm thinking of getting my car detailed soon. Do you know any good detailers in the area?", 21, 20),
    ("Alice prefers tabs over spaces, and she wants every function to have a docstring.", 17, 17),
    ("I went to a LGBTQ support group yesterday and it was so powerful.", 14, 14),
    (
        "Thanks! That means a lot. Let's meet at 7:30 pm on Friday, near the old library on 5th Avenue.",
        29,
        28,
    ),
    (
        "The quarterly report shows that revenue increased by 12.5% year over year, driven mostly by subscriptions.",
        22,
        22,
    ),
    ("PLEASE DO NOT DEPLOY ON FRIDAY, THE DATABASE MIGRATION IS STILL RUNNING", 18, 17),
    ("ok", 1, 1),
    ("milk\neggs\nbread\nbutter\napples\ncoffee\nrice\nsalt\n", 20, 19),
    ("no, not yet", 4, 4),
    ("1. Preheat the oven to 350°F.\n2. Mix the flour, sugar and butter.\n3. Bake for 25 minutes.", 29, 29),
    (
        '# Setup\n\nRun `pip install recollect`, then:\n\n- create a folder\n- open it with `Memory("./memory")`\n',
        27,
        27,
    ),
    ("| name | tokens | cost |\n|---|---|---|\n| small | 120 | 0.02 |\n| large | 48000 | 7.50 |\n", 37, 37),
    ('def add(a: int, b: int) -> int:\n    """The sum of two numbers."""\n    return a + b\n', 27, 27),
    ("for (let i = 0; i < items.length; i++) {\n  console.log(items[i].displayName);\n}\n", 25, 26),
    (
        "SELECT id, created_at FROM memories WHERE tenant = ? AND expires_at > ? ORDER BY created_at DESC LIMIT 10;",
        25,
        25,
    ),
    (
        "class HttpRequestHandler(BaseHandler):\n    def getUserById(self, userId):\n        return "
        "self._repository.findOne(userId)\n",
        22,
        28,
    ),
    ('{"id": 42, "name": "Alice", "tags": ["admin", "beta"], "active": true, "score": 0.97}', 34, 34),
    (
        '{"type":"function","function":{"name":"get_weather","arguments":"{\\"city\\": \\"Berlin\\", \\"days\\": 3}"}}',
        27,
        27,
    ),
    ('[\n  {\n    "user": "bob",\n    "created_at": "2024-05-17T09:30:00Z"\n  }\n]', 33, 33),
    (
        "2024-05-17 09:30:12,345 ERROR [worker-3] request 98231 failed after 1200 ms: connection reset by peer",
        35,
        35,
    ),
    (
        "Traceback (most recent call last):\n  File \"app.py\", line 12, in <module>\n    main()\nKeyError: 'user_id'",
        32,
        32,
    ),
    ("https://github.com/openai/tiktoken/blob/main/tiktoken/model.py", 16, 16),
    ("https://www.example.com/search?q=best+running+shoes&sort=price_asc&page=3", 22, 23),
    ("/usr/local/lib/python3.11/site-packages/numpy/core/__init__.py", 16, 17),
    ("550e8400-e29b-41d4-a716-446655440000", 18, 18),
    ("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", 43, 43),
    ("dGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZyBhbmQgcnVucyBhd2F5", 56, 52),
    ("3.14159, 2.71828, 1.41421, 1.73205, 0.57721", 28, 28),
    ("+49 30 1234567, +1 (555) 010-9999", 19, 19),
    ("That's amazing, congratulations! 🎉🎉 So happy for you 😊", 18, 14),
    ("👍🔥🚀", 9, 4),
    ("“Well,” she said — and this is the point — “it’s not what we’d agreed on…”", 21, 21),
    (
        "Gestern waren wir mit den Kindern im Zoo, und obwohl es den ganzen Vormittag geregnet hat, hatten "
        "alle großen Spaß. Könntest du mir bitte bis Freitag sagen, ob du zur Geburtstagsfeier kommst?",
        59,
        47,
    ),
    (
        "Hier soir, nous avons dîné dans un petit restaurant près de la gare, et le serveur nous a raconté "
        "l'histoire du quartier. J'aimerais que tu me rappelles d'appeler ma mère dimanche prochain.",
        54,
        44,
    ),
    (
        "Ayer fuimos al mercado con mi hermana y compramos verduras para toda la semana. ¿Podrías "
        "recordarme que tengo que llamar al médico mañana por la mañana?",
        39,
        35,
    ),
    (
        "Ontem fomos à praia com os meus primos e ficamos até o pôr do sol. Você pode me lembrar de pagar "
        "a conta de luz na sexta-feira?",
        42,
        34,
    ),
    (
        "Ieri sera abbiamo cucinato la pasta con le melanzane e siamo rimasti a chiacchierare fino a "
        "mezzanotte. Ricordami che giovedì devo portare la macchina dal meccanico.",
        52,
        47,
    ),
    (
        "Gisteren zijn we met de trein naar Utrecht gegaan om mijn oma te bezoeken. Kun je me eraan "
        "herinneren dat ik volgende week de verzekering moet bellen?",
        44,
        31,
    ),
    (
        "Wczoraj byliśmy u babci na obiedzie, a potem poszliśmy na długi spacer po lesie. Przypomnij mi, "
        "żebym w piątek odebrał paczkę z poczty.",
        57,
        52,
    ),
    (
        "Dün akşam arkadaşlarımla sinemaya gittik ve film beklediğimden çok daha güzeldi. Lütfen bana "
        "yarın sabah doktoru aramam gerektiğini hatırlat.",
        59,
        40,
    ),
    (
        "Hôm qua tôi đi ăn phở với mấy người bạn ở gần nhà, rồi cả nhóm đi dạo quanh hồ. Nhắc tôi ngày mai "
        "gọi điện cho mẹ nhé.",
        62,
        37,
    ),
    (
        "Igår åkte vi ut till stugan och badade trots att vattnet var kallt. Kan du påminna mig om att "
        "boka tid hos tandläkaren?",
        42,
        37,
    ),
    (
        "Вчера мы с друзьями ходили в новый ресторан недалеко от дома, и мне очень понравилась рыба. "
        "Напомни мне, пожалуйста, позвонить маме в воскресенье.",
        77,
        41,
    ),
    (
        "Учора ми їздили до Львова і зустріли там старих друзів. Нагадай мені, будь ласка, купити квитки "
        "на потяг до п'ятниці.",
        68,
        45,
    ),
    (
        "Χθες πήγαμε στη θάλασσα με τα παιδιά και φάγαμε ψάρι σε μια μικρή ταβέρνα. Θύμισέ μου να "
        "τηλεφωνήσω στον γιατρό αύριο το πρωί.",
        107,
        52,
    ),
    (
        "אתמול הלכנו עם הילדים לגן החיות והיה ממש כיף למרות הגשם. תזכיר לי בבקשה להתקשר לרופא מחר בבוקר.",
        92,
        38,
    ),
    (
        "ذهبنا أمس إلى المطعم الجديد القريب من البيت وكان الطعام لذيذا جدا. من فضلك ذكرني غدا صباحا أن "
        "أتصل بالطبيب لتحديد موعد.",
        86,
        36,
    ),
    (
        "دیروز با دوستانم به کوه رفتیم و هوا خیلی خوب بود. لطفا فردا صبح به من یادآوری کن که به مادرم زنگ بزنم.",
        71,
        37,
    ),
    (
        "कल हम बच्चों के साथ चिड़ियाघर गए थे और बारिश के बावजूद सबको बहुत मज़ा आया। कृपया मुझे शुक्रवार को "
        "याद दिलाना कि मुझे डॉक्टर को फ़ोन करना है।",
        146,
        43,
    ),
    (
        "গতকাল আমরা বন্ধুদের সঙ্গে নদীর ধারে ঘুরতে গিয়েছিলাম, খুব ভালো লেগেছে। কাল সকালে আমাকে মাকে ফোন করার কথা মনে করিয়ে দিও।",
        145,
        38,
    ),
    (
        "เมื่อวานเราไปกินข้าวที่ร้านใหม่ใกล้บ้าน อาหารอร่อยมาก ช่วยเตือนฉันพรุ่งนี้เช้าให้โทรหาหมอด้วยนะ",
        87,
        39,
    ),
    (
        "昨天我们带孩子去了动物园，虽然下了一上午的雨，大家还是玩得很开心。请在星期五提醒我给医生打电话。",
        57,
        33,
    ),
    (
        "昨天我們帶孩子去了動物園，雖然下了一上午的雨，大家還是玩得很開心。請在星期五提醒我打電話給醫生。",
        66,
        39,
    ),
    (
        "昨日は家族で水族館に行きました。雨が降っていましたが、子どもたちはとても楽しそうでした。金曜日に病"
        "院へ電話するのを忘れないように教えてください。",
        74,
        50,
    ),
    (
        "어제는 친구들과 함께 집 근처에 새로 생긴 식당에 갔는데 음식이 정말 맛있었어요. 금요일에 병원에 "
        "전화하라고 꼭 알려 주세요.",
        76,
        41,
    ),
]
"""What tiktoken counts: conversation, documents, code, JSON, names and numbers, then twenty-three languages."""
PLAIN = 33
"""So many of them are English or no language."""


@pytest.mark.parametrize(("text", "cl100k", "o200k"), KNOWN)
def test_an_estimate_is_near_what_a_tokenizer_counts(text: str, cl100k: int, o200k: int) -> None:
    assert 0.8 * o200k - 1 <= estimate(text) <= 1.3 * max(o200k, min(cl100k, 1.2 * o200k)) + 2


@pytest.mark.parametrize(("text", "cl100k", "o200k"), KNOWN[:PLAIN])
def test_english_code_and_json_are_never_much_underestimated(text: str, cl100k: int, o200k: int) -> None:
    assert estimate(text) >= 0.88 * o200k


def test_estimates_of_english_code_and_json_are_within_a_tenth_in_all() -> None:
    guessed = sum(estimate(text) for text, _, _ in KNOWN[:PLAIN])
    assert 1.0 <= guessed / sum(real for _, _, real in KNOWN[:PLAIN]) <= 1.1


def test_estimates_of_other_languages_are_within_a_tenth_in_all() -> None:
    guessed = sum(estimate(text) for text, _, _ in KNOWN[PLAIN:])
    assert 0.95 <= guessed / sum(real for _, _, real in KNOWN[PLAIN:]) <= 1.1


def test_nothing_is_no_token_and_anything_is_one() -> None:
    assert estimate("") == 0
    assert all(estimate(text) >= 1 for text in (" ", "\n", ".", "a", "\x00", "\ud800", "é", "́", "𒀀"))


@pytest.mark.parametrize("letter", [" ", "\t", "\n", ".", "a", "A", "7", "é", "я", "字", "👍", "\u200b", "\ud800"])
def test_however_long_a_run_it_is_never_free(letter: str) -> None:
    assert estimate(letter * 100_000) > 1000


@given(st.text(st.characters()))
def test_any_text_has_an_estimate(text: str) -> None:
    tokens = estimate(text)
    assert tokens == estimate(text)
    assert bool(text) <= tokens <= 3 * len(text)


@given(st.text(), st.text())
def test_two_texts_are_about_as_many_tokens_together_as_apart(first: str, second: str) -> None:
    apart = estimate(first) + estimate(second)
    assert abs(estimate(f"{first}\n{second}") - apart) <= 3 + apart // 5


# Exact


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """tiktoken's cache, empty; a fetch fails the test."""

    def fetched(path: str) -> bytes:
        raise AssertionError(f"{path} was fetched")

    monkeypatch.setattr(tiktoken.load, "read_file", fetched)
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    return tmp_path


def _bytewise(name: str) -> tiktoken.Encoding:
    """One token a byte."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    return tiktoken.Encoding(name, pat_str=r"(?s:.)", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 256})


@pytest.mark.parametrize(
    "model", [None, "gpt-4o", "gpt-4", "text-embedding-3-small", "gpt-oss-20b", "gpt2", "", "no such"]
)
def test_without_a_table_it_is_the_estimate_and_says_so_once(
    cache: Path, caplog: pytest.LogCaptureFixture, model: str | None
) -> None:
    with caplog.at_level(logging.INFO, logger="recollect"):
        assert counter(model) is estimate
    assert [(one.levelname, "nothing is fetched" in one.message) for one in caplog.records] == [("INFO", True)]


def test_a_damaged_table_is_neither_used_nor_deleted(cache: Path) -> None:
    for name, _ in tokens._TABLES.values():
        (cache / name).write_bytes(b"half a tab")
    assert counter("gpt-4o") is counter("gpt-4") is estimate
    assert len(list(cache.iterdir())) == 2


def test_a_cache_that_is_switched_off_has_no_table(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert counter() is estimate


def test_without_tiktoken_it_is_the_estimate(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with caplog.at_level(logging.INFO, logger="recollect"):
        assert counter("gpt-4o") is estimate
    assert "pip install tiktoken" in caplog.text


def test_an_encoding_that_cannot_be_loaded_is_no_error(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tokens, "_cached", lambda encoding: True)
    monkeypatch.setattr(tiktoken.load, "read_file", lambda path: b"no table")
    with caplog.at_level(logging.INFO, logger="recollect"):
        assert counter("gpt-4o") is estimate
    assert "could not load o200k_base" in caplog.text


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        (None, "o200k_base"),
        ("gpt-4o-mini", "o200k_base"),
        ("openai/GPT-4", "cl100k_base"),
        ("text-embedding-3-small", "cl100k_base"),
        ("mistral-large", "o200k_base"),
        ("gpt-oss-120b", "o200k_harmony"),
    ],
)
def test_a_model_is_counted_by_its_encoding(
    cache: Path, monkeypatch: pytest.MonkeyPatch, model: str | None, encoding: str
) -> None:
    monkeypatch.setitem(tiktoken.registry.ENCODINGS, encoding, _bytewise(encoding))
    count = counter(model)
    assert count is not estimate
    assert count("naïve") == 6
    assert count("") == 0
    assert count("<|endoftext|>") == 13
    assert count("\ud800") > 0


def test_claude_is_estimated_with_more_room(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = "Alice prefers tabs over spaces, and she wants every function to have a docstring. " * 10
    for model in ("claude-sonnet-4-5", "anthropic/claude-3-haiku", "us.anthropic.Claude-3"):
        assert counter(model)(text) == round(estimate(text) * 1.15)
    assert counter("claude")("") == 0
    assert not caplog.records


@pytest.mark.parametrize(("model", "column"), [("gpt-4", 1), ("gpt-4o", 2)])
def test_exact_counts_are_the_known_figures(model: str, column: int) -> None:
    if (count := counter(model)) is estimate:
        pytest.skip("the table is not in tiktoken's cache")
    assert [count(known[0]) for known in KNOWN] == [known[column] for known in KNOWN]
