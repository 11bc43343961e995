"""Replicas, and tenants on several servers, under load and with faults: what is lost or refused, and who waits.

Two servers of our own and a replica of the first, durable (fsync on). Clients in several processes write and read
tenants of both; meanwhile one tenant is moved back and forth, the replica is killed and started again, and a server is
restarted. Each client looks after each write whether it reads it, and at the end everybody looks whether all that was
acknowledged is there, once.

    python benchmarks/tenants.py [--seconds 30] [--processes 4] [--json]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import statistics
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support import postgres as servers

from recollect import Memory
from recollect.stores.postgres.connections import Location
from recollect.stores.postgres.server import Server
from recollect.stores.postgres.tenants.moving import move
from recollect.stores.postgres.tenants.servers import Servers
from recollect.values.errors import RecollectError

os.environ["RECOLLECT_EMBEDDER"] = "none"
SETTINGS = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "512MB", "max_wal_size": "4GB"}
TENANTS = [f"t{number}" for number in range(8)]


def client(number: int, home: str, other: str, replica: str | None, until: float, results: Any) -> None:
    """Writes and reads tenants in turn; what it wrote it must read at once."""
    rng = random.Random(number)
    acknowledged: dict[str, list[str]] = {tenant: [] for tenant in TENANTS}
    errors: Counter[str] = Counter()
    seconds: list[float] = []
    unread = 0
    with Memory(home, replica_url=replica, servers={"b": other}) as memory:
        count = 0
        while time.monotonic() < until:
            tenant = rng.choice(TENANTS)
            view, start = memory.at(tenant=tenant), time.perf_counter()
            try:
                record = view.remember(f"{tenant} note {number} {count} about herons")
                acknowledged[tenant].append(record.id)
                seconds.append(time.perf_counter() - start)
                start = time.perf_counter()
                unread += view.get(record.id).id != record.id
                view.recall(f"note {number} {count}", touch=False)
                seconds.append(time.perf_counter() - start)
            except RecollectError as error:
                errors[type(error).__name__] += 1
            count += 1
        source: Any = memory._view.store.server.replica  # how many reads the replica has answered
        results.put((acknowledged, dict(errors), seconds, unread, 0 if source is None else source.answered))


def moves(home: str, other: str, until: float) -> list[float]:
    """One tenant back and forth. Milliseconds for which its writers were held back."""
    frozen: list[float] = []
    named = Servers(Server(Location.of(home)), {"b": Server(Location.of(other))})
    target = "b"
    while time.monotonic() < until - 2:
        try:
            receipt = move(named, "t0", target)
        except RecollectError:  # run again it goes on where it was
            time.sleep(0.2)
            continue
        if receipt.frozen_ms is not None:
            frozen.append(receipt.frozen_ms)
        target = "home" if target == "b" else "b"
    named.close()
    return frozen


def run(seconds: float, processes: int, with_replica: bool, faults: bool) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    results: Any = context.Queue()
    with servers.Server(**SETTINGS) as home, servers.Server(**SETTINGS) as other:
        replica = home.replica() if with_replica else None
        urls = home.url(), other.url(), replica.url() if replica else None
        with Memory(urls[0], servers={"b": urls[1]}) as memory, Memory(urls[1]) as elsewhere:
            elsewhere.stats()
            for tenant in TENANTS:
                memory.at(tenant=tenant).remember_many([f"{tenant} heron number {n}" for n in range(500)])
        until = time.monotonic() + seconds
        # The children's clock is the machine's, as ours is.
        clients = [context.Process(target=client, args=(number, *urls, until, results)) for number in range(processes)]
        for process in clients:
            process.start()
        frozen: list[float] = []
        mover = threading.Thread(target=lambda: frozen.extend(moves(urls[0], urls[1], until)))
        mover.start()
        if faults:
            time.sleep(seconds / 4)
            if replica is not None:
                replica.kill()
                time.sleep(seconds / 8)
                replica.start()
            time.sleep(seconds / 8)
            other.restart("immediate" if not frozen else "fast")
        answers = [results.get() for _ in clients]
        for process in clients:
            process.join()
        mover.join()
        lost = doubled = total = 0
        with Memory(urls[0], servers={"b": urls[1]}) as memory:
            for tenant in TENANTS:
                stored = Counter(record.id for record in memory.at(tenant=tenant).list(limit=1_000_000))
                for acknowledged, *_ in answers:
                    total += len(acknowledged[tenant])
                    lost += sum(ident not in stored for ident in acknowledged[tenant])
                doubled += sum(times > 1 for times in stored.values())
        if replica is not None:
            replica.remove()
    taken = sorted(second for answer in answers for second in answer[2])
    errors: Counter[str] = Counter()
    for answer in answers:
        errors.update(answer[1])
    return {
        "what": f"{processes} processes, {seconds:g} s" + ", a replica" * with_replica + ", faults" * faults,
        "acknowledged": total,
        "lost": lost,
        "doubled": doubled,
        "not read after writing": sum(answer[3] for answer in answers),
        "errors": dict(errors),
        "operations a second": round(len(taken) / seconds, 1),
        "p50 ms": round(statistics.median(taken) * 1e3, 1),
        "p99 ms": round(taken[int(0.99 * len(taken))] * 1e3, 1),
        "moves": len(frozen),
        "held back ms, median and most": [round(statistics.median(frozen), 1), max(frozen)] if frozen else [],
        "answered by the replica": sum(answer[4] for answer in answers),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    servers.begin()
    try:
        for with_replica, faults in ((False, False), (True, False), (True, True)):
            result = run(arguments.seconds, arguments.processes, with_replica, faults)
            if arguments.json:
                print(json.dumps(result), flush=True)
            else:
                print("\n".join(f"{name:<32} {value}" for name, value in result.items()), end="\n\n", flush=True)
    finally:
        servers.end()


if __name__ == "__main__":
    main()
