"""Memories by position, as they were at one moment, and which of them a filter sees. Neither ever changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
NEVER = (1 << 63) - 1
"""The time of what does not expire."""
ALWAYS = -NEVER
"""The time since which everything is valid that nobody gave another."""


class Snapshot:
    """Memories by position, as they were at one moment: plain arrays, valid for ever and for every thread."""

    def __init__(
        self,
        ids: Sequence[str],
        created: NDArray[np.int64],
        length: NDArray[np.int32],
        conversation: NDArray[np.int32],
        before: NDArray[np.int32],
        after: NDArray[np.int32],
        speaker: NDArray[np.int32],
        speakers: Sequence[str],
    ) -> None:
        self.size = len(created)
        self.ids = ids
        self.created = created
        self.length = length
        self.conversation = conversation
        """A number of the conversation, below the size; a memory outside any has a number of its own."""
        self.before = before
        """The position of the memory before it in the same conversation; -1 for none."""
        self.after = after
        self.speaker = speaker
        self.speakers = speakers
        """By code."""


class Mask:
    """Which positions of a block a filter sees."""

    def __init__(self, block: Snapshot, mask: NDArray[np.bool_], since: int = -NEVER, until: int = NEVER) -> None:
        self.block = block
        self.mask = mask
        self._since, self._until = since, until
        self._cache: dict[Hashable, Any] = {}

    def holds(self, now: int) -> bool:
        """Whether at that time nothing else has expired than when it was made."""
        return self._since <= now < self._until

    def once(self, what: Hashable, make: Callable[[], T]) -> T:
        """What depends on the block and the mask alone, made when first asked for and kept with them."""
        if what not in self._cache:
            self._cache[what] = make()
        return self._cache[what]

    def only(self, positions: NDArray[np.int64]) -> Mask:
        """Of what is seen, these."""
        has = np.zeros_like(self.mask)
        has[positions] = True
        return Mask(self.block, self.mask & has)

    def speakers(self) -> dict[str, int]:
        """How many of those that are seen each said; nobody is the empty name."""
        return self.once("speakers", self._speakers)

    def _speakers(self) -> dict[str, int]:
        counts = np.bincount(self.block.speaker[self.mask], minlength=1)
        names = self.block.speakers
        return {names[code]: int(counts[code]) for code in np.flatnonzero(counts).tolist()}
