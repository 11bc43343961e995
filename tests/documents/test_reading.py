"""Files as blocks, and blocks as passages: parted where the document is, and nothing is lost."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path

import pytest
from docx import Document

from recollect import InputError
from recollect.documents import html, markdown
from recollect.documents.blocks import TextBlock, plain
from recollect.documents.chunks import MOST, SIZE, WHOLE, cut
from recollect.documents.files import MAX_BYTES, inside, load
from recollect.documents.html_tags import bare_tags
from recollect.text.tokens import estimate


def shape(blocks: list[TextBlock]) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in blocks]


def test_markdown_is_read_by_its_structure() -> None:
    read = markdown.read(
        "# The `Guide` to [lynxes](x.md) #\n\nFirst line\nsecond line.\n\nUnder\n-----\n- one\n- two\n\n"
        "```python\n# no heading\n\nx = 1\n```\n| a | b |\n|---|:-:|\n| 1 | 2 |\n\n#hashtag\n###### Six\n"
    )
    assert read.title == "The Guide to lynxes"
    assert read.blocks == [
        TextBlock("heading", "The Guide to lynxes", "line 1", 1),
        TextBlock("text", "First line\nsecond line.", "line 3"),
        TextBlock("heading", "Under", "line 6", 2),
        TextBlock("list", "- one\n- two", "line 8"),
        TextBlock("code", "```python\n# no heading\n\nx = 1\n```", "line 11"),
        TextBlock("table", "| a | b |\n|---|:-:|\n| 1 | 2 |", "line 16"),
        TextBlock("text", "#hashtag", "line 20"),
        TextBlock("heading", "Six", "line 21", 6),
    ]


@pytest.mark.parametrize(
    ("text", "title", "kinds"),
    [
        ("---\ntitle: 'Of lynxes'\ndate: 1\n---\n# Other\nx", "Of lynxes", ["heading", "text"]),
        ("---\nno end", "", ["text"]),
        ("````\n```\n# not here\n```\n````\nx", "", ["code", "text"]),
        ("~~~\nnever closed\n# not here", "", ["code"]),
        ("- item\n---\nx", "", ["list"]),
        ("a | b\nno table", "", ["text"]),
        ("", "", []),
        ("# \n#\n", "", []),
    ],
)
def test_markdown_with_corners(text: str, title: str, kinds: list[str]) -> None:
    read = markdown.read(text)
    assert read.title == title
    assert [block.kind for block in read.blocks] == kinds


def test_plain_text_is_parted_by_blank_lines() -> None:
    assert plain("one\ntwo\n\n \nthree").blocks == [
        TextBlock("text", "one\ntwo", "line 1"),
        TextBlock("text", "three", "line 5"),
    ]


def test_html_is_read_by_its_structure() -> None:
    read = html.read(
        "<html><head><title>All &amp; more</title><style>p {}</style></head><body><nav><a>Home</a></nav>"
        "<h1>The\n guide</h1><p>Hello <b>dear</b>\nreader<p>Another<br>line<ul><li>one<li>two <i>x</i></ul>"
        "<h2>Code</h2><pre>x = 1\n  y = 2</pre><script>alert('no')</script>"
        "<table><tr><th>A<th>B</tr><tr><td>1<td><p>2</p></tr></table>tail<svg/>end</body>"
    )
    assert read.title == "All & more"
    assert shape(read.blocks) == [
        ("heading", "The guide"),
        ("text", "Hello dear reader"),
        ("text", "Another\nline"),
        ("list", "- one\n- two x"),
        ("heading", "Code"),
        ("code", "```\nx = 1\n  y = 2\n```"),
        ("table", "| A | B |\n|---|---|\n| 1 | 2 |"),
        ("text", "tailend"),
    ]


@pytest.mark.parametrize(
    "text",
    ["</div></script></table>", "<table><td>x", "<script>never closed", "<", "<!-- x", "", "<![foo[ x ]]>"],
)
def test_html_that_is_none_harms_nobody(text: str) -> None:
    assert len(html.read(text).blocks) <= 1


def test_a_passage_has_the_headings_that_lead_to_it() -> None:
    read = markdown.read("# Guide\nintro\n## Install\n### Linux\napt\n### Mac\nbrew\n## Use\nrun\n## Empty\n")
    assert [(chunk.trail, chunk.body) for chunk in cut("Guide", read.blocks)] == [
        (("Guide",), "intro"),
        (("Guide", "Install", "Linux"), "apt"),
        (("Guide", "Install", "Mac"), "brew"),
        (("Guide", "Use"), "run"),
        (("Guide", "Empty"), ""),
    ]
    assert cut("Guide", read.blocks)[1].text == "Guide › Install › Linux\n\napt"
    assert cut("Manual", read.blocks)[0].trail == ("Manual", "Guide")


WORDS = " ".join(f"word{number}" for number in range(3000))
SENTENCES = " ".join(f"The lynx number {number} sleeps." for number in range(400))


@pytest.mark.parametrize("text", [WORDS, SENTENCES, "x" * 20_000, "- " + SENTENCES.replace(". ", ".\n- "), "語" * 5000])
def test_what_is_too_long_is_parted_and_nothing_is_lost(text: str) -> None:
    chunks = cut("T", [TextBlock("text", text, "line 1")])
    assert len(chunks) > 1
    assert all(estimate(chunk.body) <= SIZE * 1.1 for chunk in chunks)
    assert re.sub(r"\s", "", "".join(chunk.body for chunk in chunks)) == re.sub(r"\s", "", text)


def test_sentences_stay_whole_where_they_fit() -> None:
    assert all(chunk.body.endswith("sleeps.") for chunk in cut("T", [TextBlock("text", SENTENCES)]))


def test_code_and_tables_stay_whole_where_they_fit() -> None:
    code = "```\n" + "\n".join(f"x{number} = {number}" for number in range(80)) + "\n```"
    assert SIZE < estimate(code) <= WHOLE
    assert [
        chunk.body
        for chunk in cut("T", [TextBlock("text", "before"), TextBlock("code", code), TextBlock("text", "after")])
    ] == [
        "before",
        code,
        "after",
    ]


def test_code_and_tables_that_are_parted_stay_code_and_tables() -> None:
    code = "```python\n" + "\n".join(f"value_{number} = {number}" for number in range(500)) + "\n```"
    parts = [chunk.body for chunk in cut("T", [TextBlock("code", code)])]
    assert len(parts) > 2
    assert all(part.startswith("```python\n") and part.endswith("\n```") for part in parts)
    table = "| name | value |\n|---|---|\n" + "\n".join(f"| row {number} | {number} |" for number in range(500))
    parts = [chunk.body for chunk in cut("T", [TextBlock("table", table)])]
    assert len(parts) > 2
    assert all(part.startswith("| name | value |\n|---|---|\n| row") for part in parts)
    assert sum(part.count("| row") for part in parts) == 500


def test_nothing_and_too_much_are_refused() -> None:
    with pytest.raises(InputError, match="text: has no text that could be searched"):
        cut("T", [])
    with pytest.raises(InputError, match="more than the limit of 5,000 passages"):
        cut("T", [TextBlock("heading", f"h{number}", "", 1) for number in range(MOST + 1)])


# Files


def pdf(*pages: str) -> bytes:
    """As small as a file can be that a reader takes."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>"]
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(pages)))
    objects += [f"<</Type/Pages/Count {len(pages)}/Kids[{kids}]>>".encode()]
    objects += [b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    for at, text in enumerate(pages):
        drawn = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode()
        page = f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {5 + 2 * at} 0 R"
        objects += [page.encode() + b"/Resources<</Font<</F1 3 0 R>>>>>>"]
        objects += [b"<</Length %d>>stream\n%s\nendstream" % (len(drawn), drawn)]
    data, places = b"%PDF-1.4\n", list[int]()
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj%s endobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(data))
    return data + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end


