"""Every verb, called by one tenant with the names of what another has.

An attacker who knows everything that can be known of the victim's things but what is in them must be told the same as
of things that do not exist.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sized
from functools import partial
from typing import Any, NamedTuple, cast

from recollect.facets.proposals import propose
from recollect.memory import Memory
from recollect.operations import Operation, Parameter, all_operations, bound_method, signature, union_members
from recollect.recall.hits import Hits
from recollect.values.errors import RecollectError
from recollect.values.record import Record, new_id


class Prey(NamedTuple):
    """What somebody has, by its names."""

    tenant: str
    workspace: str
    conversation: str
    code: str
    """Another name of the conversation."""
    tag: str
    memory: str
    revised: str
    archived: str
    forgotten: str
    change: str
    """An audit entry, of a change that can be undone."""
    journal: str
    board: str
    document: str
    workflow: str
    step: str
    answer: str

    @classmethod
    def phantom(cls, tenant: str) -> Prey:
        """Names of the same form that nobody has."""
        made = {name: new_id() for name in cls._fields}
        return cls(**made | {"tenant": tenant, "workspace": "default", "code": "zzzzzz"})

    def hidden(self, text: str) -> str:
        """The text without these names."""
        for name, value in self._asdict().items():
            if name != "workspace":
                text = text.replace(value, f"<{name}>")
        return text


def furnish(memory: Memory, tenant: str, secret: str) -> Prey:
    """Give a tenant some of everything, with a secret in each."""
    view, workspace = memory.at(tenant=tenant, workspace="default"), "default"
    talk = view.conversations.start(f"about {secret}")
    talking = view.at(conversation=talk.id)
    talking.scratchpad.write("owl", {"name": secret})
    view.conversations.say(talk.id, "user", f"Alice: the owl is called {secret}")
    records = [
        view.remember(
            f"{animal} called {secret}",
            tags=[f"bird.{secret}"],
            metadata={"name": secret},
            source=secret,
            embedding=[1.0, 0.5, 0.25],
            embedding_model="proof",
        )
        for animal in ("an owl", "a fox", "a dodo", "a lost bee")
    ]
    owl, fox, dodo, bee = records
    view.at(account=f"account {secret}").remember(f"an account called {secret}", tier="account")
    view.revise(fox.id, content=f"a newer fox called {secret}")
    view.remember(f"I am allergic to {secret}")
    view.archive(dodo.id)
    view.forget(bee.id, reason=f"it was {secret}")
    scribe = view.at(agent="scribe")
    entry, board = scribe.journal.save(f"the owl {secret} slept"), scribe.journal.whiteboard.write(f"feed {secret}")
    document = view.knowledge.add(f"# Owls\n\nThe owl {secret} hunts.", title=f"On {secret}", status="published")
    flow = view.workflows.start(f"feed {secret}")
    step = view.workflows.step(flow.id, f"buy for {secret}")
    view.workflows.complete(step.id, output={"owl": secret})
    view.cases.save(f"who is {secret}?", texts=[secret])
    view.aliases.save(f"owl {secret}", "strix")
    propose(view._view, "forget", f"forget the owl {secret}", [owl.id], "")  # pyright: ignore[reportPrivateUsage]
    view.audit.record("note", f"the owl is {secret}")
    answer = view.context([{"role": "user", "content": f"what is the owl {secret} called?"}]).id
    change = view.audit.search(action="forget")[0].id
    ids = (owl.id, fox.id, dodo.id, bee.id)
    items = (entry.id, board.id, document.id, flow.id, step.id, answer)
    return Prey(tenant, workspace, talk.id, talk.ref_code, f"bird.{secret}", *ids, change, *items)


Verb = Callable[[Memory, Prey], Any]


def _exported(memory: Memory) -> bytes:
    out = io.BytesIO()
    memory.export(out)
    return out.getvalue()


def _memory(prey: Prey) -> tuple[str, ...]:
    return prey.memory, prey.revised, prey.archived, prey.forgotten


def _each(call: Callable[[Memory, str], Any]) -> Verb:
    """For every memory in every state; what each is answered, as one text."""
    return lambda memory, prey: "\n".join(
        _describe_result(lambda ident=ident: call(memory, ident)) for ident in _memory(prey)
    )


def _describe_result(call: Callable[[], Any]) -> str:
    try:
        return _described(call())
    except RecollectError as error:
        return f"{type(error).__name__}: {error}"


def _described(result: Any) -> str:
    """A result without the scores and counters that differ from call to call."""
    if isinstance(result, Record):
        return result.text
    if isinstance(result, Hits):
        return f"{[hit.memory.text for hit in result]} {result.absence}"
    if isinstance(result, list):
        return str([_described(part) for part in cast("list[Any]", result)])
    return repr(result)


_NAMED: dict[str, Callable[[Prey], tuple[str, ...]]] = {
    "memory": lambda prey: (prey.memory, prey.revised, prey.archived, prey.forgotten),
    "conversation": lambda prey: (prey.conversation, prey.code),
    "change": lambda prey: (prey.change,),
    "journal": lambda prey: (prey.journal,),
    "board": lambda prey: (prey.board,),
    "document": lambda prey: (prey.document,),
    "workflow": lambda prey: (prey.workflow,),
    "step": lambda prey: (prey.step,),
    "answer": lambda prey: (prey.answer,),
}
"""The victim's names, by the kind of what they name."""


