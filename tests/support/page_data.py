"""The values that a page shows, before its template makes HTML of them."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import msgspec

from recollect.recall.hits import Hits
from recollect.remote.wire import RecallResult
from recollect.server.pages import site


def page_data(client: Any, path: str, params: Any = None, **options: Any) -> Any:
    """Gets a page of a server in this process over HTTP, and returns what its template was given, as JSON has it.

    `client` is one of httpx, or `support.plain`."""
    with patch.object(site, "rendered", wraps=site.rendered) as rendered:
        answer = client.get(path, **({} if params is None else {"params": params}), **options)
    assert answer.status_code == 200, (path, answer.status_code, answer.text[:500])
    assert answer.headers["content-type"] == "text/html; charset=utf-8", path
    return msgspec.json.decode(msgspec.json.encode(rendered.call_args.args[3], enc_hook=_plain))


def _plain(value: Any) -> Any:
    return RecallResult.of(value) if isinstance(value, Hits) else str(value)
