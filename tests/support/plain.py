"""httpx for servers on this machine, without the certificates of the world: they take longer to read than an answer."""

from __future__ import annotations

from functools import partial

import httpx

Client = partial(httpx.Client, verify=False)
delete, get, head, options, patch, post, put, request, stream = (
    partial(getattr(httpx, name), verify=False)
    for name in ("delete", "get", "head", "options", "patch", "post", "put", "request", "stream")
)
