"""Settings: what this memory is, by which rules it works, and how programs get to it."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

import msgspec

from recollect import __version__
from recollect.memory import Memory, view_of
from recollect.presets import Preset
from recollect.server.pages.site import Visit, page
from recollect.stores.port import Administered

_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,255}")


@page("/settings", "Settings", template="settings.html", nav="Settings", group="Server")
def settings(visit: Visit) -> dict[str, Any]:
    memory, limits = visit.memory, visit.serving.limits
    view, preset = view_of(memory), memory.preset
    url = address_of(visit)
    return {
        "release": __version__,
        "preset": {"name": preset.name, "description": preset.description, "tools": preset.tools},
        "sentences": sentences(memory),
        "rules": rules(preset),
        "store": {
            "kind": type(view.store).__name__,
            "location": location(view.store) if visit.caller.may("admin") else "",
        },
        "embedder": _embedder(memory),
        "llm": view.llm.name if view.llm is not None else None,
        "limits": {name: getattr(limits, name) for name in limits._fields},
        "address": {part: value for part, value in msgspec.structs.asdict(memory.address).items() if value},
        "bound": visit.caller.bound,
        "workspaces": visit.workspaces,
        "tenants": [
            {"name": tenant, "link": f"/settings?{urlencode({'tenant': tenant})}"} for tenant in tenants(visit)
        ],
        "you": {"name": visit.caller.name, "rank": visit.caller.rank, "how": visit.caller.how},
        "url": url,
        "snippets": snippets(url, visit.serving.single),
        "skills": len(memory.skills),
    }


def location(store: Any) -> str:
    """Where a store is, without a password. Stores of files have a folder, others know how to say it."""
    if (root := getattr(store, "root", None)) is not None:
        return str(root)
    home = getattr(store, "_home", None)
    return home.location.shown if home is not None else "in this process"


def _embedder(memory: Memory) -> dict[str, Any] | None:
    embedding = view_of(memory).embedding
    if embedding is None:
        return None
    return {"model": embedding.embedder.model, "dimensions": embedding.embedder.dimensions}


def tenants(visit: Visit) -> list[str]:
    """Those that can be switched to: only whoever is bound to none sees more than their own."""
    store = view_of(visit.memory).store
    if "tenant" in visit.caller.bound or not isinstance(store, Administered):
        return [visit.memory.address.tenant]
    return sorted({*store.tenants(), visit.memory.address.tenant})


def address_of(visit: Visit) -> str:
    """As whoever looks has reached it; a name that could not be one is not repeated."""
    headers = visit.request.headers
    host = headers.get("host", "")
    scheme = "https" if headers.get("x-forwarded-proto") == "https" else "http"
    return f"{scheme}://{host if _HOST.fullmatch(host) else 'localhost'}"


def snippets(url: str, single: bool) -> list[dict[str, str]]:
    """Ways in. A server for one person alone has no keys of its own yet."""
    mcp = {"mcpServers": {"recollect": {"url": f"{url}/mcp", "headers": {"Authorization": "Bearer $RECOLLECT_KEY"}}}}
    return [
        {
            "name": "curl",
            "text": f'curl {url}/v1/recall \\\n  -H "Authorization: Bearer $RECOLLECT_KEY" \\\n'
            '  -H "Content-Type: application/json" \\\n  -d \'{"query": "What does Ada drink?"}\'',
        },
        {
            "name": "Python",
            "text": f"from recollect import Memory\n\n# The key is taken from RECOLLECT_KEY.\n"
            f'memory = Memory("{url}")\nmemory.remember("Ada likes green tea")\n'
            'for hit in memory.recall("What does Ada drink?"):\n    print(hit.memory.text)',
        },
        {"name": "MCP", "text": msgspec.json.format(msgspec.json.encode(mcp), indent=2).decode()},
    ]


def rules(preset: Preset) -> list[dict[str, Any]]:
    """Every rule by its name in the preset's file, with its value in words."""
    table: list[dict[str, Any]] = []
    for section, values in msgspec.to_builtins(preset).items():
        if isinstance(values, dict):
            rows = [{"name": name.replace("_", " "), "value": worded(value)} for name, value in values.items()]  # pyright: ignore
            table.append({"name": section, "rows": rows})
    return table


def worded(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {worded(item)}" for key, item in value.items()) or "none"  # pyright: ignore
    if isinstance(value, list | tuple):
        return ", ".join(worded(item) for item in value) or "none"  # pyright: ignore
    return str(value)


def sentences(memory: Memory) -> list[str]:
    """The rules that people ask about first."""
    preset = memory.preset
    keep, retention, recall = preset.remember, preset.retention, preset.recall
    lines = [f"What is stored is a {keep.kind} unless it says otherwise, and {keep.lifetime.replace('_', ' ')}."]
    if keep.max_chars is not None:
        lines.append(f"One memory has at most {keep.max_chars:,} characters.")
    lines.append("Credentials are refused." if preset.secrets.enabled else "Credentials are not looked for.")
    for days, text in ((retention.ttl_days, "expires after"), (retention.window_days, "leaves the prompt after")):
        lines += [f"A {kind} {text} {number:g} days." for kind, number in days.items()]
    if not retention.ttl_days:
        lines.append("Nothing expires by itself.")
    curve = msgspec.to_builtins(view_of(memory).decay).get("curve", "none")
    lines.append("Memories do not fade." if curve == "none" else f"Memories fade {str(curve).replace('_', ' ')}.")
    if retention.archive_below is not None:
        lines.append(f"What has faded below {retention.archive_below:g} is archived by maintenance.")
    quota = view_of(memory).quota
    lines.append(
        "There is no quota."
        if quota is None
        else f"An agent keeps at most {quota:,}: beyond, {retention.quota_action}."
    )
    lines.append(f"A question finds at most {recall.limit}, {'by meaning and words' if recall.embed else 'by words'}.")
    lines.append(f"Changes can be undone for {preset.maintenance.undo_days:g} days.")
    return lines
