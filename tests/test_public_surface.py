"""What `import recollect` gives, and what it costs."""

import inspect
import json
import subprocess
import sys
from types import ModuleType

import pytest

import recollect
from recollect import AsyncMemory, Memory
from recollect.values import errors


def test_all_is_what_the_package_defines() -> None:
    defined = {
        name
        for name, value in vars(recollect).items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and getattr(value, "__module__", "").startswith("recollect")
    }
    assert defined <= set(recollect.__all__)
    assert recollect.__all__ == sorted(recollect.__all__)
    for name in recollect.__all__:
        assert getattr(recollect, name).__name__ == name


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Forget'"):
        _ = recollect.Forget


def test_every_error_is_public_under_one_root() -> None:
    defined = {name for name, value in vars(errors).items() if inspect.isclass(value)}
    assert defined <= set(recollect.__all__)
    for name in defined:
        error = getattr(recollect, name)
        assert issubclass(error, UserWarning if name.endswith("Warning") else recollect.RecollectError)
        assert error.__doc__
        assert name in (errors.__doc__ or "")


def test_errors_are_also_what_python_calls_them() -> None:
    assert issubclass(recollect.InputError, ValueError)
    assert issubclass(recollect.NotFoundError, LookupError)


def public_verbs(owner: type) -> set[str]:
    return {name for name, value in vars(owner).items() if not name.startswith("_") and inspect.isfunction(value)}


@pytest.mark.parametrize("verb", sorted(public_verbs(Memory)))
def test_a_verb_takes_the_same_arguments_and_says_the_same_when_it_is_awaited(verb: str) -> None:
    plain, awaited = getattr(Memory, verb), getattr(AsyncMemory, verb)
    assert inspect.signature(plain).parameters == inspect.signature(awaited).parameters
    assert plain.__doc__ == awaited.__doc__ or verb == "conversation"
    assert plain.__doc__
    assert inspect.iscoroutinefunction(awaited) is (verb not in ("at", "conversation"))


def loaded_by(statement: str) -> set[str]:
    script = f"import sys, json; {statement}; print(json.dumps(sorted(sys.modules)))"
    return set(json.loads(subprocess.check_output([sys.executable, "-c", script])))


def test_the_package_alone_imports_nothing_so_that_its_command_can_handle_interrupts_first() -> None:
    assert {name for name in loaded_by("import recollect") if name.startswith("recollect.")} == set()


def test_a_value_in_a_message_is_screened_whatever_is_imported() -> None:
    secret = "AKIA" + "Z7QX4MPL2RWT9KDN"
    script = f"from recollect.values.errors import NotFoundError; print(NotFoundError('no {secret}'))"
    assert secret not in subprocess.check_output([sys.executable, "-c", script], text=True)


def test_importing_recollect_imports_nothing_that_is_slow() -> None:
    modules = loaded_by("import recollect; recollect.Memory")
    unwanted = {"numpy", "asyncio", "rich", "click", "tomllib", "concurrent.futures", "tempfile", "recollect.cli"}
    assert "recollect.memory" in modules
    assert not modules & unwanted


def test_the_package_is_typed_and_has_a_version() -> None:
    from importlib.metadata import version
    from importlib.resources import files

    assert files("recollect").joinpath("py.typed").is_file()
    assert version("recollect") == recollect.__version__
