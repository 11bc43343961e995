"""Checks the names of src/ and tests/support: `python tests/support/plain_names.py` exits 1 when a name says nothing.

Two rules:

- No variable, parameter, function, field or attribute is named with a word that says nothing about its value (PALE).
- No two modules of src/ define a top-level class of the same name (`_Private` classes count too).

Exceptions are data: EXCEPTIONS, each with its reason.
"""

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

PALE = frozenset("found one kept known told said given wish least there mine perhaps".split())

# (file, name) -> why the name may stay.
EXCEPTIONS: Mapping[tuple[str, str], str] = {
    ("src/recollect/evaluation/cases.py", "found"): "a key of the JSON that `recollect eval` prints",
    ("src/recollect/server/reviews.py", "told"): "the same key as in the stored body, which the review page shows",
    ("src/recollect/stores/copying/copy.py", "there"): "a key of the JSON that `recollect copy` prints",
    ("src/recollect/stores/postgres/admin/status.py", "told"): "a key of the JSON that `recollect db status` prints",
    ("src/recollect/values/bodies.py", "told"): "a key in the stored body of a rejected suggestion",
}


class Problem(NamedTuple):
    """A name that breaks a rule, and the place that binds it."""

    file: str
    line: int
    name: str
    advice: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.name}: {self.advice}"


def is_pale(name: str) -> bool:
    """Whether a bound name is one of the pale words, with or without leading underscores."""
    return name.lstrip("_") in PALE


def bindings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of everything that the source binds: variables, parameters, functions, fields and attributes."""
    for node in ast.walk(tree):
        match node:
            # A Name in Store context covers assignments, annotations, comprehensions, `for`, `with` and the walrus.
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.Attribute(attr=name, ctx=ast.Store(), value=ast.Name(id="self" | "cls")):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.MatchMapping(rest=str(name)) | ast.alias(asname=str(name)):
                yield node.lineno, name
            case _:
                pass


def pale_names(file: str, source: str) -> list[Problem]:
    """The bindings of a file whose names say nothing about their values."""
    problems: list[Problem] = []
    tree = ast.parse(source, file)
    functions = {
        (node.lineno, node.name) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for line, name in bindings(tree):
        sayer = name.startswith("_told") and (line, name) in functions
        if (is_pale(name) or sayer) and (file, name) not in EXCEPTIONS:
            problems.append(Problem(file, line, name, "say what the value is"))
    return sorted(problems)


def doubled_classes(sources: Mapping[str, str]) -> list[Problem]:
    """The top-level classes whose name another file (or the same file) has already used."""
    first: dict[str, str] = {}
    problems: list[Problem] = []
    for file, source in sources.items():
        for node in ast.parse(source, file).body:
            if not isinstance(node, ast.ClassDef) or (file, node.name) in EXCEPTIONS:
                continue
            if node.name in first:
                advice = f"say what the value is; {first[node.name]} defines a class of this name"
                problems.append(Problem(file, node.lineno, node.name, advice))
            else:
                first[node.name] = f"{file}:{node.lineno}"
    return problems


def read_sources(root: Path, folders: Iterable[str]) -> dict[str, str]:
    """The text of every Python file in these folders, by its path relative to `root`."""
    return {
        path.relative_to(root).as_posix(): path.read_text("utf-8")
        for folder in folders
        for path in sorted((root / folder).rglob("*.py"))
    }


def check(root: Path) -> list[Problem]:
    """Everything that breaks a rule in a checkout."""
    package = read_sources(root, ["src"])
    sources = {**package, **read_sources(root, ["tests/support"])}
    return [
        *(problem for file, source in sources.items() for problem in pale_names(file, source)),
        *doubled_classes(package),
    ]


def main() -> int:
    """Prints the problems of this checkout, and returns the exit status."""
    problems = check(Path(__file__).resolve().parents[2])
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
