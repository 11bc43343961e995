"""SKILL.md files: read when the memory is made, and put before the model whole."""

from pathlib import Path

import pytest

from recollect import InputError, Memory, NotFoundError
from recollect.documents.skills import MAX_BYTES


def skill(folder: Path, text: str | bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_bytes(text.encode() if isinstance(text, str) else text)
    return folder / "SKILL.md"


def names(memory: Memory) -> list[str]:
    return [one.name for one in memory.skills]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "skills"


def memory(tmp_path: Path, *folders: Path) -> Memory:
    return Memory(tmp_path / "memory", skills=folders)


def test_without_a_folder_there_are_none(tmp_path: Path) -> None:
    assert list(Memory(tmp_path / "memory").skills) == []
    assert len(Memory(tmp_path / "memory", skills=[]).skills) == 0


def test_a_skill_is_named_by_its_front_matter_or_its_folder(tmp_path: Path, folder: Path) -> None:
    skill(folder / "cfo", "# Chief of finance\n\nNever pay twice.\n")
    skill(
        folder / "deep" / "er",
        "---\nname: 'binky'\ndescription: \"Does: research\"\nversion: 2\n---\n\nCite sources.\n",
    )
    with memory(tmp_path, folder) as made:
        cfo, binky = made.skills
        assert (cfo.name, cfo.description) == ("cfo", "Chief of finance")
        assert cfo.text == "# Chief of finance\n\nNever pay twice."
        assert (binky.name, binky.description, binky.text) == ("binky", "Does: research", "Cite sources.")
        assert Path(binky.path) == folder / "deep" / "er" / "SKILL.md"
        assert made.skills.get("cfo") is cfo


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("---\ndescription: >-\n  two\n  lines\n# a comment: none\nname: x\n---\nbody", "two lines"),
        ("---\r\ndescription: windows\r\n---\r\nbody\r\n", "windows"),
        ("\ufeff---\ndescription: marked\n---\nbody", "marked"),
        ("---\nno keys\n---\nbody", "body"),
        ("---\ndescription: never closed", "---"),
        ("----\ndescription: four\n---\nbody", "----"),
        ("###   Spaced  \nbody", "Spaced"),
    ],
)
def test_front_matter_in_many_forms(tmp_path: Path, folder: Path, text: str, description: str) -> None:
    skill(folder / "x", text)
    (one,) = memory(tmp_path, folder).skills
    assert (one.name, one.description) == ("x", description)
    assert "\r" not in one.text


def test_a_long_first_line_is_no_long_description(tmp_path: Path, folder: Path) -> None:
    skill(folder / "x", "word " * 1000)
    (one,) = memory(tmp_path, folder).skills
    assert len(one.description) == 200
    assert len(one.text) == 4999


def test_a_skill_as_large_as_the_limit_is_whole_and_a_larger_one_refused(tmp_path: Path, folder: Path) -> None:
    path = skill(folder / "x", "a" * MAX_BYTES)
    assert len(memory(tmp_path, folder).skills.get("x").text) == MAX_BYTES == 1_048_576
    skill(folder / "x", "a" * (MAX_BYTES + 1))
    with pytest.raises(InputError, match="over the limit of 1,048,576 bytes") as refused:
        memory(tmp_path, folder)
    assert refused.value.field == "skills"
    assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"caf\xe9 is latin-1", "is not UTF-8: byte 3"),
        (b"", "says nothing"),
        (b"---\nname: x\n---\n \n", "says nothing"),
        (b"---\nname: " + b"x" * 65 + b"\n---\nbody", "1 to 64 printable"),
        (b"---\nname: a\x07b\n---\nbody", "printable"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, folder: Path, text: bytes, problem: str) -> None:
    path = skill(folder / "x", text)
    with pytest.raises(InputError, match=problem) as refused:
        memory(tmp_path, folder)
    assert str(path) in str(refused.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, folder: Path) -> None:
    (folder / "x").mkdir(parents=True)
    (folder / "x" / "SKILL.md").symlink_to(folder / "nowhere")
    with pytest.raises(InputError, match=r"x/SKILL\.md cannot be read"):
        memory(tmp_path, folder)


def test_two_of_the_same_name_are_refused(tmp_path: Path, folder: Path) -> None:
    skill(folder / "a" / "cfo", "one")
    skill(folder / "b", "---\nname: cfo\n---\ntwo")
    with pytest.raises(InputError, match=r"b/SKILL\.md and .*cfo/SKILL\.md have the same name, cfo"):
        memory(tmp_path, folder)


