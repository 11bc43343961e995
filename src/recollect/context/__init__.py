"""What is put before a model: memory and conversation within a budget, with a report of what was left out."""

from recollect.context.fence import without
from recollect.context.sections import Context, LeftOut, Report, Share

__all__ = ["Context", "LeftOut", "Report", "Share", "without"]
