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
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from recollect.cli.lazy import Leaf
from recollect.cli.listening import host_and_port, is_loopback, listen, quoted
from recollect.cli.output import note, say
from recollect.cli.paths import PATH
from recollect.cli.target import Target, scoped
from recollect.values import validation
from recollect.values.errors import AccessError, InputError

if TYPE_CHECKING:
    from recollect.server.access.oidc import OpenId
    from recollect.server.limits import Limits
    from recollect.server.pipeline import Pipeline
    from recollect.server.serving import Serving

_HERE = "127.0.0.1:8377"
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:\d{1,5})?")
_HOST = re.compile(r"[A-Za-z0-9_.-]{1,253}|\[[0-9A-Fa-f:.]+\]")


@click.command(cls=Leaf)
@click.option("--listen", "listening", default=_HERE, show_default=True, metavar="HOST:PORT", help="Where to listen.")
@click.option("--tls-cert", metavar="FILE", type=PATH, help="Certificate chain for TLS, in PEM.")
@click.option("--tls-key", metavar="FILE", type=PATH, help="Its key.")
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
@click.option(
    "--oidc-client-secret-file", metavar="FILE", type=PATH, help="The file with the secret that it gave to it."
)
@click.option("--oidc-name", default="Company login", show_default=True, metavar="TEXT", help="What the button says.")
@click.option(
    "--log", "logged", type=click.Choice(["json", "none"]), default="json", show_default=True, help="To stderr."
)
@click.option("--mcp-only", is_flag=True, help="Serve MCP at /mcp, and neither the API nor pages.")
@click.option("--read-only", is_flag=True, help="With --mcp-only: leave out the tools that change something.")
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="With --mcp-only: answer web pages of this origin; several are possible.",
)
@scoped
def serve(target: Target, **options: Any) -> None:
    """Serve the memory over HTTP: the API at /v1, MCP at /mcp, and pages for people.

    Make a key first (`recollect keys create`), or a person (`recollect people add`). Without any, and on this machine
    only, it is for you alone: open the link that it prints, which works once. With --mcp-only and without any key, it
    answers every program on this machine.

    \b
    Example:
      recollect keys create laptop --role member
      recollect serve --listen 127.0.0.1:8377
      curl -H "Authorization: Bearer rk_…" http://127.0.0.1:8377/v1/stats
      recollect serve --mcp-only --agent claude
    """
    serve_with(target, ServeOptions(**options))


class ServeOptions(NamedTuple):
    """The options of `recollect serve`."""

    listening: str = _HERE
    tls_cert: str | None = None
    tls_key: str | None = None
    hosts: Sequence[str] = ()
    proxies: Sequence[str] = ()
    behind_tls: bool = False
    open_metrics: bool = False
    rate: float = 100.0
    tenant_rates: Sequence[str] = ()
    oidc_issuer: str | None = None
    oidc_client_id: str | None = None
    oidc_client_secret_file: str | None = None
    oidc_name: str = ""
    logged: str = "json"
    mcp_only: bool = False
    read_only: bool = False
    origins: Sequence[str] = ()

    @property
    def scheme(self) -> str:
        return "https" if self.tls_cert is not None else "http"


