"""The profile: what current statements say of the user, or of somebody else, with what to do about a wrong one."""

from __future__ import annotations

from typing import Any

from recollect.server.pages.site import Visit, page
from recollect.values.errors import InputError


@page("/profile", "Profile", template="profile.html", nav="Profile")
def profile(visit: Visit) -> dict[str, Any]:
    subject = visit.query("subject")
    data: dict[str, Any] = {"subject": subject, "problem": "", "may_change": visit.caller.may("member")}
    try:
        return {**data, "profile": visit.memory.profile(subject or None)}
    except InputError as error:
        return {**data, "profile": None, "problem": str(error)}
