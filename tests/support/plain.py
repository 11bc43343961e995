"""httpx for servers on this machine, without the certificates of the world: they take longer to read than an answer.

It waits for as long as a test may take: how busy the machine is shall not decide whether a server answers.
"""

from __future__ import annotations

from functools import partial

import httpx

TIMEOUT = 240.0
Client = partial(httpx.Client, verify=False, timeout=TIMEOUT)
delete, get, head, options, patch, post, put, request, stream = (
    partial(getattr(httpx, name), verify=False, timeout=TIMEOUT)
    for name in ("delete", "get", "head", "options", "patch", "post", "put", "request", "stream")
)
