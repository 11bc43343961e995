"""Channels and conversations on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from recollect.cli import output, text
from recollect.cli.arguments import Call, takes
from recollect.cli.derived import derived
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import ID, QUIET, STRONG, Column, Styled
from recollect.cli.target import Target, scoped
from recollect.values.record import Record, utc_now

if TYPE_CHECKING:
    from recollect.facets.channels import Channel
    from recollect.facets.conversations import Conversation

_MOST_TURNS = 100_000


@click.group(
    cls=LazyGroup,
    default="list",
    sections={"Commands": {"list": "conversations:list_channels", "create": "conversations:create_channel"}},
)
def channels() -> None:
    """List the workspace's channels, or make one.

    \b
    Example:
      recollect channels create ops "What runs where"
    """


def _print_channels(channels: Sequence[Channel]) -> None:
    rows: list[Sequence[Styled]] = [
        [(channel.name, STRONG), "default" if channel.is_default else "", channel.description or ("", QUIET)]
        for channel in channels
    ]
    output.table([Column("channel"), Column(""), Column("about", wrap=True)], rows)


list_channels = derived("channels.list", "List channels, the default one first.", "channels", show=_print_channels)
create_channel = derived(
    "channels.create",
    "Make a channel.",
    'channels create ops "What runs where"',
    show=lambda channel: output.say("Made the channel ", (channel.name, STRONG)),
)


@click.group(
    cls=LazyGroup,
    default="list",
    sections={
        "Commands": {
            "list": "conversations:list_conversations",
            "start": "conversations:start",
            "show": "conversations:show",
            "say": "conversations:say",
            "end": "conversations:end",
            "archive": "conversations:archive",
        }
    },
    former={"idle": "end"},
)
def conversations() -> None:
    """Start, list and end conversations. What matters of one is stored when it ends.

    \b
    Example:
      recollect conversations start "Planning the trip"
      recollect conversations say 7LqW9aK2mXc "We decided to go by train"
      recollect conversations end 7LqW9aK2mXc
    """


def _print_conversations(conversations: Sequence[Conversation]) -> None:
    if not conversations:
        output.say("There are no conversations here.")
        return
    now = utc_now()
    rows: list[Sequence[Styled]] = [
        [
            conversation.ref_code,
            text.ago(conversation.started_at, now),
            conversation.channel,
            conversation.status,
            conversation.title or ("untitled", QUIET),
        ]
        for conversation in conversations
    ]
    columns = [Column("ref", ID), Column("started"), Column("channel"), Column("status"), Column("title", wrap=True)]
    output.table(columns, rows)


def _print_conversation(conversation: Conversation) -> None:
    now = utc_now()
    output.facts(
        [
            ("ref code", (conversation.ref_code, ID)),
            ("id", (conversation.id, QUIET)),
            ("title", conversation.title or None),
            ("channel", conversation.channel),
            ("status", conversation.status),
            ("started", text.moment(conversation.started_at, now)),
            ("ended", text.moment(conversation.ended_at, now) if conversation.ended_at else None),
        ]
    )


list_conversations = derived(
    "conversations.list",
    "List conversations, the newest first. --channel lists those of one channel.",
    "conversations --status idle",
    show=_print_conversations,
    defaults={"limit": 20},
)
start = derived(
    "conversations.start",
    "Start a conversation, in the channel that --channel names.",
    'conversations start "Planning the trip" --channel travel',
    show=_print_conversation,
)
say = derived(
    "conversations.say",
    "Add a turn to a conversation that is active.",
    'conversations say 7LqW9aK2mXc "We decided to go by train"',
    show=lambda turn: output.say("Added to the conversation."),
    as_options=("role",),
    defaults={"role": "user"},
)
end = derived(
    "conversations.end",
    "End a conversation: store what matters of it, and clear what was for it alone.",
    "conversations end 7LqW9aK2mXc",
    show=_print_conversation,
)
archive = derived(
    "conversations.archive",
    "Put a conversation away. One that is active is ended first.",
    "conversations archive 7LqW9aK2mXc",
    show=_print_conversation,
)


@click.command(cls=Leaf)
@takes("conversations.get")
@scoped
def show(target: Target, call: Call) -> None:
    """Show a conversation with its turns, by its id or ref code.

    Turns are stored until the conversation ends; what mattered of them is in the memories then.

    \b
    Example:
      recollect conversations show 7LqW9aK2mXc
    """
    from recollect.facets.conversations.persist import TURN

    with target.open() as memory:
        conversation: Conversation = call.run(memory)
        inside = memory.at(channel=conversation.channel, conversation=conversation.id)
        turns = inside.list(kind=TURN, conversation=conversation.id, state=None, newest_first=False, limit=_MOST_TURNS)
    if target.json:
        output.emit({**asdict(conversation), "turns": turns})
        return
    _print_conversation(conversation)
    _print_turns(turns)


def _print_turns(turns: Sequence[Record]) -> None:
    if turns:
        output.say("")
    longest = max((len(turn.role or "") for turn in turns), default=0)
    for turn in turns:
        output.hanging(((turn.role or "").ljust(longest), STRONG), turn.text)
