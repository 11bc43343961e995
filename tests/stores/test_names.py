"""Ids as the world has them are names everywhere, and folders that no two names share and none leads out of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.stores import STORES, located

from recollect import Memory
from recollect.stores import paths
from recollect.stores.paths import existing_or_coded, folder_name, names_in

IDS = [
    "google-oauth2|103547991597142817347",
    "auth0|5f7c8ec7c33c6c004bbafe82",
    "C1:2",
    "C024BE91L:1355517523.000005",
    "+351912345678",
    "ann@example.com",
    "42",
    "user/42",
    "../up",
    "..",
    ".",
    "/etc",
    "a\\b",
    "~",
    "-rf",
    ".hidden",
    "a b",
    "%2e%2e",
    "=A",
    "Shop",
    "shop",
    "João",
    "田中",
    "' or 1=1 --",
    "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK",
]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("part", ["tenant", "workspace", "agent", "account", "channel", "conversation"])
def test_an_id_of_the_world_is_a_name(tmp_path: Path, store: str, part: str) -> None:
    url = located(store, tmp_path / "in" / "m")
    around = {*tmp_path.iterdir()}
    with Memory(url) as memory:
        stored = {name: memory.at(**{part: name}).remember(f"note {n}").id for n, name in enumerate(IDS)}
    with Memory(url) as memory:
        for name, ident in stored.items():
            found = memory.at(**{part: name}).get(ident)
            assert getattr(found.address, part) == name
        if part == "workspace":
            assert {*memory.workspaces()} == {*IDS}
            gone = memory.at(workspace="user/42")
            gone.forget(workspace="user/42")
            assert {*memory.workspaces()} == {*IDS} - {"user/42"}
    assert {*tmp_path.iterdir()} - around <= {tmp_path / "in"}
    inside = (tmp_path / "in").rglob("*")
    assert all(tmp_path / "in" / "m" in path.parents or path == tmp_path / "in" / "m" for path in inside)


names = st.text(st.characters(exclude_categories=("C", "Z")) | st.just(" "), min_size=1, max_size=16).filter(
    lambda name: name.strip() == name
)


@given(names, names)
def test_no_two_names_share_a_folder(one: str, two: str) -> None:
    folder = folder_name(one)
    assert folder not in (".", "..")
    assert folder[0] not in ".-"
    assert set(folder) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.@+-=%")
    assert len(folder_name(one * 64)[: 64 * 3]) <= 255
    assert (folder.lower() == folder_name(two).lower()) == (one == two), "also where capitals are not told apart"


@given(names)
def test_a_folder_tells_its_name(name: str) -> None:
    assert paths._name_of(folder_name(name)) == name


def test_folders_that_are_there_keep_their_names(tmp_path: Path) -> None:
    for name in ("shop", "a.b", "ann@x", "x+y", "under_score", "9-9"):
        assert folder_name(name) == name
    assert folder_name("Shop") == "=Shop"
    for folder in ("Shop", "=Other", "foreign%zz", "a=b"):
        (tmp_path / folder).mkdir()
    assert {*names_in(tmp_path)} == {"Shop", "Other", "foreign%zz", "a=b"}


def test_capitals_where_they_are_not_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = os.fspath(tmp_path)
    assert existing_or_coded(parent, "Shop") == "Shop"
    monkeypatch.setattr(paths, "_tells_case", lambda folder: False)
    assert existing_or_coded(parent, "Shop") == "=Shop"
    (tmp_path / "Shop").mkdir()
    assert existing_or_coded(parent, "Shop") == "Shop"
    (tmp_path / "=Old").mkdir()
    monkeypatch.setattr(paths, "_tells_case", lambda folder: True)
    assert existing_or_coded(parent, "Old") == "=Old"