def test_a_pdf_is_read_page_by_page(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("The lynx sleeps", "The otter swims"))
    read = load(tmp_path / "a.pdf").read()
    assert [(block.text, block.at) for block in read.blocks] == [
        ("The lynx sleeps", "page 1"),
        ("The otter swims", "page 2"),
    ]
    (tmp_path / "scan.pdf").write_bytes(pdf(""))
    with pytest.raises(InputError, match=r"scan\.pdf has no text; is it a scan\?"):
        load(tmp_path / "scan.pdf").read()


def test_a_docx_is_read_by_its_styles(tmp_path: Path) -> None:
    document = Document()
    document.add_heading("Guide", 0)
    document.add_heading("Install", 1)
    document.add_paragraph("Run it.")
    document.add_paragraph("first", style="List Bullet")
    table = document.add_table(2, 2)
    for row in range(2):
        for column in range(2):
            table.cell(row, column).text = f"{row}{column}"
    made = BytesIO()
    document.save(made)
    (tmp_path / "a.docx").write_bytes(made.getvalue())
    read = load(tmp_path / "a.docx").read()
    assert shape(read.blocks) == [
        ("heading", "Guide"),
        ("heading", "Install"),
        ("text", "Run it."),
        ("list", "- first"),
        ("table", "| 00 | 01 |\n|---|---|\n| 10 | 11 |"),
    ]


@pytest.mark.parametrize(("name", "package"), [("a.pdf", "pypdf"), ("a.docx", "docx")])
def test_without_the_extra_it_says_what_to_install(
    name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InputError, match=r"path: a\.\w+ needs .*; run `pip install (?:pypdf|python-docx)`"):
        load(tmp_path / name).read()


