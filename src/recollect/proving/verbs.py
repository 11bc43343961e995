"""Every verb, called by one tenant with the names of what another has.

An attacker who knows everything that can be known of the victim's things but what is in them must be told the same as
of things that do not exist.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sized
from typing import Any, NamedTuple

from recollect.memory import Memory
from recollect.values.errors import RecollectError
from recollect.values.record import new_id


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
    view.archive(dodo.id)
    view.forget(bee.id, reason=f"it was {secret}")
    scribe = view.at(agent="scribe")
    entry, board = scribe.journal.save(f"the owl {secret} slept"), scribe.journal.whiteboard.write(f"feed {secret}")
    document = view.knowledge.add(f"# Owls\n\nThe owl {secret} hunts.", title=f"On {secret}", status="published")
    flow = view.workflows.start(f"feed {secret}")
    step = view.workflows.step(flow.id, f"buy for {secret}")
    view.workflows.complete(step.id, output={"owl": secret})
    view.cases.save(f"who is {secret}?", texts=[secret])
    view.audit.record("note", f"the owl is {secret}")
    change = view.audit.search(action="forget")[0].id
    ids = (owl.id, fox.id, dodo.id, bee.id)
    things = (entry.id, board.id, document.id, flow.id, step.id)
    return Prey(tenant, workspace, talk.id, talk.ref_code, f"bird.{secret}", *ids, change, *things)


Verb = Callable[[Memory, Prey], Any]


def _exported(memory: Memory) -> bytes:
    out = io.BytesIO()
    memory.export(out)
    return out.getvalue()


def _memory(prey: Prey) -> tuple[str, ...]:
    return prey.memory, prey.revised, prey.archived, prey.forgotten


def _each(call: Callable[[Memory, str], Any]) -> Verb:
    """For every memory in every state; what each is answered, as one text."""
    return lambda memory, prey: "\n".join(_describe_result(lambda one=one: call(memory, one)) for one in _memory(prey))


def _describe_result(call: Callable[[], Any]) -> str:
    try:
        return repr(call())
    except RecollectError as error:
        return f"{type(error).__name__}: {error}"


VERBS: dict[str, Verb] = {
    "get": _each(lambda m, one: m.get(one)),
    "history": _each(lambda m, one: m.history(one)),
    "revise": _each(lambda m, one: m.revise(one, content="mine")),
    "archive": _each(lambda m, one: m.archive([one])),
    "restore": _each(lambda m, one: m.restore(one)),
    "diagnose": _each(lambda m, one: m.diagnose(one).status),
    "ids like": _each(lambda m, one: m.ids_like(one)),
    "forget by id": _each(lambda m, one: m.forget(one)),
    "forget for good": _each(lambda m, one: m.forget([one], erase=True)),
    "forget by tag": lambda m, p: m.forget(tag=p.tag).count,
    "forget by conversation": lambda m, p: m.forget(conversation=p.conversation).count,
    "forget by workspace": lambda m, p: m.forget(workspace=p.tenant).count,
    "undo": lambda m, p: m.undo(p.change),
    "list": lambda m, p: m.list(state=None, limit=1000),
    "list by conversation": lambda m, p: m.list(conversation=p.conversation),
    "list by tag": lambda m, p: m.list(tags=[p.tag]),
    "list by text": lambda m, p: m.list(contains="newer fox"),
    "recall": lambda m, p: m.recall("owl called", limit=50),
    "recall a phrase": lambda m, p: m.recall('"newer fox called"'),
    "recall a beginning": lambda m, p: m.recall("newe* OR cal*"),
    "recall by SQL": lambda m, p: m.recall(f"') OR tenant = '{p.tenant}' -- & | ! <-> :* \\"),
    "recall and why not": lambda m, p: m.recall("owl", why_not=p.memory),
    "recall in a conversation": lambda m, p: m.recall("owl", conversation=p.conversation),
    "query": lambda m, p: m.query({"tags": [p.tag]}),
    "query by reference": lambda m, p: m.query({"references": [p.memory]}),
    "consult": lambda m, p: m.consult("owl called feed hunts"),
    "context": lambda m, p: m.context([{"role": "user", "content": "what is the owl called?"}]),
    "orient": lambda m, p: [str(m.orient("owl"))],
    "remember with a reference": lambda m, p: m.remember("mine", references=[p.memory], again=True),
    "remember in a conversation": lambda m, p: m.remember("mine", conversation=p.conversation).text,
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
    "audit.search about": lambda m, p: m.audit.search(about=p.memory),
    "audit.verify": lambda m, p: m.audit.verify(),
    "journal.edit": lambda m, p: m.at(agent="scribe").journal.edit(p.journal, "mine"),
    "journal.for_prompt": lambda m, p: m.at(agent="scribe").journal.for_prompt(),
    "journal.whiteboard": lambda m, p: m.at(agent="scribe").journal.whiteboard.entries(),
    "journal.whiteboard.erase": lambda m, p: m.at(agent="scribe").journal.whiteboard.erase(p.board),
    "scratchpad": lambda m, p: m.at(conversation=p.conversation).scratchpad.list(),
    "scratchpad.read": lambda m, p: m.at(conversation=p.conversation).scratchpad.read("owl"),
    "scratchpad.clear": lambda m, p: m.at(conversation=p.conversation).scratchpad.clear(),
    "knowledge.list": lambda m, p: m.knowledge.list(),
    "knowledge.get": lambda m, p: m.knowledge.get(p.document),
    "knowledge.search": lambda m, p: m.knowledge.search("owl hunts"),
    "knowledge.withdraw": lambda m, p: m.knowledge.withdraw(p.document),
    "knowledge.remove": lambda m, p: m.knowledge.remove(p.document),
    "workflows.list": lambda m, p: m.workflows.list(),
    "workflows.get": lambda m, p: m.workflows.get(p.workflow),
    "workflows.steps": lambda m, p: m.workflows.steps(p.workflow),
    "workflows.step": lambda m, p: m.workflows.step(p.workflow, "mine"),
    "workflows.complete": lambda m, p: m.workflows.complete(p.step, output="mine"),
    "workflows.fail": lambda m, p: m.workflows.fail(p.step, error="mine"),
    "workflows.remove": lambda m, p: m.workflows.remove(p.workflow),
    "workflows.search": lambda m, p: m.workflows.search("owl"),
    "cases.list": lambda m, p: m.cases.list(),
    "moments.task": lambda m, p: [str(m.moments.task("feed the owl"))],
    "conversations.list": lambda m, p: m.conversations.list(),
    "conversations.get": lambda m, p: m.conversations.get(p.conversation),
    "conversations.get by code": lambda m, p: m.conversations.get(p.code),
    "conversations.say": lambda m, p: m.conversations.say(p.conversation, "user", "mine"),
    "conversations.archive": lambda m, p: m.conversations.archive(p.code),
    "channels.list": lambda m, p: m.channels.list(),
    "channels.get": lambda m, p: m.channels.get(p.conversation),
}
"""By name, of which the first word is that of the verb. `p` is the victim's; nothing of its secret is given away."""


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


def leak(verb: Verb, attacker: Memory, prey: Prey, phantom: Prey, secret: str) -> str:
    """What the attacker learns of the victim by a verb; nothing if all is well."""
    real, none = reply(verb, attacker, prey), reply(verb, attacker, phantom)
    if secret in prey.hidden(real.text):
        return "it showed what the victim keeps secret"
    same = not real.exact or prey.hidden(real.text) == phantom.hidden(none.text)
    if real.exact != none.exact or real.size != none.size or not same:
        return "it was answered otherwise than for what does not exist"
    return ""
