"""Language models, and what is done without one. Nothing is sent anywhere unless a model is named."""

from __future__ import annotations

from recollect.llm.base import Llm, Message
from recollect.llm.condensing import Condensed, condense, summary_by
from recollect.llm.spec import llm_for, open_llm
from recollect.llm.summary import summarise

__all__ = ["Condensed", "Llm", "Message", "condense", "llm_for", "open_llm", "summarise", "summary_by"]
