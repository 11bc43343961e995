"""A hook of MkDocs: links that leave docs/ (to the README, the code, the benchmarks) lead to the repository."""

import re
from typing import Any

_OUTSIDE = re.compile(r"\]\(\.\./([^)]+)\)")


def on_page_markdown(markdown: str, *, config: Any, **_: Any) -> str:
    return _OUTSIDE.sub(rf"]({config['repo_url']}/blob/main/\1)", markdown)
