"""What is put before a model: memory and conversation within a budget, with a report of what was left out."""

from recollect.context.sections import Context, LeftOut, Report, Share
from recollect.text.fence import OPEN, blocks, unrepeated, without

__all__ = ["OPEN", "Context", "LeftOut", "Report", "Share", "blocks", "unrepeated", "without"]
