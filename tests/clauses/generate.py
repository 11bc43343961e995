"""Make tests/clauses.toml from the document that lists the requirements: `python generate.py CLAUSES.md`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

_ROW = re.compile(r"^\| ([A-Z]{3}-\d\d) \| (.+?) \|$", re.MULTILINE)


def main() -> None:
    rows = _ROW.findall(Path(sys.argv[1]).read_text())
    lines = [f"{ident} = {json.dumps(text, ensure_ascii=False)}" for ident, text in rows]
    target = Path(__file__).parent.parent / "clauses.toml"
    target.write_text("# The requirements, by id. A test that shows one is marked with it.\n" + "\n".join(lines) + "\n")
    print(f"{len(rows)} clauses")


if __name__ == "__main__":
    main()
