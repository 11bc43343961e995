"""A conversation that is going on: orientation before it, observations while it lasts, and what stays at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from recollect.facets.conversations import Conversation, Speaker
from recollect.values.errors import ConflictError, ConversationTransitionError, NotFoundError
from recollect.values.record import Record, Tier

if TYPE_CHECKING:
    from recollect.context.orientation import OrientationDocument
    from recollect.memory import Memory


class Talk:
    """`with memory.conversation("title") as talk:`. It starts on entering and ends on leaving, by an error too.

    What is said in it is kept word for word until it ends. A process that is killed loses none of it: the conversation
    is active still, and `conversations.end` ends it.
    """

    def __init__(self, memory: Memory, start: Callable[[], Conversation], title: str, budget: int) -> None:
        self._memory, self._start, self._title, self._budget = memory, start, title, budget
        self._conversation: Conversation | None = None
        self._orientation: OrientationDocument | None = None

    def __enter__(self) -> Self:
        self._conversation = self._start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.end()
        except NotFoundError:
            return  # it was forgotten meanwhile, and there is nothing to end
        except Exception:
            if error is None:
                raise

    @property
    def conversation(self) -> Conversation:
        """Its id, ref code, channel and state when it was started or ended here."""
        if self._conversation is None:
            raise ConflictError('conversation: is not started yet; use `with memory.conversation("…") as talk:`')
        return self._conversation

    @property
    def memory(self) -> Memory:
        """The same memory, bound to this conversation and its channel."""
        return self._memory.at(channel=self.conversation.channel, conversation=self.conversation.id)

    @property
    def orientation(self) -> OrientationDocument:
        """The orientation about the title, built on first access."""
        if self._orientation is None:
            self._orientation = self.memory.orient(self._title, budget=self._budget)
        return self._orientation

    def say(self, role: Speaker, text: str) -> Record:
        """Add a turn. It is for this conversation only; what matters of it stays at the end."""
        return self._memory.conversations.say(self.conversation.ref_code, role, text)

    def observe(
        self,
        content: str,
        *,
        kind: str = "fact",
        importance: float | None = None,
        tier: Tier | None = None,
        tags: Iterable[str] | None = None,
    ) -> Record:
        """Keep something that was learnt, now. How far it is seen goes by its kind, unless `tier` says so.

        What is known already is counted, and not stored again.
        """
        return self.memory.conversations.observe(content, kind=kind, importance=importance, tier=tier, tags=tags)

    def end(self) -> Conversation:
        """End the conversation, as leaving the `with` block does. A second call does nothing."""
        ref_code = self.conversation.ref_code
        try:
            self._conversation = self._memory.conversations.end(ref_code)
        except ConversationTransitionError:  # somebody else has ended it
            self._conversation = self._memory.conversations.get(ref_code)
        return self._conversation