@pytest.mark.parametrize("given", ["missing", "file", 7, [b"bytes"], {"a": 1}.items()])
def test_what_is_no_folder_is_refused_before_anything_is_made(tmp_path: Path, given: object) -> None:
    (tmp_path / "file").write_text("x")
    value = str(tmp_path / given) if isinstance(given, str) else given
    with pytest.raises(InputError) as refused:
        Memory(tmp_path / "memory", skills=value)  # type: ignore[arg-type]
    assert refused.value.field == "skills"
    assert not (tmp_path / "memory").exists()


def test_folders_may_overlap_and_link_in_circles(tmp_path: Path, folder: Path) -> None:
    skill(folder / "cfo", "one")
    (folder / "cfo" / "again").symlink_to(folder)
    made = memory(tmp_path, folder, folder / "cfo", folder)
    assert names(made) == ["cfo"]
    assert made.skills.get("cfo").for_all  # it lies directly in one of the folders


def test_other_files_are_not_skills(tmp_path: Path, folder: Path) -> None:
    skill(folder / "cfo", "one")
    (folder / "cfo" / "README.md").write_text("no skill")
    (folder / "skill.md").write_text("no skill")
    assert names(memory(tmp_path, folder)) == ["cfo"]


def texts(memory: Memory, **options: object) -> list[str]:
    made = memory.context([{"role": "user", "content": "hi"}], **options)  # type: ignore[arg-type]
    return [text for one in made.messages if one["role"] == "system" for text in one["content"].split("\n\n")]


def test_skills_are_joined_to_the_system_prompt(tmp_path: Path, folder: Path) -> None:
    skill(folder, "For everyone")
    made = Memory(tmp_path / "memory", skills=folder)
    asked = {"role": "user", "content": "hi"}
    told = made.context([{"role": "system", "content": "SYSTEM"}, asked])
    assert told.messages == [{"role": "system", "content": "SYSTEM\n\nFor everyone"}, asked]


@pytest.mark.parametrize("preset", ["inklings", "atlas", "aegis", "ledger"])
def test_the_documents_presets_put_skills_right_after_the_system_prompt(
    tmp_path: Path, folder: Path, preset: str
) -> None:
    skill(folder, "For everyone")
    skill(folder / "cfo", "Only for the cfo")
    made = Memory(tmp_path / "memory", preset=preset, skills=folder)
    told = made.at(agent="cfo").context([{"role": "system", "content": "SYSTEM"}, {"role": "user", "content": "hi"}])
    assert told.messages[0]["content"].startswith("SYSTEM")
    assert [one["content"] for one in told.messages[1:3]] == ["For everyone", "Only for the cfo"]
    assert made.context([{"role": "user", "content": "hi"}], system="S").system.endswith("For everyone")


def test_which_skills_apply(tmp_path: Path, folder: Path) -> None:
    skill(folder, "---\nname: house rules\n---\nFor everyone")
    skill(folder / "cfo", "money")
    skill(folder / "binky", "research")
    made = Memory(tmp_path / "memory", skills=folder)
    assert texts(made) == ["For everyone"]
    assert texts(made.at(agent="kelly")) == ["For everyone"]
    assert texts(made.at(agent="cfo")) == ["For everyone", "money"]
    assert texts(made.at(agent="CFO")) == ["For everyone"]
    assert texts(made.at(agent="cfo"), skills=["binky"]) == ["For everyone", "research"]
    assert texts(made, skills=["binky", "house rules", "cfo", "cfo"]) == ["For everyone", "research", "money"]


def test_an_unknown_skill_is_an_error_that_names_the_known_ones(tmp_path: Path, folder: Path) -> None:
    skill(folder / "cfo", "money")
    made = Memory(tmp_path / "memory", skills=folder)
    with pytest.raises(NotFoundError, match="no skill ceo; known: cfo"):
        texts(made, skills=["ceo"])
    with pytest.raises(NotFoundError, match="known: none"):
        texts(Memory(tmp_path / "memory"), skills=["ceo"])
    for wrong in ("cfo", [7], ["a\nb"], 3):
        with pytest.raises(InputError, match="skills"):
            texts(made, skills=wrong)
