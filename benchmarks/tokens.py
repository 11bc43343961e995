"""How fast tokens are estimated, and how far the estimate is from what tiktoken counts, where its tables are at hand.

python benchmarks/tokens.py [conversations.json]   # such a file as evaluation takes: its texts are added as a row
TIKTOKEN_CACHE_DIR=folder python benchmarks/tokens.py
"""

from __future__ import annotations

import base64
import hashlib
import json
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from corpus import sentences

from recollect.text.tokens import counter, estimate

_ROOT = Path(__file__).parent.parent
_PROSE = {
    "German": "Gestern waren wir mit den Kindern im Zoo, und obwohl es den ganzen Tag geregnet hat, hatten alle Spaß.",
    "French": "Hier soir, nous avons dîné dans un petit restaurant près de la gare, et tout était délicieux.",
    "Spanish": "Ayer fuimos al mercado con mi hermana y compramos verduras para toda la semana. ¿Qué te parece?",
    "Russian": "Вчера мы с друзьями ходили в новый ресторан недалеко от дома, и мне очень понравилась рыба.",
    "Arabic": "ذهبنا أمس إلى المطعم الجديد القريب من البيت وكان الطعام لذيذا جدا.",
    "Hindi": "कल हम बच्चों के साथ चिड़ियाघर गए थे और बारिश के बावजूद सबको बहुत मज़ा आया।",
    "Chinese": "昨天我们带孩子去了动物园，虽然下了一上午的雨，大家还是玩得很开心。",
    "Japanese": "昨日は家族で水族館に行きました。雨が降っていましたが、子どもたちはとても楽しそうでした。",
    "Korean": "어제는 친구들과 함께 집 근처에 새로 생긴 식당에 갔는데 음식이 정말 맛있었어요.",
}


def _pieces(texts: list[str], size: int = 1000) -> list[str]:
    whole = "\n".join(texts)
    return [whole[at : at + size] for at in range(0, len(whole), size)]


def _files(pattern: str) -> list[str]:
    return [path.read_text() for path in sorted(_ROOT.glob(pattern))]


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


def _texts(given: list[str]) -> dict[str, list[str]]:
    digests = [hashlib.sha256(bytes([number])).digest() for number in range(100)]
    records = [
        {"id": str(uuid.UUID(bytes=one[:16])), "size": one[0], "tags": ["a", "b"], "ok": True} for one in digests
    ]
    found = {Path(path).stem: _pieces(list(_strings(json.loads(Path(path).read_text())))) for path in given}
    return {
        **found,
        "Python": _pieces(_files("src/recollect/**/*.py")),
        "SQL": _pieces(_files("src/recollect/**/*.sql")),
        "Markdown": _pieces(_files("docs/*.md")),
        "JSON": _pieces([json.dumps(records[at : at + 5], indent=2) for at in range(0, 100, 5)]),
        "hashes": [one.hex() for one in digests],
        "base64": [base64.b64encode(one).decode() for one in digests],
        **{language: [text] for language, text in _PROSE.items()},
    }


def _best(work: Callable[[], object], times: int = 20) -> float:
    taken: list[float] = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return min(taken)


def _speed() -> None:
    prose = ". ".join(sentences(2000))
    kilobytes = [prose[at : at + 1024] for at in range(0, 102_400, 1024)]
    messages = [prose[at : at + 250] for at in range(0, 50_000, 250)]
    print(f"estimate: {_best(lambda: list(map(estimate, kilobytes))) / len(kilobytes) * 1e6:.1f} µs a KB of English")
    print(f"estimate: {_best(lambda: list(map(estimate, messages))) * 1e3:.2f} ms for {len(messages)} messages of 250")
    for model in ("gpt-4o", "gpt-4"):
        count = counter(model)
        if count is not estimate:
            taken = _best(lambda count=count: list(map(count, kilobytes)), 5)
            print(f"exact for {model}: {taken / len(kilobytes) * 1e6:.1f} µs a KB")


def _errors(given: list[str]) -> None:
    counts = {name: count for name in ("gpt-4o", "gpt-4") if (count := counter(name)) is not estimate}
    if not counts:
        print("no table of tiktoken's is at hand: install it and set TIKTOKEN_CACHE_DIR to see the errors")
        return
    texts = _texts(given)
    print("\n| text | tokenizer | pieces | in all | median error | 9 of 10 within |\n|---|---|---|---|---|---|")
    for kind, pieces in texts.items():
        guessed = [estimate(text) for text in pieces]
        for name, count in counts.items():
            real = [count(text) for text in pieces]
            errors = sorted(abs(guess / tokens - 1) for guess, tokens in zip(guessed, real, strict=True))
            total = sum(guessed) / sum(real) - 1
            most = errors[min(int(len(errors) * 0.9), len(errors) - 1)]
            print(f"| {kind} | {name} | {len(pieces)} | {total:+.1%} | {statistics.median(errors):.1%} | {most:.1%} |")


if __name__ == "__main__":
    _speed()
    _errors(sys.argv[1:])