def serve_with(target: Target, options: ServeOptions, option: str = "listen") -> None:
    """`option` is the name of the option that says where to listen, for errors."""
    host, port = host_and_port(options.listening, option)
    limits = _checked_limits(options)
    _check_installed(options.mcp_only)
    oidc = _oidc(options)
    from recollect.server.running import Secured, run
    from recollect.server.serving import Serving
    from recollect.server.upkeep import BackgroundMaintenance

    located = target.find()
    is_new = located[1] is not None and not located[1].exists(target.location)
    if is_new:  # then nobody has a key
        _check_local(host, target, option)
    taken = listen(host, port, option)
    if is_new and not options.read_only and located[1] is not None:
        located[1].make()
        note(f"Started a new memory in {target.location}")
    _log_to_stderr(options.logged)
    with target.open(located) as memory, contextlib.ExitStack() as background:
        serving = Serving(
            memory,
            limits=limits,
            secure=options.tls_cert is not None or options.behind_tls,
            open_metrics=options.open_metrics,
        )
        serving.clean()
        if serving.accounts.empty:
            _check_local(host, target, option)
            serving.single, serving.local_mcp = not options.mcp_only, options.mcp_only
        address = f"{options.scheme}://{quoted(host)}:{taken.getsockname()[1]}"
        app = _application(serving, options, host, taken.getsockname()[1], oidc)
        note(f"Listening on {address}{'/mcp' if options.mcp_only else ''}")
        if serving.single:
            say(f"Nobody has a key yet, so it is for you alone. This link works once:\n{_link(serving, address)}")
        if not options.read_only:
            background.enter_context(BackgroundMaintenance(memory))
        tls = Secured(options.tls_cert, options.tls_key) if options.tls_cert and options.tls_key else None
        with contextlib.suppress(KeyboardInterrupt):
            run(app, taken, tls=tls, proxies=options.proxies)
        if serving.working:  # a thread cannot be ended, and closing would wait for it
            note(f"{serving.working} requests were still being answered, and are broken off")
            logging.shutdown()
            os._exit(0)


def _application(serving: Serving, options: ServeOptions, host: str, port: int, oidc: OpenId | None) -> Pipeline:
    from recollect.server.running import built

    names = [name.lower() for name in options.hosts] or (_local_names(host) if is_loopback(host) else [])
    # Without a key nothing but its origin tells a web page from a program of this machine.
    own_origins = [f"{options.scheme}://{name}:{port}" for name in names]
    return built(
        serving,
        hosts=names,
        oidc=oidc,
        warm=True,
        mcp_only=options.mcp_only,
        read_only=options.read_only,
        origins=[*own_origins, *options.origins] if serving.local_mcp else None,
        cross_origins=options.origins,
    )


def _checked_limits(options: ServeOptions) -> Limits:
    """Checks what can be checked before anything is opened, and returns the limits."""
    if not options.mcp_only and (options.read_only or options.origins):
        raise click.UsageError("--read-only and --allow-origin are for --mcp-only.")
    for origin in options.origins:
        if not _ORIGIN.fullmatch(origin):
            raise InputError("allow_origin", "must be as browsers send it, such as http://localhost:3000")
    _check_files(options.tls_cert, options.tls_key)
    _check_rate("rate", options.rate)
    each_tenant, some_tenants = _read_tenant_rates(options.tenant_rates)
    _check_names(options.proxies, options.hosts)
    from recollect.server.limits import Limits, burst_of

    return Limits(options.rate, burst_of(options.rate), tenant_per_second=each_tenant, tenants=some_tenants)


def _check_local(host: str, target: Target, option: str) -> None:
    """AccessError where nobody has a key, and other machines could reach the server."""
    if not is_loopback(host):
        raise AccessError(
            f"{option}: {host} can be reached from other machines, and nobody has a key yet; make one with "
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


def _oidc(options: ServeOptions) -> OpenId | None:
    issuer, client_id, file = options.oidc_issuer, options.oidc_client_id, options.oidc_client_secret_file
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

    return OpenId(Provider(issuer, client_id, secret, validation.label(options.oidc_name, "oidc_name")))


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


def _check_installed(mcp_only: bool = False) -> None:
    names = ("argon2", "jinja2", "prometheus_client", "starlette", "uvicorn", *(("mcp",) if mcp_only else ()))
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        extras = "server,mcp" if mcp_only else "server"
        raise click.ClickException(
            f"the server needs {', '.join(missing)}; run `pip install '.[{extras}]'` in a clone of recollect"
        )


def _log_to_stderr(how: str) -> None:
    from recollect.server.reporting import DiscreetJson, to_stderr

    if how == "none":
        to_stderr()
        return
    to_stderr(DiscreetJson())
    logging.getLogger("recollect.server").setLevel(logging.INFO)
