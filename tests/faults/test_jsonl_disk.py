"""Disks that refuse: ledgers keep the write in memory, say so, and write it once they can; notebooks refuse it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support import disks
from support.jsonl import KINDS, PRESETS, Kept, assert_sound

from recollect import InputError, Memory

pytestmark = pytest.mark.clause("LED-13")


@pytest.fixture(params=KINDS)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    kept = Kept(request.param, tmp_path / "memory")
    if kept.kind == "ledger":
        kept.hurry(lock_timeout_ms=2000, max_retries=3, retry_backoff_ms=5)
    return kept


@pytest.fixture
def ledger(tmp_path: Path) -> Kept:
    kept = Kept("ledger", tmp_path / "memory")
    kept.hurry(lock_timeout_ms=2000, max_retries=3, retry_backoff_ms=5)
    return kept


FAILING = """
import errno, os, sys, time, warnings
from recollect import Memory
from recollect.values.errors import StoreError, UnsavedWarning
url, preset, calls, recovers = sys.argv[1], sys.argv[2], sys.argv[3].split(), sys.argv[4] == "recovers"
memory = Memory(url, preset=preset)
kept = [memory.remember("before"), memory.remember("to be archived"), memory.remember("to be forgotten")]

def contents(memory):
    return sorted(record.content for record in memory.list(limit=100))

def warned(verb, *arguments):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done = verb(*arguments)
    assert [one.category for one in caught] == [UnsavedWarning], caught
    return done

