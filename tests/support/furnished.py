"""A memory with something on every page of the web UI, and hostile names wherever somebody could choose one."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from recollect import Memory, presets
from recollect.server.serving import Serving

EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'"
SECRET = "the key is AKIA" + "Z7QX4MPL2RWT9KDN"
"""Nobody's, but of the form that keys have."""
PASSWORD = "a long enough password"


def lax() -> presets.Preset:
    """One that lets secrets in, as whoever stored them before there was a rule."""
    preset = presets.load("recollect")
    return replace(preset, secrets=replace(preset.secrets, enabled=False))


class Furnished:
    def __init__(self, serving: Serving, url: str, clock: Any) -> None:
        self.serving, self.memory = serving, serving.memory
        memory = self.memory
        with Memory(url, preset=lax(), clock=clock) as other:
            self.secret = other.remember(SECRET).id
        memory.remember("The limit is 100")
        clock.forward(minutes=1)
        memory.remember("The limit is 250")
        self.doubles = [memory.remember(f"the office of {EVIL} is in Berlin", again=True).id for _ in range(3)]
        self.agent = memory.at(agent=EVIL)
        self.core = self.agent.journal.save_core(f"I keep answers short {EVIL}").id
        self.entry = self.agent.journal.save("met the team").id
        memory.channels.create(EVIL, EVIL)
        talk = memory.conversations.start(EVIL, channel=EVIL)
        self.talk, self.talk_id = talk.ref_code, talk.id
        memory.conversations.say(talk.id, "user", f"When do we ship? {EVIL}")
        memory.conversations.say(talk.id, "assistant", "On 14 March.")
        memory.at(conversation=talk.id, channel=EVIL).scratchpad.write(EVIL, {"next": EVIL})
        base = memory.knowledge
        self.handbook = base.add(
            f"# Handbook\n\nHolidays: 28 days {EVIL}.", title=EVIL, category=EVIL, status="published"
        ).id
        self.prices = base.add("# Prices\n\nTea costs 3 euros.", title="Prices", category="shop").id
        base.allow(EVIL, ["shop"])
        memory.at(workspace="lab").remember("a note of the lab")
        self.key = serving.accounts.keys.create(EVIL, "member").key.id
        serving.accounts.people.add(EVIL.lower(), PASSWORD, "admin")

    def paths(self) -> dict[str, str]:
        agent = quote(EVIL, safe="")
        return {
            "conversations": "/conversations",
            "new conversation": "/conversations?new=1",
            "no conversation": "/conversations?q=nothing+of+that+name",
            "conversation": f"/conversations/{self.talk}",
            "channels": "/channels",
            "agents": "/agents",
            "agent": f"/agents/{agent}",
            "agent without": "/agents/nobody",
            "knowledge": "/knowledge?q=holidays",
            "new document": "/knowledge?new=1",
            "no document": "/knowledge?contains=nothing",
            "document": f"/knowledge/{self.handbook}",
            "review": "/review",
            "jobs": "/jobs",
            "audit": "/audit?verify=1",
            "audit of one": f"/audit?about={self.core}",
            "nothing in the audit": "/audit?text=nothing+of+that",
            "server's log": "/audit/server",
            "access": "/access",
            "settings": "/settings",
            "another workspace": "/settings?workspace=lab",
        }
