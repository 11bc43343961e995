"""Files as documents, by what their names end in."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Literal, NamedTuple

from recollect.documents import html, markdown
from recollect.documents.blocks import Read, TextBlock, plain
from recollect.values.errors import InputError

Format = Literal["md", "txt", "html", "pdf", "docx"]
TextFormat = Literal["md", "txt", "html"]
FORMATS: dict[str, Format] = {
    ".md": "md",
    ".markdown": "md",
    ".txt": "txt",
    ".text": "txt",
    ".html": "html",
    ".htm": "html",
    ".pdf": "pdf",
    ".docx": "docx",
}
MAX_BYTES = 64 * 1024 * 1024
_READING = 1
"""Raised when documents are read or cut otherwise, so that those that are there are read again."""
_BOMS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}


class Raw(NamedTuple):
    """A document before it is read, which may take long."""

    data: bytes
    format: Format
    name: str
    """What errors call it."""

    @property
    def hash(self) -> str:
        """The same as long as there is nothing to do anew."""
        return hashlib.sha256(f"{_READING} {self.format}\n".encode() + self.data).hexdigest()

    def read(self) -> Read:
        """InputError for `path` where it cannot be read."""
        try:
            return _READERS[self.format](self)
        except InputError:
            raise
        except Exception as error:  # a file may be damaged in ways that its reader did not foresee
            problem = f"{self.name} cannot be read as {self.format}; is it damaged? ({type(error).__name__})"
            raise InputError("path", problem) from error


def load(path: Path) -> Raw:
    """The bytes of a file. InputError where it is none that could be a document."""
    format = FORMATS.get(path.suffix.lower())
    if format is None:
        raise InputError("path", f"{path.name} is of no known format; known: {', '.join(FORMATS)}")
    try:
        if not path.is_file():
            raise InputError("path", f"{path.name} is not a file" if path.exists() else f"there is no file {path}")
        if (size := path.stat().st_size) > MAX_BYTES:
            raise InputError("path", f"{path.name}: {size:,} bytes is over the limit of {MAX_BYTES:,} bytes")
        return Raw(path.read_bytes(), format, path.name)
    except OSError as error:
        raise InputError("path", f"{path.name} cannot be read: {error.strerror or error}") from error


def from_text(text: str, format: TextFormat, name: str) -> Raw:
    try:
        return Raw(text.encode(), format, name)
    except UnicodeEncodeError as error:
        raise InputError("text", f"has a lone surrogate at character {error.start}; it is not valid text") from None


def inside(folder: Path) -> Iterator[Path]:
    """Every file below a folder that may be a document, in order, without what is hidden. A file is its own folder."""
    if folder.is_file():
        yield folder
        return
    if not folder.is_dir():
        raise InputError(
            "path", f"{folder} is not a folder" if folder.exists() else f"there is no such file or folder: {folder}"
        )
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if name.startswith(".") or path.suffix.lower() not in FORMATS:
                continue
            # A symbolic link may lead outside the folder.
            if not path.is_symlink() or Path(folder).resolve() in path.resolve().parents:
                yield path


def _text(raw: Raw) -> str:
    encoding = next((name for bom, name in _BOMS.items() if raw.data.startswith(bom)), "utf-8")
    try:
        text = raw.data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError("path", f"{raw.name} is not {encoding} text, at byte {error.start:,}") from None
    if "\0" in text:
        raise InputError("path", f"{raw.name} is binary, and no text")
    return text


def _pdf(raw: Raw) -> Read:
    try:
        from pypdf import PdfReader
    except ImportError:
        raise _lacking(raw, "pypdf") from None
    _keep_from_stderr("pypdf")
    reader = PdfReader(BytesIO(raw.data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise InputError("path", f"{raw.name} is encrypted; save it without a password first")
    title = str((reader.metadata and reader.metadata.title) or "").strip()
    blocks = [
        block._replace(at=f"page {number}")
        for number, page in enumerate(reader.pages, 1)
        for block in plain(page.extract_text()).blocks
    ]
    if not blocks:
        raise InputError("path", f"{raw.name} has no text; is it a scan? Only text can be searched")
    return Read(title, blocks)


@cache
def _keep_from_stderr(logger: str) -> None:
    """Python prints what a package logs about damaged files on stderr, unless its logger has a handler."""
    import logging

    logging.getLogger(logger).addHandler(logging.NullHandler())


def _docx(raw: Raw) -> Read:
    try:
        from docx import Document
        from docx.table import Table
    except ImportError:
        raise _lacking(raw, "python-docx") from None
    blocks: list[TextBlock] = []
    document = Document(BytesIO(raw.data))
    styles: dict[str | None, str] = {}  # looking one up takes longer than reading its paragraph
    for number, part in enumerate(document.iter_inner_content(), 1):
        at = f"paragraph {number}"
        if isinstance(part, Table):
            rows = [[" ".join(cell.text.split()) for cell in row.cells] for row in part.rows]
            lines = [f"| {' | '.join(row)} |" for row in rows]
            lines.insert(1, f"|{'---|' * len(rows[0])}" if rows else "")
            blocks.append(TextBlock("table", "\n".join(lines), at))
        elif text := part.text.strip():
            key = part._p.style  # pyright: ignore[reportPrivateUsage]
            if key not in styles:
                styles[key] = (part.style.name if part.style is not None else "") or ""
            blocks.append(_paragraph(text, styles[key], at))
    heads = (block.text for block in blocks if block.kind == "heading" and block.level == 1)
    return Read(document.core_properties.title.strip() or next(heads, ""), blocks)


def _paragraph(text: str, style: str, at: str) -> TextBlock:
    if style == "Title":
        return TextBlock("heading", text, at, 1)
    name, _, level = style.rpartition(" ")
    if name == "Heading" and level.isdigit():
        return TextBlock("heading", text, at, int(level))
    if style.startswith("List"):
        return TextBlock("list", f"- {text}", at)
    return TextBlock("text", text, at)


def _lacking(raw: Raw, package: str) -> InputError:
    return InputError("path", f"{raw.name} needs {package}; run `pip install {package}`")


_READERS: dict[Format, Callable[[Raw], Read]] = {
    "md": lambda raw: markdown.read(_text(raw)),
    "txt": lambda raw: plain(_text(raw)),
    "html": lambda raw: html.read(_text(raw)),
    "pdf": _pdf,
    "docx": _docx,
}