@pytest.mark.parametrize("name", ["a.pdf", "a.docx"])
@pytest.mark.parametrize("data", [b"", b"%PDF-1.4 nonsense", b"PK\x03\x04 nonsense", b"\0" * 1000], ids=range(4))
def test_a_damaged_file_is_refused(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=r"is it damaged|has no text"):
        load(tmp_path / name).read()


def test_what_a_reader_did_not_foresee_is_a_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def surprise(text: str) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(html, "read", surprise)
    (tmp_path / "a.html").write_text("x")
    with pytest.raises(InputError, match=r"a\.html cannot be read as html; is it damaged\? \(RecursionError\)"):
        load(tmp_path / "a.html").read()


def test_files_that_are_no_documents_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.exe").write_bytes(b"x")
    (tmp_path / "a.txt").write_bytes(b"caf\xe9")
    (tmp_path / "b.txt").write_bytes(b"a\0b")
    (tmp_path / "c.txt").write_bytes("\ufeffcaf\xe9".encode("utf-16-le"))
    with (tmp_path / "big.md").open("wb") as big:
        big.truncate(MAX_BYTES + 1)
    (tmp_path / "folder.md").mkdir()
    for name, problem in {
        "a.exe": "is of no known format; known: .md",
        "none.md": "there is no file",
        "folder.md": "folder.md is not a file",
        "big.md": "over the limit of 67,108,864 bytes",
    }.items():
        with pytest.raises(InputError, match=problem):
            load(tmp_path / name)
    with pytest.raises(InputError, match=r"a\.txt is not utf-8 text, at byte 3"):
        load(tmp_path / "a.txt").read()
    with pytest.raises(InputError, match=r"b\.txt is binary"):
        load(tmp_path / "b.txt").read()
    assert load(tmp_path / "c.txt").read().blocks[0].text == "café"


def test_the_files_of_a_folder_in_order(tmp_path: Path) -> None:
    for name in ("b/2.md", "b/1.TXT", "a.md", ".git/x.md", ".hidden.md", "pic.png", "z.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    found = [path.relative_to(tmp_path).as_posix() for path in inside(tmp_path)]
    assert found == ["a.md", "z.html", "b/1.TXT", "b/2.md"]
    with pytest.raises(InputError, match="there is no such file or folder"):
        list(inside(tmp_path / "none"))


def test_links_that_lead_out_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "secret.txt").write_text("not meant to be read")
    (tmp_path / "docs" / "a.md").write_text("# A")
    (tmp_path / "docs" / "b.md").symlink_to(tmp_path / "docs" / "a.md")
    (tmp_path / "docs" / "c.txt").symlink_to(tmp_path / "secret.txt")
    assert [path.name for path in inside(tmp_path / "docs")] == ["a.md", "b.md"]


HOSTILE = {
    "open tags": "<a " * 4000,
    "open quotes": "<a b='" * 2000,
    "both quotes": "<a b='c\"" * 2000 + ">",
    "open comments": "<!--" * 3000,
    "declarations": "<![CDATA[" * 2000,
    "instructions": "<?x" * 4000,
    "signs": "<" * 12_000,
    "ends": "</" * 6000 + "</a" * 3000,
    "scripts": "<script>" * 1500,
    "script in script": "<script><!--<script>" * 600 + "</scrip" * 1000,
    "items": "<li>a" * 2500,
    "hidden": "<svg>" * 1500 + "</nav>" * 1500,
    "tables": "<table><tr><td>" * 800,
    "long names": "<" + "a" * 12_000 + ">" + "<a<" * 3000,
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_html_takes_work_in_proportion_to_its_length(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HOSTILE[case]
    letters: list[int] = []
    trimmed = getattr(html, "_trimmed")  # noqa: B009
    monkeypatch.setattr(html, "_trimmed", lambda joined: letters.append(len(joined)) or trimmed(joined))
    html.read(text)
    assert sum(letters) <= 4 * len(text)
    # All that the parser of the standard library sees is closed: what is not, it looks for to the end, each time.
    cleaned = bare_tags(text)
    assert len(cleaned) <= 4 * len(text)
    assert re.fullmatch(r"(?:[^<]|</?[A-Za-z][\w:-]{0,31}\n*/?>|<!--\n*-->)*+", cleaned)


def test_html_keeps_its_text_and_lines_without_attributes() -> None:
    text = (
        '<p class="a>b"\n id=\'<x>\'>1 < 2 &amp; 3<img src="data:,>"/></p>\n<!-- a\n <p>no</p> -->'
        "<script>if (a<b) '</p>'\n</SCRIPT ><svg/><P\n>Last<"
    )
    assert html.read(text).blocks == [TextBlock("text", "1 < 2 & 3", "line 2"), TextBlock("text", "Last<", "line 6")]
