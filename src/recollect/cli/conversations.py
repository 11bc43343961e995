"""Channels and conversations on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from recollect.cli import output, text
from recollect.cli.intake import TextArgument
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import ID, QUIET, STRONG, Column, Styled
from recollect.cli.target import Target, scoped
from recollect.values.record import utc_now

if TYPE_CHECKING:
    from recollect.facets.conversations import Conversation, Status

_STATES = ("active", "idle", "archived")


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


@click.command("list", cls=Leaf)
@scoped
def list_channels(target: Target) -> None:
    """List channels, the default one first.

    \b
    Example:
      recollect channels
    """
    with target.open() as memory:
        channels = memory.channels.list()
    if target.json:
        output.emit(channels)
        return
    rows: list[Sequence[Styled]] = [
        [(channel.name, STRONG), "default" if channel.is_default else "", channel.description or ("", QUIET)]
        for channel in channels
    ]
    output.table([Column("channel"), Column(""), Column("about", wrap=True)], rows)


@click.command("create", cls=Leaf)
@click.argument("name")
@click.argument("description", cls=TextArgument, required=False, default="")
@scoped
def create_channel(target: Target, name: str, description: str) -> None:
    """Make a channel.

    \b
    Example:
      recollect channels create ops "What runs where"
    """
    with target.open(create=True, vectors=False) as memory:
        made = memory.channels.create(name, description)
    if target.json:
        output.emit(made)
    else:
        output.say("Made the channel ", (made.name, STRONG))


@click.group(
    cls=LazyGroup,
    default="list",
    sections={
        "Commands": {
            "list": "conversations:list_conversations",
            "start": "conversations:start",
            "show": "conversations:show",
            "say": "conversations:say",
            "idle": "conversations:idle",
            "archive": "conversations:archive",
        }
    },
)
def conversations() -> None:
    """Start, list and end conversations. What matters of one is kept when it ends.

    \b
    Example:
      recollect conversations start "Planning the trip"
      recollect conversations say 7LqW9aK2mXc "We decided to go by train"
      recollect conversations idle 7LqW9aK2mXc
    """


@click.command("list", cls=Leaf)
@click.option("--status", type=click.Choice(_STATES), help="Only those.  [default: all but archived]")
@click.option("--in", "room", metavar="CHANNEL", help="Only those of this channel.")
@click.option("--contains", default="", metavar="TEXT", help="Only those with this in their title.")
@click.option("--limit", default=20, show_default=True, help="At most so many.")
@click.option("--after", metavar="ID", help="Go on behind this one.")
@scoped
def list_conversations(target: Target, status: Status | None, room: str | None, **options: Any) -> None:
    """List conversations, the newest first.

    \b
    Example:
      recollect conversations --status idle
    """
    with target.open() as memory:
        conversations = memory.conversations.list(status=status, channel=room, **options)
    if target.json:
        output.emit(conversations)
    elif not conversations:
        output.say("There are no conversations here.")
    else:
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
        heads = [Column("ref", ID), Column("started"), Column("channel"), Column("status"), Column("title", wrap=True)]
        output.table(heads, rows)


@click.command(cls=Leaf)
@click.argument("title", cls=TextArgument, required=False, default="")
@click.option("--in", "room", metavar="CHANNEL", help="In this channel.  [default: general]")
@scoped
def start(target: Target, title: str, room: str | None) -> None:
    """Start a conversation.

    \b
    Example:
      recollect conversations start "Planning the trip" --in travel
    """
    with target.open(create=True, vectors=False) as memory:
        _print(target, memory.conversations.start(title, channel=room))


@click.command(cls=Leaf)
@click.argument("id")
@scoped
def show(target: Target, id: str) -> None:
    """Show a conversation, by its id or ref code.

    \b
    Example:
      recollect conversations show 7LqW9aK2mXc
    """
    with target.open() as memory:
        _print(target, memory.conversations.get(id))


@click.command(cls=Leaf)
@click.argument("id")
@click.argument("words", cls=TextArgument, metavar="TEXT")
@click.option("--as", "role", type=click.Choice(["user", "assistant"]), default="user", show_default=True)
@scoped
def say(target: Target, id: str, words: str, role: Any) -> None:
    """Add what was said to a conversation that is active.

    \b
    Example:
      recollect conversations say 7LqW9aK2mXc "We decided to go by train"
    """
    with target.open(vectors=False) as memory:
        turn = memory.conversations.say(id, role, words)
    if target.json:
        output.emit(turn)
    else:
        output.say("Added to the conversation.")


@click.command(cls=Leaf)
@click.argument("id")
@scoped
def idle(target: Target, id: str) -> None:
    """End a conversation: what matters of it is kept, and what was for it alone is cleared.

    \b
    Example:
      recollect conversations idle 7LqW9aK2mXc
    """
    with target.open(vectors=False) as memory:
        _print(target, memory.conversations.idle(id))


@click.command(cls=Leaf)
@click.argument("id")
@scoped
def archive(target: Target, id: str) -> None:
    """Put a conversation away. One that is active is ended first.

    \b
    Example:
      recollect conversations archive 7LqW9aK2mXc
    """
    with target.open(vectors=False) as memory:
        _print(target, memory.conversations.archive(id))


def _print(target: Target, conversation: Conversation) -> None:
    if target.json:
        output.emit(conversation)
        return
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
