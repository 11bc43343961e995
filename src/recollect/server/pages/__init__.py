"""The pages that people see. Each has an address that can be sent to a colleague."""

from importlib import import_module

_MODULES = (
    "overview",
    "memories",
    "one_memory",
    "lab",
    "context",
    "answers",
    "profile",
    "timeline",
    "conversations",
    "agents",
    "knowledge",
    "review",
    "jobs",
    "audit",
    "access",
    "settings",
    "reference",
)


def all_pages() -> None:
    """Have every page known."""
    for name in _MODULES:
        import_module(f"{__name__}.{name}")
