"""Interrupts at every point where Python may raise one: when a function begins, and after a call into C."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import recollect

_OURS = str(Path(recollect.__file__).parent)


class Interrupt:
    """Interrupts the nth time that code of ours, in this folder or file, comes to such a point.

    `again` is after how many more functions that begin there a second one comes.
    """

    def __init__(self, at: int, within: str, again: int = 0, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.points = 0
        self.where = ""
        """The point, if it came to that."""
        self._at = at
        self._within = os.path.join(_OURS, within)
        self.twice = again > 0
        self._again = again
        self.error = error

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if event not in ("call", "c_return") or not frame.f_code.co_filename.startswith(self._within):
            return
        self.points += 1
        if self.points == self._at:
            called = f" after {arg.__name__}" if event == "c_return" else ""
            file = frame.f_code.co_filename.removeprefix(_OURS + "/")
            self.where = f"{file}:{frame.f_lineno} {frame.f_code.co_name}{called}"
            sys.setprofile(None)
            if self._again:
                sys.settrace(self._second)  # Python ends a profile that raises, and so does it end this one
            del arg  # it is bound to something that a real interrupt does not keep
            raise self.error

    def _second(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(f"{_OURS}/stores"):
            self._again -= 1
            if not self._again:
                sys.settrace(None)
                self.where += f", then {frame.f_code.co_filename.removeprefix(_OURS)} {frame.f_code.co_name}"
                raise self.error

    def run(self, work: Callable[[], object]) -> BaseException | None:
        """The error that the work ended with, and with it all that its frames hold."""
        before = sys.getprofile()
        sys.setprofile(self)
        try:
            work()
        except BaseException as error:
            return error
        finally:
            sys.settrace(None)
            sys.setprofile(before)
        return None
