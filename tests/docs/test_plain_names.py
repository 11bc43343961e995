from pathlib import Path

import pytest
from support import plain_names

ROOT = Path(__file__).parents[2]

BAD = {
    "found = 1": "found",
    "_kept: int = 1": "_kept",
    "def load(given): pass": "given",
    "def load(*, told=True): pass": "told",
    "def load(**wish): pass": "wish",
    "def there(): pass": "there",
    "async def mine(): pass": "mine",
    "def _told_twice(): pass": "_told_twice",
    "key = lambda one: one.id": "one",
    "ids = [one.id for one in records]": "one",
    "for known in records: pass": "known",
    "with open(path) as found: pass": "found",
    "try: pass\nexcept OSError as said: pass": "said",
    "if (least := low()): pass": "least",
    "first, (kept, last) = values": "kept",
    "class Record:\n    told: str": "told",
    "class Record:\n    def __init__(self):\n        self._known = {}": "_known",
    "import json as perhaps": "perhaps",
    "match value:\n    case [*kept]: pass": "kept",
    "match value:\n    case {**found}: pass": "found",
}


@pytest.mark.parametrize("source", BAD, ids=range(len(BAD)))
def test_a_name_that_says_nothing_is_refused_with_its_line(source: str) -> None:
    (problem,) = plain_names.pale_names("some/file.py", f"\n{source}\n")
    line = next(number for number, text in enumerate(f"\n{source}".split("\n"), 1) if BAD[source] in text)
    assert str(problem) == f"some/file.py:{line}: {BAD[source]}: say what the value is"


@pytest.mark.parametrize(
    "source",
    [
        "records = store.found",  # the name of somebody else's attribute
        "call(told=True)",
        "row = {'kept': 1}",
        "someone = known_ids = not_found = 1",
        "_told_once = 1",  # only functions may not begin so
    ],
)
def test_other_names_pass(source: str) -> None:
    assert plain_names.pale_names("some/file.py", source) == []


def test_a_class_name_is_used_once() -> None:
    sources = {"a.py": "class _Plan: pass\nclass Other: pass", "b.py": "\nclass _Plan: pass"}
    (problem,) = plain_names.doubled_classes(sources)
    assert str(problem) == "b.py:2: _Plan: say what the value is; a.py:1 defines a class of this name"
    assert plain_names.doubled_classes({"a.py": "class Plan:\n    class Step: pass", "b.py": "class Step: pass"}) == []


def test_an_exception_is_of_one_file_and_is_needed() -> None:
    for (file, name), reason in plain_names.EXCEPTIONS.items():
        source = (ROOT / file).read_text()
        assert name in {bound for _, bound in plain_names.bindings(plain_names.ast.parse(source))}, (
            f"{file} has no {name}"
        )
        assert plain_names.pale_names(file, source) == []
        assert plain_names.pale_names("another.py", source) != []
        assert reason


def test_this_checkout_passes() -> None:
    assert [str(problem) for problem in plain_names.check(ROOT)] == []
