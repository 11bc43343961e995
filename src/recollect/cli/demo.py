"""A small story, told by real commands in real processes on a temporary folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
import msgspec

from recollect.cli import output, text
from recollect.cli.lazy import Leaf
from recollect.cli.output import BAD, GOOD, QUIET, STRONG
from recollect.cli.target import Target, scoped
from recollect.values.errors import StoreError

_TABS = "Alice prefers tabs for indentation"
_SPACES = "Alice prefers spaces for indentation"
_DEPLOY = "We decided to deploy on Fridays, never on Mondays"
_SERVER = "The staging server is called pelican"
_QUESTION = "which indentation does Alice want?"
_KEY = "Our key is AKIA" + "Z7QX4MPL2RWT9KDN"
"""Nobody's, but of the form that keys have."""

_INDENT = 3
_MODELS = ("RECOLLECT_EMBEDDER", "RECOLLECT_MODELS")


class DemoStep(msgspec.Struct, frozen=True):
    """A line that a user could type, what it printed, and whether that was as it should be."""

    title: str
    command: str
    output: str
    exit_code: int
    ok: bool


@click.command(cls=Leaf)
@scoped
def demo(target: Target) -> None:
    """See it work, in ten steps. Runs in a temporary folder with the default preset; your memory is not touched.

    \b
    Example:
      recollect demo
    """
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="recollect-demo-") as folder:
        story = _Story(Path(folder), show=not target.json)
        story.tell()
    seconds = round(time.monotonic() - start, 2)
    ok = all(step.ok for step in story.steps)
    if target.json:
        output.emit({"ok": ok, "seconds": seconds, "steps": story.steps})
    else:
        output.say((f"{len(story.steps)} steps in {seconds:.1f} s.", GOOD if ok else BAD), " Now yours: recollect init")
    if not ok:
        click.get_current_context().exit(1)


class _Story:
    """Each step is shown as it happens, and kept."""

    def __init__(self, folder: Path, *, show: bool) -> None:
        self.steps: list[DemoStep] = []
        self._folder = folder
        self._show = show

    def tell(self) -> None:
        tabs = self._remember()
        self._run("Another process asks", "recall", _QUESTION, expect=_TABS)
        self._run("Why that one? Every score can be explained", "recall", _QUESTION, "--explain", expect="text")
        self._run("Alice changes her mind", "revise", tabs, _SPACES, expect="Revised")
        self._run("Now the newer version is recalled", "recall", _QUESTION, expect=_SPACES)
        self._run("and the older one stays in its history", "history", tabs, expect=_TABS)
        self._run("A credential is refused, and repeated nowhere", "remember", _KEY, expect="secret", code=1)
        receipt = self._run("Forgetting gives a receipt", "forget", "--tag", "servers", "--yes", expect="Forgot")
        change = re.search(r"undo (\w+)", receipt)
        self._run("and can be taken back", "undo", *(change.groups() if change else ()), expect="Undid")
        self._run("All of it is in a log that shows tampering", "audit", "verify", expect="intact")

    def _remember(self) -> str:
        """This process is the agent. Returns the short id of what will be revised."""
        from recollect.memory import Memory

        with Memory(self._folder / "memory") as memory:
            records = [
                memory.remember(_TABS, kind="preference"),
                memory.remember(_DEPLOY),
                memory.remember(_SERVER, tags=["servers"]),
            ]
        typed = (
            'memory = Memory("./memory")',
            f'memory.remember("{_TABS}", kind="preference")',
            f'memory.remember("{_DEPLOY}")',
            f'memory.remember("{_SERVER}", tags=["servers"])',
        )
        lines = [f"{text.short(record.id)}  importance {record.importance:.2f}" for record in records]
        title = "An agent remembers three things, in Python"
        self._keep(DemoStep(title, "\n".join(typed), "\n".join(lines), 0, True), prompt=">>> ")
        return text.short(records[0].id)

    def _run(self, title: str, *words: str, expect: str, code: int = 0) -> str:
        """The command in a process of its own. Returns what it printed."""
        command = [sys.executable, "-m", "recollect", *words]
        try:
            done = subprocess.run(
                command,
                cwd=self._folder,
                env=_environment(colour=self._show and output.terminal()),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=30,
                encoding="utf-8",
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise StoreError(f"the demo could not run a second process: {error}") from error
        printed = (done.stdout + done.stderr).rstrip("\n")
        plain = click.unstyle(printed)
        ok = done.returncode == code and expect in " ".join(plain.split())
        typed = " ".join(_quoted(word) for word in ("recollect", *words))
        self._keep(DemoStep(title, typed, printed, done.returncode, ok))
        return plain

    def _keep(self, step: DemoStep, prompt: str = "$ ") -> None:
        self.steps.append(step)
        if not self._show:
            return
        output.say((f"{len(self.steps)}. {step.title}", STRONG))
        for line in step.command.split("\n"):
            output.say((prompt, QUIET), line, indent=_INDENT)
        for line in step.output.split("\n"):
            click.echo(" " * _INDENT + line if line else "", color=output.terminal())
        if not step.ok:
            output.say((f"This is not what was expected (exit code {step.exit_code}).", BAD), indent=_INDENT)
        output.say("")


def _environment(*, colour: bool) -> dict[str, str]:
    """Ours without what would lead the commands to the user's own memory."""
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_") or name in _MODELS
    }
    variables.pop("FORCE_COLOR", None)
    variables["PYTHONUTF8"] = "1"
    if colour:
        variables |= {"FORCE_COLOR": "1", "COLUMNS": str(max(output.width() - _INDENT, 40))}
    return variables


def _quoted(word: str) -> str:
    return f'"{word}"' if " " in word else word
