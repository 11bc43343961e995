"""The functions of the schema as the migrations make them, to compare with those on a server."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

_SCRIPTS = Path(__file__).parents[1] / "schema"
_FUNCTION = re.compile(
    r"CREATE (?:OR REPLACE )?(FUNCTION \{schema\}\.(\w+)\(([^)]*)\)\n.*?AS \$\$(.*?)\$\$);", re.DOTALL
)


class FunctionScript(NamedTuple):
    """How a function is made."""

    statement: str
    """Makes it anew, whether it is there or not."""
    body: str
    """As the server's catalogue has it."""


def function_script(signature: str, schema: str) -> FunctionScript | None:
    """How the newest migration makes a function, by its name and the types of its arguments."""
    script = _scripts().get(signature)
    return script and FunctionScript(*(part.replace("{schema}", schema) for part in script))


@cache
def _scripts() -> dict[str, FunctionScript]:
    """By name and the types of the arguments. A later migration replaces what an earlier one made."""
    return {
        f"{name}({_types(arguments)})": FunctionScript(f"CREATE OR REPLACE {statement}", body)
        for path in sorted(_SCRIPTS.glob("[0-9]*.sql"))
        for statement, name, arguments, body in _FUNCTION.findall(path.read_text("utf-8"))
    }


def _types(arguments: str) -> str:
    """Of `of_tenant text, of_workspace text`: `text, text`."""
    return ", ".join(argument.split(None, 1)[1].strip() for argument in arguments.split(","))