# The disk fails: after half of what was to be written, or when it should be made durable.
real = {name: getattr(os, name) for name in ("write", "fsync", "ftruncate")}
failures, slept = [], []
def failing(name):
    def call(fd, *data):
        failures.append(name)
        if name == "write":
            real["write"](fd, bytes(data[0])[: len(data[0]) // 2])
        raise OSError(errno.EIO, "Input/output error")
    return call
nap, time.sleep = time.sleep, lambda seconds: slept.append(seconds)
for name in calls:
    setattr(os, name, failing(name))

first = warned(memory.remember, "kept in memory")
assert failures.count(calls[-1]) == 4, failures
assert len(slept) == 3 and slept[1] == 2 * slept[0] and slept[2] == 4 * slept[0], slept
second = warned(memory.remember_many, ["kept too", "and this"])
warned(memory.archive, kept[1].id)
assert "not saved yet" in warned(memory.forget, kept[2].id).note
expected = ["and this", "before", "kept in memory", "kept too"]
assert contents(memory) == expected
assert memory.get(first.id).content == "kept in memory"
assert [hit.memory.id for hit in memory.recall('"kept in memory"')] == [first.id]
assert memory.get(kept[1].id).archived_at is not None
(problem,) = [one for one in memory.doctor().findings if one.severity == "error"]
assert (problem.problem, problem.count) == ("not saved yet", 4), problem
assert memory.unsaved == memory.stats().unsaved == 4
assert [record.saved for record in (kept[0], first, *second)] == [True, False, False, False]

with Memory(url, preset=preset) as other:  # which sees no half of it
    assert contents(other) == ["before", "to be archived", "to be forgotten"]
    assert other.doctor().ok, other.doctor()

for name in calls if recovers else ():
    setattr(os, name, real[name])
if recovers:
    last = memory.remember("after")
    assert last.saved and memory.unsaved == memory.stats().unsaved == 0
    assert memory.doctor().ok, memory.doctor()
    with Memory(url, preset=preset) as other:
        assert contents(other) == contents(memory) == sorted([*expected, "after"])
        assert other.get(kept[1].id).archived_at is not None
        assert other.get(first.id).content == "kept in memory"
        assert other.diagnose(kept[2].id).status == "forgotten"
        assert other.doctor().ok, other.doctor()
    memory.close()
else:
    try:
        memory.close()
        raise SystemExit("nobody was told")
    except StoreError as error:
        assert "lost" in f"{error} {error.__context__} {getattr(error.__context__, '__context__', '')}"
print("well")
"""


@pytest.mark.parametrize("calls", ["fsync", "write", "write ftruncate"])
def test_what_the_disk_refuses_for_a_while_is_kept_and_written_later(
    ledger: Kept, run: Callable[..., str], calls: str
) -> None:
    kept = ledger
    assert run(FAILING, kept.url, kept.preset, calls, "recovers") == "well\n"
    assert_sound(kept)


@pytest.mark.parametrize("calls", ["fsync", "write", "write ftruncate"])
def test_what_the_disk_refuses_for_good_is_reported_on_closing_and_leaves_no_half(
    ledger: Kept, run: Callable[..., str], calls: str
) -> None:
    kept = ledger
    assert run(FAILING, kept.url, kept.preset, calls, "never") == "well\n"
    assert kept.contents() == ["before", "to be archived", "to be forgotten"]
    with kept.open() as memory:
        memory.remember("another")
    assert kept.contents() == ["before", "to be archived", "to be forgotten", "another"]
    assert_sound(kept)


REFUSING = """
import errno, os, sys
from recollect import Memory
from recollect.values.errors import DiskFullError, StoreError
memory = Memory(sys.argv[1], preset=sys.argv[2])
memory.remember("before")
real, full = os.write, sys.argv[3] == "full"
def failing(fd, data):
    real(fd, bytes(data)[: len(data) // 2])
    raise OSError(errno.ENOSPC, "No space left on device") if full else OSError(errno.EIO, "Input/output error")
os.write = failing
for _ in range(2):
    try:
        memory.remember("refused")
        print("was done")
    except StoreError as error:
        assert isinstance(error, DiskFullError) is full, error
assert [record.content for record in memory.list()] == ["before"]
os.write = real
assert memory.remember("after").id == "m-2"
memory.close()
print("well")
"""


@pytest.mark.parametrize("why", ["full", "broken"])
def test_a_notebook_refuses_what_the_disk_refuses(tmp_path: Path, run: Callable[..., str], why: str) -> None:
    kept = Kept("notebook", tmp_path / "memory")
    assert run(REFUSING, kept.url, kept.preset, why) == "well\n"
    assert kept.contents() == ["before", "after"]
    assert_sound(kept)


ENDING = """
import atexit, errno, os, sys, warnings
atexit.register(lambda: print("others end in order", flush=True))  # done after ours, as it was there before
from recollect import Memory
from recollect.values.errors import StoreError
memory, end = Memory(sys.argv[1], preset="ledger"), sys.argv[2]
memory.sessions.create("u", session_id="s")
real = os.fsync
def failing(fd):
    raise OSError(errno.ENOSPC, "No space left on device")
os.fsync = failing
warnings.simplefilter("ignore")
ids = [memory.sessions.add("s", {"type": "finding", "content": f"heron {n}"}) for n in range(2)]
stats = memory.sessions.stats("s")
assert stats.buffered == 2, stats
assert [(one.problem, one.count) for one in memory.at(workspace="s").doctor().findings] == [("not saved yet", 2)]
if end == "recovers":
    os.fsync = real
elif end != "exit":
    try:
        memory.sessions.close("s") if end == "close_session" else memory.close()
        raise SystemExit("nobody was told")
    except StoreError as error:
        print(error, file=sys.stderr)
print(*ids, flush=True)
del memory
atexit.register(lambda: print("flushed", file=sys.stderr, flush=True))
"""


@pytest.mark.parametrize("end", ["close", "close_session", "exit", "recovers"])
def test_what_is_lost_at_the_end_is_told_and_copied(ledger: Kept, tmp_path: Path, end: str) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", ENDING, ledger.url, end], env=environment, capture_output=True, text=True
    )
    assert done.returncode == (120 if end == "exit" else 0), done.stderr
    assert "Exception" not in done.stderr
    assert "flushed\n" in done.stderr
    *lines, last = done.stdout.splitlines()
    assert last == "others end in order"
    ids = " ".join(lines).split()
    with ledger.open() as memory:
        there = [record.id for record in memory.at(workspace="s").list(newest_first=False)]
    if end == "recovers":  # although nobody closed it
        assert (there, done.stderr) == (ids, "flushed\n")
        return
    (copy,) = tmp_path.glob("recollect-unsaved-*")
    assert there == []
    for said in ("2 writes with 2 memories", *ids, "is lost", f"a copy is in {copy}", "No space left"):
        assert said in done.stderr
    assert stat.S_IMODE(copy.stat().st_mode) == 0o700
    with Memory(f"ledger:{copy}", preset="ledger") as memory:
        assert [record.content for record in memory.at(workspace="s").list(newest_first=False)] == [
            "heron 0",
            "heron 1",
        ]


def test_whoever_remembers_on_a_full_disk_is_told_by_the_command_line(ledger: Kept, tmp_path: Path) -> None:
    """A command ends, and what it could not save ends with it: that is an error, and nothing says `Remembered`."""
    disk = tmp_path / "disk"
    before = disks.small_disk(disk, "256k")
    script = """
        export RECOLLECT_STORE="ledger:$1/memory" RECOLLECT_PRESET=ledger
        mkdir "$1/memory"; cp "$2" "$1/memory/config.json"
        "$3" -m recollect remember before > /dev/null
        dd if=/dev/zero of="$1/ballast" bs=4096 2>/dev/null || true
        for json in "" --json; do
            "$3" -m recollect remember "$4" $json && echo "exit 0"
            echo "$4" | "$3" -m recollect remember --lines $json && echo "exit 0"
            "$3" -m recollect call remember "{\\"content\\": \\"$4\\"}" $json && echo "exit 0"
        done
        exit 0
    """
    config = Path(ledger.root, "config.json")
    command = [*before, "sh", "-c", script, "sh", disk, config, sys.executable, "heron " * 1600]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True)
    assert "Remembered" not in done.stdout
    assert "exit 0" not in done.stdout
    assert '"id"' not in done.stdout
    assert done.stdout.count('"error"') == 3
    assert done.stderr.count("It could not be written and is lost; a copy is in") == 6, done.stderr


TOLD_BY_TOOLS = """
import errno, os, sys, warnings
from recollect import Memory, tools
memory = Memory(sys.argv[1], preset="ledger").at(agent="atlas", conversation="c")
ident = tools.call(memory, "remember", {"content": "before"})["id"]
real = os.fsync
def failing(fd):
    raise OSError(errno.ENOSPC, "No space left on device")
os.fsync = failing
warnings.simplefilter("ignore")
writing = {
    "remember": {"content": "a heron"},
    "forget": {"id": ident},
    "memory_store": {"text": "a heron"},
    "write_scratchpad": {"key": "k", "value": "a heron"},
    "save_to_core": {"content": "a heron"},
}
for name, arguments in writing.items():
    told = tools.call(memory, name, arguments)
    assert "error" not in told and told.get("ok") is not False, told
    assert "in memory only" in told["not_saved_yet"], told
assert "not_saved_yet" not in tools.call(memory, "recall", {"query": "heron"})
os.fsync = real
assert "not_saved_yet" not in tools.call(memory, "remember", {"content": "after"})
memory.close()
print("well")
"""


def test_a_model_is_told_that_what_it_writes_is_not_saved_yet(ledger: Kept, run: Callable[..., str]) -> None:
    assert run(TOLD_BY_TOOLS, ledger.url) == "well\n"


MEANWHILE = """
import errno, os, sys, warnings
from recollect import Memory
memory = Memory(sys.argv[1], preset=sys.argv[2])
old = memory.remember("old")
real = os.fsync
def failing(fd):
    raise OSError(errno.EIO, "Input/output error")
os.fsync = failing
warnings.simplefilter("ignore")
memory.remember("mine")
memory.archive(old.id)
print("failed", flush=True)
sys.stdin.readline()
os.fsync = real
memory.remember("mine again")
assert memory.doctor().ok, memory.doctor()
memory.undo(), memory.undo()
assert memory.get(old.id).archived_at is None
memory.close()
"""


def test_what_others_write_meanwhile_and_what_was_kept_make_one_audit_log(
    tmp_path: Path, start: Callable[..., object]
) -> None:
    kept = Kept("ledger", tmp_path / "memory")
    kept.hurry(lock_timeout_ms=2000, max_retries=1, retry_backoff_ms=1)
    script = start(MEANWHILE, kept.url, kept.preset)
    assert script.line() == "failed"  # type: ignore[attr-defined]
    with kept.open() as memory:
        memory.remember("theirs")
        memory.remember("theirs too")
        script.tell("go on")  # type: ignore[attr-defined]
        script.finish()  # type: ignore[attr-defined]
        assert sorted(record.content for record in memory.list()) == ["mine", "old", "theirs", "theirs too"]
    assert_sound(kept)


FULL = """
import os, sys, warnings
from recollect import Memory
from recollect.values.errors import DiskFullError, UnsavedWarning
scheme, disk, preset = sys.argv[1], sys.argv[2], sys.argv[3]
url = f"{scheme}:{folder}"
memory = Memory(url, preset=preset)
kept = [record.content for record in memory.remember_many([f"heron number {n}" for n in range(50)])]
fill()
warnings.simplefilter("error", UnsavedWarning)
unsaved = refused = 0
warnings.simplefilter("always", UnsavedWarning)
with warnings.catch_warnings(record=True) as caught:
    for n in range(30):
        try:
            text = f"{n} " + "heron " * 80
            memory.remember(text)
            kept.append(text)
        except DiskFullError:
            refused += 1
            if refused == 5:
                break  # each is tried for half a second, and the next is like it
assert caught or refused
assert sorted(record.content for record in memory.list(limit=1000)) == sorted(kept)
with Memory(url, preset=preset) as other:
    assert {record.content for record in other.list(limit=1000)} <= {*kept}
    assert other.doctor().ok, other.doctor()
make_space()
memory.remember("once there is space")
assert memory.doctor().ok, memory.doctor()
memory.close()
with Memory(url, preset=preset) as other:
    assert sorted(record.content for record in other.list(limit=1000)) == sorted([*kept, "once there is space"])
    assert other.doctor().ok
print("well")
"""

SMALL_DISK = """
import os, sys
disk = sys.argv[2]
folder, ballast = f"{disk}/memory", f"{disk}/ballast"
def fill():
    os.makedirs(folder, exist_ok=True)
    with open(ballast, "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass
def make_space():
    os.remove(ballast)
"""

SIZE_LIMIT = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder = f"{sys.argv[2]}/memory"
before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
def fill():
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
def make_space():
    resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))
"""


def quick_config(folder: Path, kind: str) -> None:
    if kind == "ledger":
        Kept(kind, folder).hurry(max_retries=1, retry_backoff_ms=1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_loses_nothing_and_half_writes_nothing(tmp_path: Path, run: Callable[..., str], kind: str) -> None:
    disk = tmp_path / "disk"
    before = disks.small_disk(disk, "1m")
    assert run(SMALL_DISK + FULL, kind, disk, PRESETS[kind], before=before) == "well\n"


@pytest.mark.parametrize("kind", KINDS)
def test_a_limit_on_the_size_of_files_loses_nothing(tmp_path: Path, run: Callable[..., str], kind: str) -> None:
    quick_config(tmp_path / "memory", kind)
    assert run(SIZE_LIMIT + FULL, kind, tmp_path, PRESETS[kind]) == "well\n"
    assert_sound(Kept(kind, tmp_path / "memory"))


READ_ONLY = """
import sys
from recollect import Memory
from recollect.values.errors import ReadOnlyError
memory = Memory(sys.argv[1], preset=sys.argv[2])
(record,) = memory.list()
assert memory.recall("heron") and memory.doctor().ok
for verb in (
    lambda: memory.remember("a fox"),
    lambda: memory.remember_many(["a fox", "a lynx"]),
    lambda: memory.at(workspace="another").remember("a fox"),
    lambda: memory.revise(record.id, content="a fox"),
    lambda: memory.archive(record.id),
    lambda: memory.forget(record.id),
    lambda: memory.forget(record.id, erase=True),
    lambda: memory.compact(),
):
    try:
        verb()
        print("was done")
    except ReadOnlyError:
        pass
assert [record.content for record in memory.list()] == ["a heron"]
memory.close()
"""


def test_a_read_only_disk_can_be_read_and_refuses_all_writes(kept: Kept, run: Callable[..., str]) -> None:
    with kept.open() as memory:
        memory.remember("a heron")
    before = disks.fingerprint(kept.root)
    assert run(READ_ONLY, kept.url, kept.preset, before=disks.read_only_disk(kept.root)) == ""
    assert disks.fingerprint(kept.root) == before


@pytest.mark.clause("LED-20")
def test_files_are_for_their_owner_and_the_lock_may_be_read(kept: Kept) -> None:
    before = os.umask(0)
    try:
        with kept.open() as memory:
            record = memory.revise(memory.remember("a heron", embedding=[1.0]).id, content="a grey heron")
            memory.at(workspace="shop").forget(memory.at(workspace="shop").remember("a fox").id)
            memory.archive(record.id)
            memory.compact()
            memory.remember("alice", tier="account")
    finally:
        os.umask(before)
    (kept.root / "config.json").unlink(missing_ok=True)  # made by the test
    made = [kept.root, *kept.root.rglob("*")] if kept.kind == "notebook" else [*kept.root.rglob("*")]
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in made}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file() and path.name != "lock"} == {0o600}
    assert {mode for path, mode in modes.items() if path.name == "lock"} == {0o644}


@pytest.mark.clause("LED-20")
@pytest.mark.parametrize(
    "name",
    ["a\0b", "", " ", "x" * 65, "a\n", "ä" * 33, "\u202eb", "\ud800"],
)
def test_no_name_is_empty_long_or_unprintable(tmp_path: Path, name: str) -> None:
    outside = {*tmp_path.rglob("*")}
    for kind in KINDS:
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            kept = Kept(kind, Path(folder, "in", "memory"))
            with kept.open() as memory:
                for part in ("tenant", "workspace", "account", "channel", "conversation", "agent"):
                    with pytest.raises(InputError):
                        memory.at(**{part: name})
                for verb in (memory.get, memory.forget, memory.archive, memory.history, memory.diagnose):
                    with pytest.raises(InputError):
                        verb(name)
                with pytest.raises(InputError):
                    memory.remember("a heron", references=[name])
                memory.remember("a heron")
            assert {*Path(folder).iterdir()} == {Path(folder, "in")}
            assert {*Path(folder, "in").iterdir()} == {kept.root}
    assert {*tmp_path.rglob("*")} == outside


@pytest.mark.clause("LED-20")
def test_files_of_others_beside_a_notebook_are_left_alone(tmp_path: Path) -> None:
    beside = {tmp_path / name: name for name in ("draft.tmp", "memories.jsonl.tmp", "other.jsonl", ".trash-mine")}
    for path in beside:
        path.write_text(path.name)
    with Memory(f"notebook:{tmp_path}/memories.jsonl", preset="aegis") as memory:
        memory.forget(memory.remember("a heron").id)
        memory.compact()
        memory.remember("a fox")
        memory.at(workspace="shop").remember("a lynx")
        memory.forget(workspace="default")
        assert [record.content for record in memory.at(workspace="shop").list()] == ["a lynx"]
    assert {path: path.read_text() for path in beside} == beside


ERASING = """
import errno, os, sys, warnings
from recollect import Memory
from recollect.values.errors import StoreError
memory = Memory(sys.argv[1], preset="ledger")
saved = memory.remember("the saved zebra")
changed = memory.remember("the archived zebra")
memory.forget(changed.id)  # which can be undone, and so is in undo.jsonl
real = os.fsync
def failing(fd):
    raise OSError(errno.ENOSPC, "No space left on device")
os.fsync = failing
warnings.simplefilter("ignore")
held = memory.remember("the unsaved zebra", tags=["striped"])
memory.archive(held.id, reason="the zebra is archived")
forgotten = memory.remember("the forgotten zebra")
memory.forget(forgotten.id, reason="a zebra is not needed")
for ident in (held.id, forgotten.id, saved.id, changed.id):
    try:
        receipt = memory.forget(ident, erase=True)
        raise SystemExit(f"erased on a full disk: {receipt}")
    except StoreError as error:
        assert "in this process only" in str(error), error
        assert "undo cannot take back" not in str(error), error
assert memory.list(state=None) == []
assert memory.unsaved
if sys.argv[2] == "recovers":
    os.fsync = real
    memory.close()
else:
    try:
        memory.close()
        raise SystemExit("nobody was told")
    except StoreError:
        pass
print("well")
"""


@pytest.mark.parametrize("end", ["recovers", "never"])
def test_what_is_erased_on_a_full_disk_is_written_nowhere_afterwards(
    ledger: Kept, tmp_path: Path, run: Callable[..., str], end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "temporary"
    elsewhere.mkdir()
    monkeypatch.setenv("TMPDIR", str(elsewhere))
    assert run(ERASING, ledger.url, end) == "well\n"
    texts = [path.read_bytes().decode(errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
    for words in ("unsaved zebra", "forgotten zebra", "zebra is"):
        assert not any(words in text for text in texts), words
    assert bool(list(elsewhere.iterdir())) is (end == "never")
    with ledger.open() as memory:
        # What the disk had and could not be told to delete is back, as the error said.
        expected = [] if end == "recovers" else ["the saved zebra"]
        assert [record.content for record in memory.list(state=None)] == expected
    assert_sound(ledger)