def _by_names() -> Iterator[tuple[str, Verb]]:
    """Every operation with every argument that names something of the victim's. Sessions are of ledgers only."""
    for operation in all_operations().values():
        for parameter in signature(operation.name).takes:
            if parameter.names in _NAMED and operation.owner != "sessions":
                yield f"{operation.name} by {parameter.name}", partial(_call_by_name, operation, parameter)


def _call_by_name(operation: Operation, parameter: Parameter, memory: Memory, prey: Prey) -> str:
    """What each of the victim's names is answered, as one text."""
    view = memory.at(agent="scribe") if operation.owner.startswith("journal") else memory
    rest = {p.name: _filler(p) for p in signature(operation.name).takes if p.is_required and p is not parameter}
    several = parameter.is_list and str not in union_members(parameter.type)
    return "\n".join(
        _describe_result(
            partial(bound_method(view, operation.name), **rest, **{parameter.name: [name] if several else name})
        )
        for name in _NAMED[parameter.names](prey)
    )


def _filler(parameter: Parameter) -> Any:
    """A value for an argument that has to be given: a word that is in what the victim stores."""
    if parameter.choices:
        return parameter.choices[0]
    return ["owl"] if parameter.is_list else "owl"


_SPECIAL: dict[str, Verb] = {
    "forget for good": _each(lambda m, ident: m.forget([ident], erase=True)),
    "forget by tag": lambda m, p: m.forget(tag=p.tag).count,
    "forget by workspace": lambda m, p: m.forget(workspace=p.tenant).count,
    "list": lambda m, p: m.list(state=None, limit=1000),
    "list by tag": lambda m, p: m.list(tags=[p.tag]),
    "list by text": lambda m, p: m.list(contains="newer fox"),
    "recall": lambda m, p: m.recall("owl called", limit=50),
    "recall a phrase": lambda m, p: m.recall('"newer fox called"'),
    "recall a beginning": lambda m, p: m.recall("newe* OR cal*"),
    "recall by SQL": lambda m, p: m.recall(f"') OR tenant = '{p.tenant}' -- & | ! <-> :* \\"),
    "query": lambda m, p: m.query({"tags": [p.tag]}),
    "query by reference": lambda m, p: m.query({"references": [p.memory]}),
    "consult": lambda m, p: m.consult("owl called feed hunts"),
    "context": lambda m, p: m.context([{"role": "user", "content": "what is the owl called?"}]),
    "orient": lambda m, p: [str(m.orient("owl"))],
    "remember_many": lambda m, p: len(m.remember_many([{"content": "mine", "conversation": p.tenant}])),
    "at": lambda m, p: m.at(tenant=p.tenant),
    "at a workspace": lambda m, p: m.at(workspace=f"../{p.tenant}/{p.workspace}"),
    "at an account": lambda m, p: m.at(workspace="default", account=f"{p.tenant}").list(state=None),
    "conversation": lambda m, p: m.at(workspace="default", conversation=p.conversation).list(),
    "deduplicate": lambda m, p: m.deduplicate(dry_run=True),
    "doctor": lambda m, p: m.doctor(),
    "verify": lambda m, p: m.verify(),
    "maintain": lambda m, p: m.maintain(early=True, dry_run=True),
    "simulate": lambda m, p: m.simulate(days=400).events,
    "embed": lambda m, p: m.embed(wait=False),
    "compact": lambda m, p: m.at(workspace="default").compact() >= 0,
    "stats": lambda m, p: m.stats().total > 1000,
    "workspaces": lambda m, p: m.workspaces(),
    "export": lambda m, p: _exported(m),
    "import_": lambda m, p: m.import_(io.BytesIO(_exported(m).replace(m.address.tenant.encode(), p.tenant.encode()))),
    "audit.search": lambda m, p: m.audit.search(limit=1000),
    "audit.verify": lambda m, p: m.audit.verify(),
    "journal.for_prompt": lambda m, p: m.at(agent="scribe").journal.for_prompt(),
    "journal.whiteboard": lambda m, p: m.at(agent="scribe").journal.whiteboard.entries(),
    "scratchpad": lambda m, p: m.at(conversation=p.conversation).scratchpad.list(),
    "scratchpad.read": lambda m, p: m.at(conversation=p.conversation).scratchpad.read("owl"),
    "scratchpad.clear": lambda m, p: m.at(conversation=p.conversation).scratchpad.clear(),
    "knowledge.list": lambda m, p: m.knowledge.list(),
    "knowledge.search": lambda m, p: m.knowledge.search("owl hunts"),
    "workflows.list": lambda m, p: m.workflows.list(),
    "workflows.search": lambda m, p: m.workflows.search("owl"),
    "answers": lambda m, p: m.answers(),
    "profile": lambda m, p: m.profile(),
    "aliases.list": lambda m, p: m.aliases.list(),
    "proposals": lambda m, p: m.proposals(),
    "dismiss": lambda m, p: m.dismiss(p.memory),
    "cases.list": lambda m, p: m.cases.list(),
    "moments.task": lambda m, p: [str(m.moments.task("feed the owl"))],
    "conversations.list": lambda m, p: m.conversations.list(),
    "channels.list": lambda m, p: m.channels.list(),
    "channels.get": lambda m, p: m.channels.get(p.conversation),
}
"""What names alone do not try: conditions, words, and whole workspaces. `p` is the victim's."""
VERBS: dict[str, Verb] = {**dict(_by_names()), **_SPECIAL}
"""By name, of which the first word is that of the operation. Nothing of the victim's secret is given away."""


