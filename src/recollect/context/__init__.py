"""Builds the context of a model call: memories and conversation within a token budget, with a report of the rest."""

from recollect.context.sections import Context, LeftOut, Report, Share
from recollect.text.fence import OPEN, blocks, unrepeated, without

__all__ = ["OPEN", "Context", "LeftOut", "Report", "Share", "blocks", "unrepeated", "without"]
