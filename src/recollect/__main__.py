"""`python -m recollect` is the command `recollect`."""

from __future__ import annotations

import sys

_INTERRUPTED = 130
"""The exit code after Ctrl-C: `recollect.cli.failures` has it too, but is not imported yet when it is needed here."""


def main() -> None:
    """Run the command line and exit. Ctrl-C ends it quietly also while modules are imported."""
    try:
        from recollect.cli import app

        app.main()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