class VerbReply(NamedTuple):
    """What a caller is told."""

    text: str
    exact: bool
    """Whether it is about nothing but what was asked for: an error, a number, or a text."""
    size: int | None


def reply(verb: Verb, memory: Memory, prey: Prey) -> VerbReply:
    try:
        result = verb(memory, prey)
    except RecollectError as error:
        return VerbReply(f"{type(error).__name__}: {error}", True, None)
    exact = isinstance(result, str | int)
    return VerbReply(repr(result), exact, len(result) if isinstance(result, Sized) and not exact else None)


_CHANGING = re.compile(r"\b[0-9a-f]{32,64}\b|datetime\.datetime\([^()]*(?:\([^()]*\)[^()]*)*\)|'[0-9A-Za-z]{11}'")
"""Ids, hashes, times and ref codes: new in every answer about what the attacker has just stored itself."""


def _steady(text: str) -> str:
    return _CHANGING.sub("…", text)


def leak(verb: Verb, attacker: Memory, prey: Prey, phantom: Prey, secret: str) -> str:
    """What the attacker learns of the victim by a verb; nothing if all is well."""
    real, none = reply(verb, attacker, prey), reply(verb, attacker, phantom)
    if secret in prey.hidden(real.text):
        return "it showed what the victim keeps secret"
    same = not real.exact or _steady(prey.hidden(real.text)) == _steady(phantom.hidden(none.text))
    if real.exact != none.exact or real.size != none.size or not same:
        return "it was answered otherwise than for what does not exist"
    return ""
