"""A page: its address, who may see it, what it shows, and how that is rendered."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from recollect import __version__
from recollect.memory import Memory, view_of
from recollect.operations import Rank
from recollect.server.access.caller import Caller, same
from recollect.server.bodies import Upload
from recollect.server.pages import charts
from recollect.server.problems import problem_of
from recollect.server.serving import Serving
from recollect.server.web import Answer, HttpRequest
from recollect.stores.port import Administered
from recollect.values.errors import InputError, RecollectError

FOLDER = Path(__file__).parent
HTML = "text/html; charset=utf-8"
FLASH = "recollect_said"
"""The cookie with what the next page says in a toast."""
_MOST_PLACES = 100
CHOSEN = ("tenant", "workspace", "account", "agent", "conversation")
"""Parts of an address that a page may narrow to, in its query."""


class Visit:
    """Somebody at a page: who it is, what they look at, and what they sent."""

    def __init__(self, serving: Serving, caller: Caller, request: HttpRequest) -> None:
        self.serving, self.caller, self.request = serving, caller, request
        self.parts = request.parts
        self.chosen = {part: value for part in CHOSEN if (value := request.first(part))}
        self.refused, self.refusal = "", ""
        """The action that did not take the form, and why; the fields hold what was typed."""
        self._memory: Memory | None = None

    @property
    def memory(self) -> Memory:
        """The part of the memory that the page is about: what the caller sees, narrowed by the query."""
        if self._memory is None:
            # Whoever may look at all tenants sees on the page which one this is.
            here = {} if self.caller.bound else {"tenant": self.serving.memory.address.tenant}
            self._memory = self.serving.view(self.caller, here | self.chosen)
        return self._memory

    @property
    def workspaces(self) -> list[str]:
        """All that the caller may go to, and not only the one that this page is about."""
        whole = {} if "tenant" in self.caller.bound else {"tenant": self.memory.address.tenant}
        return self.serving.view(self.caller, whole).workspaces()

    @property
    def tenants(self) -> list[str]:
        """All that the caller may go to: one, unless they are bound to none."""
        here, store = self.memory.address.tenant, view_of(self.serving.memory).store
        if "tenant" in self.caller.bound or not isinstance(store, Administered):
            return [here]
        return sorted({here, *store.tenants()})

    @property
    def elsewhere(self) -> list[tuple[str, str]]:
        """Tenants and their workspaces in which there is something, other than where this page is."""
        here = self.memory.address.tenant, self.memory.address.workspace
        if "workspace" in self.caller.bound:
            return []
        places = (
            (tenant, workspace)
            for tenant in self.tenants
            for workspace in self.caller.view(
                self.serving.memory, {} if "tenant" in self.caller.bound else {"tenant": tenant}
            ).workspaces()
        )
        return [place for place in places if place != here][:_MOST_PLACES]

    def going_to(self, tenant: str, workspace: str) -> str:
        """The same page in another place, or the first one where it is about something of this place alone."""
        is_page = any(page.path == self.request.path for page in PAGES)
        query = (
            {"workspace": workspace} if "tenant" in self.caller.bound else {"tenant": tenant, "workspace": workspace}
        )
        return f"{self.request.path if is_page else '/'}?{urlencode(query)}"

    def query(self, name: str, default: str = "") -> str:
        return self.request.first(name, default).strip()

    def number(self, name: str, default: int, low: int = 1, high: int = 1000) -> int:
        text = self.query(name)
        if not text:
            return default
        if not text.isdecimal() or len(text) > 18 or not low <= int(text) <= high:
            raise InputError(name, f"must be a whole number from {low} to {high:,}")
        return int(text)

    def field(self, name: str, default: str = "") -> str:
        """Of the form that was sent."""
        return self.request.field(name, default).replace("\r\n", "\n")

    def fields(self, name: str) -> list[str]:
        return [str(value) for value in self.request.form.get(name, ())]

    def file(self, name: str) -> Upload | None:
        """None where no file was chosen."""
        return next(
            (upload for upload in self.request.form.get(name, ()) if hasattr(upload, "filename") and upload.filename),
            None,
        )

    @property
    def here(self) -> str:
        """The address of this page, to come back to."""
        query = urlencode(self.request.query)
        return f"{self.request.path}?{query}" if query else self.request.path

    def back(self, default: str) -> str:
        """Where a form was, if it says so and if that is a page of ours."""
        return ours(self.field("back"), default)

    def confirm(self, word: str) -> None:
        """InputError unless the word was typed: what cannot be taken back is not done by a slip."""
        if self.field("confirm").strip() != word:
            raise InputError("confirm", f"type {word} to go on; nothing was changed")

    def again(self, action: Action, error: RecollectError) -> tuple[Page, Visit]:
        """The page with the form that was refused, as somebody who typed this."""
        path = action.again.format(**{name: quote(value, safe="") for name, value in self.parts.items()})
        page = next(page for page in PAGES if page.path == action.again)
        visit = Visit(self.serving, self.caller, self.request._replace(path=path))
        visit.refused, visit.refusal = action.path, str(error)
        return page, visit

    def link(self, path: str, **query: Any) -> str:
        """An address in what the page is about."""
        pairs = {name: value for name, value in {**self.chosen, **query}.items() if value not in (None, "", False)}
        return f"{path}?{urlencode(pairs, doseq=True)}" if pairs else path


def ours(target: str, default: str = "/") -> str:
    """An address that somebody named, if it is on this host. A browser leaves out tabs, so they hide a second slash."""
    here = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if here else default


class Done(NamedTuple):
    """What came of a form: where to go on, and what to say there."""

    next: str
    message: str = ""
    undo: str | None = None
    """The id of the audit entry that takes it back."""
    show: Mapping[str, Any] | None = None
    """Shown at once, by `template`, and never again: a secret."""
    template: str = ""


class Page(NamedTuple):
    path: str
    title: str
    rank: Rank
    template: str
    load: Callable[[Visit], Mapping[str, Any] | Answer]
    """The values that it shows, or an answer of its own, such as a file."""
    nav: str = ""
    """Its name in the menu; empty for one that is not there."""
    group: str = ""


class Action(NamedTuple):
    path: str
    rank: Rank
    run: Callable[[Visit], Done]
    again: str = ""
    """The page that has its form: it is shown again, with what was typed and why it was refused."""


PAGES: list[Page] = []
ACTIONS: list[Action] = []


def page(path: str, title: str, *, rank: Rank = "reader", template: str, nav: str = "", group: str = "") -> Any:
    def register(load: Callable[[Visit], Mapping[str, Any] | Answer]) -> Any:
        PAGES.append(Page(path, title, rank, template, load, nav, group))
        return load

    return register


def action(path: str, *, rank: Rank = "member", again: str = "") -> Any:
    def register(run: Callable[[Visit], Done]) -> Any:
        ACTIONS.append(Action(path, rank, run, again))
        return run

    return register


def rendered(
    visit: Visit | None, template: str, title: str, data: Mapping[str, Any], status: int = 200, **headers: str
) -> Answer:
    """`visit` is None for who is not logged in."""
    caller = visit.caller if visit else None
    message = _flash(visit) if visit else None
    cookies = [f"{FLASH}=; Max-Age=0{visit.serving.cookie_flags}"] if visit and message else []
    text = (
        environment()
        .get_template(template)
        .render(
            **data,
            title=title,
            visit=visit,
            caller=caller,
            menu=_menu(visit) if visit else [],
            form=caller.session if caller else "",
            said=message,
            place=_place(visit),
            version=__version__,
        )
    )
    return Answer(text.encode(), status, HTML, headers, cookies=cookies)


def _place(visit: Visit | None) -> dict[str, Any] | None:
    """Where a page is, and where else one can go from it."""
    if visit is None:
        return None
    try:
        address = visit.memory.address
        others = [
            {"tenant": tenant, "workspace": workspace, "address": visit.going_to(tenant, workspace)}
            for tenant, workspace in visit.elsewhere
        ]
    except RecollectError:  # such as of a tenant that is not theirs: the page itself says so
        return None
    return {"tenant": address.tenant, "workspace": address.workspace, "others": others}


def _menu(visit: Visit) -> list[tuple[str, list[tuple[str, str, bool]]]]:
    """By group: the name of each page, its address, and whether it is this one."""
    groups: dict[str, list[tuple[str, str, bool]]] = {}
    here = visit.request.path
    for page in PAGES:
        if page.nav and visit.caller.may(page.rank):
            current = here == page.path or (page.path != "/" and here.startswith(f"{page.path}/"))
            groups.setdefault(page.group, []).append((page.nav, visit.link(page.path), current))
    return list(groups.items())


def refused(visit: Visit | None, error: RecollectError) -> Answer:
    problem = problem_of(error)
    return rendered(visit, "refused.html", f"{problem.status}", {"problem": problem}, problem.status)


def refused_form(visit: Visit, action: Action, error: RecollectError) -> Answer:
    """The page of a refused form once more, with what was typed and what is wrong."""
    page, typed = visit.again(action, error)
    visit.caller.check(page.rank, page.path)  # whoever may not send the form may not see its page either
    data = page.load(typed)
    status = problem_of(error).status
    return data if isinstance(data, Answer) else rendered(typed, page.template, page.title, data, status)


def redirect(visit: Visit, done: Done) -> Answer:
    """The answer to a form: a redirect, with the message in a cookie that only the next page reads."""
    if done.show is not None:
        return rendered(visit, done.template, done.message, done.show)
    if not done.message:
        return redirect_to(done.next)
    body = base64.urlsafe_b64encode(msgspec.json.encode({"said": done.message, "undo": done.undo})).decode()
    mark = _mark(visit.caller, body)
    return redirect_to(done.next, f"{FLASH}={body}.{mark}; Max-Age=60{visit.serving.cookie_flags}")


def redirect_to(address: str, *cookies: str) -> Answer:
    return Answer(b"", 303, HTML, {"location": address}, cookies=cookies)


def _mark(caller: Caller, body: str) -> str:
    return hmac.new(caller.session.encode(), body.encode(), hashlib.sha256).hexdigest()[:32]


def _flash(visit: Visit) -> dict[str, Any] | None:
    body, _, mark = visit.request.cookies.get(FLASH, "").partition(".")
    if not body or not same(_mark(visit.caller, body), mark):
        return None
    return msgspec.json.decode(base64.urlsafe_b64decode(body))


@cache
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "when": when,
        "ago": ago,
        "n": lambda number: f"{number:,}",
        "part": lambda text: quote(str(text), safe=""),
    }
    made.globals.update({"static": static, "charts": charts})  # type: ignore[dict-item]
    return made


def when(value: datetime | None) -> str:
    return "" if value is None else value.strftime("%Y-%m-%d %H:%M")


def ago(value: datetime | None) -> str:
    if value is None:
        return "never"
    seconds = (datetime.now(UTC) - value).total_seconds()
    for size, name in ((86_400 * 365, "year"), (86_400 * 30, "month"), (86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {name}{'s' if number > 1 else ''} ago"
    return "just now"


@cache
def static(name: str) -> str:
    """The address of a file of ours, with its hash, so that it can be kept for ever."""
    digest = hashlib.sha256((FOLDER / "static" / name).read_bytes()).hexdigest()[:12]
    return f"/static/{name}?{digest}"
