"""Requests a second of a tenant: counted over all its keys, apart from other tenants, and refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import plain
from support.command_line import called
from support.served import Served, served

from recollect import Memory
from recollect.server import limits as module
from recollect.server.limits import Limits, burst_of

PLENTY = 1e6
SLOW = 0.1
"""A second: what is taken does not come back during a test. Ten may come at once."""


def statuses(server: Served, times: int, **headers: str) -> list[int]:
    return [plain.get(f"{server.url}/v1/stats", headers=headers).status_code for _ in range(times)]


def test_all_keys_of_a_tenant_share_its_limit_and_no_other_tenant_does(tmp_path: Path) -> None:
    limits = Limits(PLENTY, 1000, tenant_per_second=SLOW)
    with Memory(tmp_path) as memory, served(memory, limits=limits) as server:
        first, second = (server.headers("reader", tenant="acme") for _ in range(2))
        assert statuses(server, 6, **first) == [200] * 6
        assert statuses(server, 6, **second) == [200] * 4 + [429] * 2
        service = server.headers("reader", all_tenants=True)
        assert statuses(server, 1, **service, **{"recollect-tenant": "acme"}) == [429]
        assert statuses(server, 1, **service, **{"recollect-tenant": "other"}) == [200]


def test_the_refusal_names_the_limit_and_when_to_come_again(tmp_path: Path) -> None:
    limits = Limits(PLENTY, 1000, tenants={"acme": SLOW})
    with Memory(tmp_path) as memory, served(memory, limits=limits) as server:
        headers = server.headers("reader", tenant="acme")
        statuses(server, 10, **headers)
        refused = plain.get(f"{server.url}/v1/stats", headers=headers)
        assert (refused.status_code, refused.json()["title"]) == (429, "ConcurrencyError")
        assert "for the tenant acme: the limit is 0.1 a second" in refused.json()["detail"]
        assert 5 <= int(refused.headers["retry-after"]) <= 10
        assert statuses(server, 12, **server.headers("reader", tenant="other")) == [200] * 12


def test_a_key_cannot_spend_what_another_tenant_has(tmp_path: Path) -> None:
    limits = Limits(PLENTY, 1000, tenant_per_second=SLOW)
    with Memory(tmp_path) as memory, served(memory, limits=limits) as server:
        stranger = server.headers("reader", tenant="stranger")
        assert set(statuses(server, 12, **stranger, **{"recollect-tenant": "acme"})) == {403, 429}
        assert statuses(server, 10, **server.headers("reader", tenant="acme")) == [200] * 10


def test_the_limit_of_the_key_stays(tmp_path: Path) -> None:
    limits = Limits(1e-6, 3, tenant_per_second=PLENTY)
    with Memory(tmp_path) as memory, served(memory, limits=limits) as server:
        headers = server.headers("reader", tenant="acme")
        assert statuses(server, 3, **headers) == [200] * 3
        refused = plain.get(f"{server.url}/v1/stats", headers=headers)
        assert (refused.status_code, "with this key: the limit is" in refused.json()["detail"]) == (429, True)


def test_what_was_taken_comes_back_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    rates = module.RateLimits(Limits(tenants={"acme": 20.0}))
    for _ in range(burst_of(20.0)):
        rates.take_for_tenant("acme")
    with pytest.raises(module.TooManyError) as refused:
        rates.take_for_tenant("acme")
    assert refused.value.seconds == pytest.approx(0.05)
    now[0] += 0.051
    rates.take_for_tenant("acme")
    with pytest.raises(module.TooManyError):
        rates.take_for_tenant("acme")
    now[0] += 3600
    for _ in range(burst_of(20.0)):
        rates.take_for_tenant("acme")
    with pytest.raises(module.TooManyError):
        rates.take_for_tenant("acme")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["0"], "from 0.1 to 1,000,000"),
        (["acme=0.01"], "from 0.1 to 1,000,000"),
        (["acme=many"], "neither a number nor TENANT=NUMBER"),
        (["5", "6"], "given twice"),
        (["=5"], "tenant_rate"),
    ],
)
def test_bad_limits_are_refused_at_the_start(tmp_path: Path, options: list[str], problem: str) -> None:
    words = [word for option in options for word in ("--tenant-rate", option)]
    told = called("serve", "--store", str(tmp_path / "m"), *words)
    assert told.returncode != 0
    assert problem in told.stderr
