from importlib.resources import files
from pathlib import Path

import pytest

from recollect import presets
from recollect.policies.decay import HalfLife, NoDecay, PerTier, Weekly
from recollect.policies.ranking import Calibrated, Fusion, Oldest, Overlap, Product, WeightedSum
from recollect.presets import Preset, load, names
from recollect.values.errors import PresetError


def write(folder: Path, text: str, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def refusal(folder: Path, text: str) -> PresetError:
    with pytest.raises(PresetError) as caught:
        load(write(folder, text))
    return caught.value


def test_names_are_the_files_with_the_default_first() -> None:
    found = {path.name.removesuffix(".toml") for path in files(presets).iterdir() if path.name.endswith(".toml")}
    assert set(names()) == found
    assert names()[0] == "recollect"


@pytest.mark.parametrize("name", names())
def test_a_preset_is_called_like_its_file_says_what_it_is_and_is_loaded_once(name: str) -> None:
    preset = load(name)
    assert preset.name == name
    assert preset.description
    assert load(name) is preset


def test_the_defaults_in_python_are_the_preset_recollect() -> None:
    preset = load("recollect")
    assert preset == Preset(name="recollect", description=preset.description)


@pytest.mark.parametrize("name", names())
def test_secrets_are_screened_everywhere(name: str) -> None:
    assert load(name).secrets.enabled


@pytest.mark.parametrize(
    ("name", "kind", "decay", "ranking"),
    [
        ("recollect", "fact", NoDecay, Calibrated),
        ("atlas", "conversation", Weekly, WeightedSum),
        ("aegis", "fact", NoDecay, Overlap),
        ("inklings", "fact", PerTier, Fusion),
        ("ledger", "conversation", HalfLife, Product),
        ("journal", "journal", NoDecay, Oldest),
    ],
)
def test_what_each_preset_is_made_of(name: str, kind: str, decay: type, ranking: type) -> None:
    preset = load(name)
    assert preset.remember.kind == kind
    assert (type(preset.decay), type(preset.ranking)) == (decay, ranking)


@pytest.mark.clause("ATL-10")
def test_atlas_ranks_by_the_documents_weights() -> None:
    assert load("atlas").ranking == WeightedSum(
        similarity=0.5,
        recency=0.2,
        importance=0.2,
        source=0.1,
        source_priority={"memory": 1.0, "audit": 0.8, "workflow": 0.6, "knowledge": 0.5},
    )


@pytest.mark.clause("ATL-13")
def test_atlas_numbers() -> None:
    atlas = load("atlas")
    assert (atlas.recall.limit, atlas.retention.quota) == (5, 10_000)


def test_aegis_numbers() -> None:
    aegis = load("aegis")
    assert (aegis.remember.max_chars, aegis.remember.max_tags) == (500, 5)
    assert (aegis.retention.quota, aegis.retention.quota_order) == (500, "oldest")
    assert aegis.secrets.literal
    assert aegis.importance.use == ()


@pytest.mark.clause("INK-04")
def test_inklings_numbers(tmp_path: Path) -> None:
    inklings = load("inklings")
    assert inklings.decay == PerTier(rates="builtin")
    assert inklings.ranking == Fusion(k=60)
    assert (inklings.remember.lifetime, inklings.retention.quota) == ("short_term", 10_000)
    table = load(write(tmp_path, 'extends = "inklings"\n[decay]\nrates = "table"'))
    assert table.decay == PerTier(rates="table")


@pytest.mark.clause("LED-09")
def test_ledger_numbers() -> None:
    assert load("ledger").decay == HalfLife(
        hours={"conversation": 168, "decision": 720, "finding": 336}, default=168, never=("preference",), floor=0.1
    )


def test_journal_numbers() -> None:
    journal = load("journal")
    assert (journal.remember.max_chars, journal.retention.window_days) == (10_000, {"journal": 7})


@pytest.mark.parametrize(("limit", "fetched"), [(None, 20), (5, 20), (10, 20), (11, 22), (100, 200)])
def test_recall_asks_for_more_candidates_than_it_returns(limit: int | None, fetched: int) -> None:
    assert load("recollect").recall.fetch(limit) == fetched


def test_a_file_holds_only_what_differs(tmp_path: Path) -> None:
    mine = load(write(tmp_path, 'extends = "atlas"\n[recall]\nlimit = 7\n[retention.ttl_days]\ntask = 1'))
    atlas = load("atlas")
    assert (mine.name, mine.recall.limit, mine.recall.candidates) == ("mine", 7, 10)
    assert mine.retention.ttl_days == {**atlas.retention.ttl_days, "task": 1}
    assert mine.decay == atlas.decay


def test_a_file_that_extends_nothing_extends_the_default(tmp_path: Path) -> None:
    mine = load(str(write(tmp_path, "[ranking]\nmeaning = 0.5")))
    assert mine.ranking == Calibrated(meaning=0.5)
    assert mine.remember == load("recollect").remember


def test_another_curve_brings_none_of_the_old_ones_keys(tmp_path: Path) -> None:
    mine = load(write(tmp_path, 'extends = "ledger"\n[decay]\ncurve = "weekly"'))
    assert mine.decay == Weekly()


def test_files_may_extend_files_beside_them(tmp_path: Path) -> None:
    write(tmp_path, 'extends = "journal"\n[recall]\nlimit = 3\ncandidates = 9', "base.toml")
    mine = load(write(tmp_path, 'extends = "base.toml"\n[recall]\nlimit = 4'))
    assert (mine.recall.limit, mine.recall.candidates, mine.remember.kind) == (4, 9, "journal")


def test_a_circle_of_files_is_refused(tmp_path: Path) -> None:
    write(tmp_path, 'extends = "mine.toml"', "base.toml")
    assert refusal(tmp_path, 'extends = "base.toml"').field == "extends"


def test_a_file_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    path = write(tmp_path, "[recall]\nlimit = 3")
    assert load(path).recall.limit == 3
    write(tmp_path, "[recall]\nlimit = 4")
    assert load(path).recall.limit == 4


@pytest.mark.parametrize(
    ("text", "field", "said"),
    [
        ("decai = 1", "decai", "did you mean `decay`?"),
        ("[recall]\nlimt = 1", "recall.limt", "did you mean `limit`?"),
        ('[decay]\ncurve = "half_life"\nflor = 1', "decay.flor", "did you mean `floor`?"),
        ('[decay]\ncurve = "half_life"\nzzz = 1', "decay.zzz", "the keys here are curve, hours, default, never, floor"),
        ('[[importance.rules]]\nname = "x"\npatern = "x"', "importance.rules.0.patern", "did you mean `pattern`?"),
        ('[[importance.rules]]\npattern = "x"', "importance.rules.0.name", "missing"),
        ('[[importance.rules]]\nname = "odd"\npattern = "("', "importance.rules.odd.pattern", "regular expression"),
        ('[[secrets.rules]]\nname = "odd"\npattern = "("', "secrets.rules.odd.pattern", "regular expression"),
        ('[secrets]\nallow = ["jwtt"]', "secrets.allow", "`jwtt`"),
        ('[decay]\ncurve = "weakly"', "decay.curve", "did you mean `weekly`?"),
        ('[ranking]\nformula = "fusoin"', "ranking.formula", "did you mean `fusion`?"),
        ('[importance]\nuse = ["klingon"]', "importance.use.0", "english"),
        ('[decay]\ncurve = "per_tier"\nrates = "tabel"', "decay.rates", "did you mean `table`?"),
        ('[decay]\ncurve = "per_tier"\n[decay.rates]\nacount = 0.9', "decay.rates", "did you mean `account`?"),
        ('[decay]\ncurve = "per_tier"\n[decay.rates]\naccount = 2', "decay.rates.account", "<= 1.0"),
        ('[decay]\ncurve = "weekly"\nrate = 1.5', "decay.rate", "<= 1.0"),
        ('[decay]\ncurve = "weekly"\nrate = nan', "decay.rate", "> 0.0"),
        ('[decay]\ncurve = "half_life"\n[decay.hours]\na = 2\nb = "x"', "decay.hours.b", "got `str`"),
        ("[retention.ttl_days]\ntask = -1", "retention.ttl_days.task", "> 0.0"),
        ("[retention.ttl_days]\ntask = inf", "retention.ttl_days.task", "<= 36525"),
        ("[retention]\nquota = 0", "retention.quota", ">= 1"),
        ('[recall]\nlimit = "many"', "recall.limit", "got `str`"),
        ("decay = 3", "decay", "got `int`"),
        ("extends = 3", "extends", "name of a preset"),
        ('extends = "atlass"', "preset", "did you mean `atlas`?"),
        ('extends = "gone.toml"', "preset", "there is no file"),
        ("[recall]\nlimit = =", "preset", "line 2"),
    ],
)
def test_a_mistake_is_told_by_the_key_and_what_was_meant(tmp_path: Path, text: str, field: str, said: str) -> None:
    error = refusal(tmp_path, text)
    assert error.field == field
    assert said in str(error)


def test_the_file_is_named_too(tmp_path: Path) -> None:
    assert "mine.toml" in str(refusal(tmp_path, "decai = 1"))
    assert "mine.toml" in str(refusal(tmp_path, "decay = 1"))
    assert "mine.toml" in str(refusal(tmp_path, "["))


@pytest.mark.parametrize("name", ["atlass", "", "Atlas", ".."])
def test_an_unknown_name_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(PresetError, match="recollect, atlas, aegis, inklings, ledger, journal"):
        load(name)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PresetError, match="there is no file"):
        load(tmp_path / "gone.toml")
    with pytest.raises(PresetError, match="cannot read"):
        load(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'name = "\xff"')
    with pytest.raises(PresetError, match="not UTF-8"):
        load(tmp_path / "latin.toml")
