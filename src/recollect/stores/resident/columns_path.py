"""Where the columns file of a database is, and how it is removed. Without numpy: whoever erases need not load it."""

from __future__ import annotations

import glob
import os

from recollect.values.errors import ReadOnlyError


def path_of(database: str) -> str:
    return f"{database}-columns"


def temporaries(database: str) -> list[str]:
    """Those that are being written, or were when their process ended."""
    return glob.glob(f"{glob.escape(path_of(database))}-*")


def remove(database: str) -> None:
    """Whatever there is of it, the unfinished ones first: one that is removed cannot be put in place any more.

    ReadOnlyError if it cannot be removed.
    """
    for path in (*temporaries(database), path_of(database)):
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            problem = f"{path} cannot be removed by this process, and may hold what was erased. Remove it"
            raise ReadOnlyError(problem) from error
