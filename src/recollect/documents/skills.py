"""SKILL.md files: what an agent can do and how it shall behave, read once and held for as long as the process lives."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from recollect.values import validation
from recollect.values.errors import InputError, NotFoundError

FILE = "SKILL.md"
MAX_BYTES = 1_048_576
_DESCRIPTION = 200
"""Letters of a description that is taken from the text."""
_FOLDED = frozenset((">", "|", ">-", "|-", ">+", "|+"))
"""YAML's marks for a value on the lines below."""

Folders = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class Skill(msgspec.Struct, frozen=True):
    name: str
    description: str
    text: str
    """The instructions, without the front matter."""
    path: str
    for_all: bool = False
    """Whether it lies in the root folder, and so is for every agent."""


class Skills(msgspec.Struct, frozen=True):
    """The same for every tenant and agent. A change of the files shows when the next Memory is made."""

    all: tuple[Skill, ...] = ()

    def __iter__(self) -> Iterator[Skill]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def get(self, name: str) -> Skill:
        for skill in self.all:
            if skill.name == name:
                return skill
        names = ", ".join(skill.name for skill in self.all) or "none"
        raise NotFoundError(f"there is no skill {validation.label(name, 'skills')}; known: {names}")

    def for_agent(self, agent: str | None, named: Iterable[str] = ()) -> list[Skill]:
        """Those for all, then those named, or if none is named, the one that is called like the agent."""
        own = [self.get(name) for name in named] or [skill for skill in self.all if skill.name == agent]
        shared = [skill for skill in self.all if skill.for_all]
        return list({skill.name: skill for skill in [*shared, *own]}.values())


def load_skills(folders: Folders | None) -> Skills:
    """Every SKILL.md below the folders, read now."""
    if folders is None:
        return Skills()
    listed = [folders] if isinstance(folders, str | os.PathLike) else validation.sequence(folders, "skills")
    roots = [_root(folder) for folder in listed]
    files = {os.path.realpath(path): path for root in roots for path in _files(root)}  # one may lie below another
    skills: dict[str, Skill] = {}
    for path in files.values():
        skill = _read(path, os.path.dirname(path) in roots)
        if skill.name in skills:
            raise InputError("skills", f"{path} and {skills[skill.name].path} have the same name, {skill.name}")
        skills[skill.name] = skill
    return Skills(tuple(skills.values()))


def _root(folder: Any) -> str:
    if not isinstance(folder, str | os.PathLike):
        raise InputError("skills", f"must be a folder or a list of folders, not {type(folder).__name__}")
    root = os.path.abspath(os.fsdecode(folder))  # pyright: ignore[reportUnknownArgumentType]
    if not os.path.isdir(root):
        raise InputError("skills", f"{root} is not a folder")
    return root


def _files(root: str) -> list[str]:
    """In a fixed order, those of a folder before those below it. Links to folders are not followed: they may circle."""

    def unreadable(error: OSError) -> None:
        raise InputError("skills", f"{error.filename} cannot be read: {error.strerror}")

    paths: list[str] = []
    for folder, below, names in os.walk(root, onerror=unreadable):
        below.sort()
        if FILE in names:
            paths.append(os.path.join(folder, FILE))
    return paths


def _read(path: str, for_all: bool) -> Skill:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError("skills", f"{path} cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise InputError("skills", f"{path} is over the limit of {MAX_BYTES:,} bytes")
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError("skills", f"{path} is not UTF-8: byte {error.start} cannot be read") from None
    front, body = _parted(text)
    body = body.strip()
    if not body:
        raise InputError("skills", f"{path} says nothing")
    first = body.partition("\n")[0].lstrip("#").strip()
    name = _name(front.get("name") or os.path.basename(os.path.dirname(path)), path)
    return Skill(name, front.get("description") or first[:_DESCRIPTION], body, path, for_all)


def _name(value: str, path: str) -> str:
    try:
        return validation.label(value, "name")
    except InputError as error:
        raise InputError("skills", f"{path}: name {error.problem}") from None


def _parted(text: str) -> tuple[dict[str, str], str]:
    """The keys between two lines of `---` at the very beginning, and what comes after them."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return {}, text
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        return {}, text
    return _keys(lines[1:end]), "\n".join(lines[end + 1 :])


def _keys(lines: Iterable[str]) -> dict[str, str]:
    """`key: value`, quoted or not; indented lines below a key belong to it. Anything else is nobody's concern here."""
    keys: dict[str, str] = {}
    last = ""
    for line in lines:
        if line[:1].isspace() and last:
            keys[last] = f"{keys[last]} {line.strip()}".strip()
            continue
        key, colon, value = line.partition(":")
        last = key.strip() if colon and not line.startswith("#") else ""
        if last:
            keys[last] = "" if value.strip() in _FOLDED else _unquoted(value.strip())
    return keys


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
