"""Language models, and what is done without one. Nothing is sent anywhere unless a model is named."""

from __future__ import annotations

from recollect.models.llm.base import Llm, Message
from recollect.models.llm.condensing import Condensed, condense, summary_by
from recollect.models.llm.spec import llm_for, open_llm
from recollect.models.llm.summary import summarise

__all__ = ["Condensed", "Llm", "Message", "condense", "llm_for", "open_llm", "summarise", "summary_by"]
