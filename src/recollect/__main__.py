"""`python -m recollect` is the command `recollect`."""

from __future__ import annotations

import gc
import sys

_SELDOM = 100_000
"""Objects after which Python looks for circles among them: imports make many, and none of them is garbage."""
_INTERRUPTED = 130
"""The exit code after Ctrl-C: `recollect.cli.failures` has it too, but is not imported yet when it is needed here."""


def main() -> None:
    """Run the command line and exit. Ctrl-C ends it quietly also while modules are imported."""
    gc.set_threshold(_SELDOM)
    try:
        from recollect.cli import app

        app.main()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
