"""The type of options and arguments that are a path, or may be one."""

from __future__ import annotations

import re
from typing import Any

import click
from click.shell_completion import CompletionItem

from recollect.values.errors import InputError


class PathType(click.ParamType):  # pyright: ignore[reportMissingTypeArgument] (generic since click 8.5 only)
    """A path as it was typed. It must not be empty: Python takes an empty path for the working folder."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.strip():
            raise InputError(_label(param), "must not be empty or blank")
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


def _label(param: click.Parameter | None) -> str:
    """`store` for --store, `path` for PATH..., as people know it."""
    if param is None:
        return "path"
    if isinstance(param, click.Option):
        return max(param.opts, key=len).lstrip("-")
    return re.findall(r"\w+", param.metavar or param.name or "path")[0].lower()


PATH = PathType()
