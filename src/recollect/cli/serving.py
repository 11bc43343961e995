"""Serving a memory over HTTP: to programs with keys, to people with a browser, to agents over MCP."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import webbrowser
from collections.abc import Sequence
from importlib.util import find_spec
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recollect.cli.lazy import Leaf
from recollect.cli.listening import host_and_port, is_loopback, listen, quoted
from recollect.cli.output import note, say
from recollect.cli.target import Target, scoped
from recollect.values import validation
from recollect.values.errors import AccessError, InputError

if TYPE_CHECKING:
    from recollect.server.access.oidc import OpenId
    from recollect.server.serving import Serving

_HERE = "127.0.0.1:8377"
_HOST = re.compile(r"[A-Za-z0-9_.-]{1,253}|\[[0-9A-Fa-f:.]+\]")


@click.command(cls=Leaf)
@click.option("--listen", "listening", default=_HERE, show_default=True, metavar="HOST:PORT", help="Where to listen.")
@click.option("--tls-cert", metavar="FILE", help="Certificate chain for TLS, in PEM.")
@click.option("--tls-key", metavar="FILE", help="Its key.")
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="Answer to this name only; several are possible.")
@click.option("--proxy", "proxies", multiple=True, metavar="IP", help="Believe this proxy where a request comes from.")
@click.option("--behind-tls", is_flag=True, help="A proxy in front speaks TLS: keep cookies to it.")
@click.option("--open-metrics", is_flag=True, help="Show /metrics without a key. They hold no content.")
@click.option("--rate", default=100.0, show_default=True, metavar="N", help="Requests a second of one key, over time.")
@click.option(
    "--tenant-rate",
    "tenant_rates",
    multiple=True,
    metavar="[TENANT=]N",
    help="Requests a second of each tenant, or of one, over time; can be given several times.  [default: no limit]",
)
@click.option("--oidc-issuer", metavar="URL", help="Let people log in through this provider of OpenID Connect.")
@click.option("--oidc-client-id", metavar="ID", help="What it calls this server.")
@click.option("--oidc-client-secret-file", metavar="FILE", help="The file with the secret that it gave to it.")
@click.option("--oidc-name", default="Company login", show_default=True, metavar="TEXT", help="What the button says.")
@click.option(
    "--log", "logged", type=click.Choice(["json", "none"]), default="json", show_default=True, help="To stderr."
)
@scoped
def serve(
    target: Target,
    listening: str,
    tls_cert: str | None,
    tls_key: str | None,
    hosts: Sequence[str],
    proxies: Sequence[str],
    behind_tls: bool,
    open_metrics: bool,
    rate: float,
    tenant_rates: Sequence[str],
    oidc_issuer: str | None,
    oidc_client_id: str | None,
    oidc_client_secret_file: str | None,
    oidc_name: str,
    logged: str,
) -> None:
    """Serve the memory over HTTP: the API at /v1, MCP at /mcp, and pages for people.

    Make a key first (`recollect keys create`), or a person (`recollect people add`). Without any, and on this machine
    only, it is for you alone: open the link that it prints, which works once.

    \b
    Example:
      recollect keys create laptop --role member
      recollect serve --listen 127.0.0.1:8377
      curl -H "Authorization: Bearer rk_…" http://127.0.0.1:8377/v1/stats
    """
    host, port = host_and_port(listening, "listen")
    _check_files(tls_cert, tls_key)
    _check_rate("rate", rate)
    each_tenant, some_tenants = _read_tenant_rates(tenant_rates)
    _check_names(proxies, hosts)
    _check_installed()
    from recollect.server.limits import Limits, burst_of
    from recollect.server.running import Secured, built, run
    from recollect.server.serving import Serving
    from recollect.server.upkeep import BackgroundMaintenance

    oidc = _oidc(oidc_issuer, oidc_client_id, oidc_client_secret_file, oidc_name)
    _log_to_stderr(logged)
    with target.open(target.find(), create=True) as memory:
        secure = tls_cert is not None
        limits = Limits(rate, burst_of(rate), tenant_per_second=each_tenant, tenants=some_tenants)
        serving = Serving(memory, limits=limits, secure=secure or behind_tls, open_metrics=open_metrics)
        serving.clean()
        if serving.vault.empty:
            _check_local(host, target)
            serving.single = True
        taken = listen(host, port, "listen")
        address = f"{'https' if secure else 'http'}://{quoted(host)}:{taken.getsockname()[1]}"
        names = [name.lower() for name in hosts] or (_local_names(host) if is_loopback(host) else [])
        app = built(serving, hosts=names, oidc=oidc, warm=True)
        note(f"Listening on {address}")
        if serving.single:
            say(f"Nobody has a key yet, so it is for you alone. This link works once:\n{_link(serving, address)}")
        with contextlib.suppress(KeyboardInterrupt), BackgroundMaintenance(memory):
            run(app, taken, tls=Secured(tls_cert, tls_key) if tls_cert and tls_key else None, proxies=proxies)


def _check_local(host: str, target: Target) -> None:
    """AccessError where nobody has a key, and other machines could reach the server."""
    if not is_loopback(host):
        raise AccessError(
            f"listen: {host} can be reached from other machines, and nobody has a key yet; make one with "
            f"`recollect keys create NAME --role owner{target.typed}`, or listen on 127.0.0.1"
        )


@click.command(cls=Leaf)
@click.option("--port", default=0, show_default="any that is free", metavar="PORT", help="The port to listen on.")
@click.option("--no-browser", is_flag=True, help="Only print the link.")
@scoped
def ui(target: Target, port: int, no_browser: bool) -> None:
    """Look at the memory in a browser on this machine. Nothing needs to be set up.

    \b
    Example:
      recollect ui
      recollect ui --store ledger:./sessions --no-browser
    """
    if not 0 <= port <= 65_535:
        raise InputError("port", "must be from 0 to 65,535")
    _check_installed()
    from recollect.server.running import built, run
    from recollect.server.serving import Serving
    from recollect.server.upkeep import BackgroundMaintenance

    _log_to_stderr("none")
    with target.open(target.find(), create=True) as memory:
        serving = Serving(memory, single=True)
        taken = listen("127.0.0.1", port, "port")
        link = _link(serving, f"http://127.0.0.1:{taken.getsockname()[1]}")
        say(f"Open this link, which works once (Ctrl-C ends it):\n{link}")
        if not no_browser and (os.name != "posix" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            webbrowser.open(link)
        with contextlib.suppress(KeyboardInterrupt), BackgroundMaintenance(memory):
            run(built(serving, hosts=_local_names("127.0.0.1"), warm=True), taken)


def _oidc(issuer: str | None, client_id: str | None, file: str | None, name: str) -> OpenId | None:
    if issuer is None and client_id is None and file is None:
        return None
    if issuer is None or client_id is None or file is None:
        raise click.UsageError("--oidc-issuer, --oidc-client-id and --oidc-client-secret-file come together.")
    try:
        secret = Path(file).read_text("utf-8").strip()
    except (OSError, ValueError):
        raise InputError("oidc_client_secret_file", f"{file} cannot be read") from None
    missing = [name for name in ("authlib", "httpx", "joserfc") if find_spec(name) is None]
    if missing:
        raise click.ClickException(
            f"this login needs {', '.join(missing)}; run `pip install '.[server,oidc]'` in a clone of recollect"
        )
    from recollect.server.access.oidc import OpenId, Provider

    return OpenId(Provider(issuer, client_id, secret, validation.label(name, "oidc_name")))


def _check_rate(option: str, rate: float) -> None:
    if not 0.1 <= rate <= 1e6:
        raise InputError(option, "must be from 0.1 to 1,000,000 requests a second")


def _read_tenant_rates(options: Sequence[str]) -> tuple[float | None, dict[str, float]]:
    """The limit of each tenant, None for none, and those of some tenants."""
    each: float | None = None
    some: dict[str, float] = {}
    for option in options:
        tenant, equals, number = option.rpartition("=")
        try:
            rate = float(number)
        except ValueError:
            raise InputError("tenant_rate", f"{option[:60]!r} is neither a number nor TENANT=NUMBER") from None
        _check_rate("tenant_rate", rate)
        if equals:
            some[validation.name(tenant, "tenant_rate")] = rate
        elif each is not None:
            raise InputError("tenant_rate", "is given twice without the name of a tenant")
        else:
            each = rate
    return each, some


def _check_files(certificate: str | None, key: str | None) -> None:
    if (certificate is None) != (key is None):
        raise click.UsageError("--tls-cert and --tls-key come together.")
    for option, file in (("tls_cert", certificate), ("tls_key", key)):
        if file is not None and not Path(file).is_file():
            raise InputError(option, f"there is no file {file}")


def _check_names(proxies: Sequence[str], hosts: Sequence[str]) -> None:
    for proxy in proxies:
        try:
            ip_network(proxy)
        except ValueError:
            raise InputError(
                "proxy", f"{proxy[:60]!r} is no address such as 10.0.0.2, nor a network such as 10.0.0.0/8"
            ) from None
    for name in hosts:
        if not _HOST.fullmatch(name):
            raise InputError("host", f"{name[:60]!r} is no name that a browser asks for, such as memory.example.org")


def _link(serving: Serving, address: str) -> str:
    return f"{address}/enter?ticket={serving.ticket()}"


def _local_names(host: str) -> list[str]:
    """What a browser on this machine may call it. Any other name is somebody's trick."""
    return list(dict.fromkeys([host, "127.0.0.1", "localhost", "[::1]"]))


def _check_installed() -> None:
    missing = [name for name in ("litestar", "uvicorn", "jinja2", "argon2") if find_spec(name) is None]
    if missing:
        raise click.ClickException(
            f"the server needs {', '.join(missing)}; run `pip install '.[server]'` in a clone of recollect"
        )


def _log_to_stderr(how: str) -> None:
    from recollect.runtime.logs import JsonLines
    from recollect.server.reporting import Unhurried, to_stderr

    if how == "none":
        to_stderr()
        return
    handler = Unhurried(2)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("recollect.server").setLevel(logging.INFO)
