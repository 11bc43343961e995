"""What SQL here may call, beyond SQLite's own functions."""

from __future__ import annotations

import re
from typing import Any

from recollect.text.segment import fold


def _fold_has(text: Any, folded: str) -> bool:
    """Case-insensitive in every script; SQLite's own LIKE folds ASCII only."""
    return folded in text.casefold()


def _word_like(pattern: Any, text: Any) -> bool:
    return re.search(pattern, fold(text)) is not None


FUNCTIONS = {"fold_has": _fold_has, "word_like": _word_like}
"""By their names in SQL. Each takes two values."""
