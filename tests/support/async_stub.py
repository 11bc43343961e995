"""Makes `aio.pyi`, the types of AsyncMemory, from the source of Memory and its facets."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from recollect.operations import OWNERS, former_names_of, operations_of, owner_class

_WIDTH = 120
_TALK = "recollect.facets.conversations.talk"
_HEAD = '''"""The types of AsyncMemory. Made from the operations of Memory by `make docs`; do not edit."""

'''


class _Module:
    """The source of a module: its classes, and where each of its names comes from."""

    def __init__(self, name: str) -> None:
        self.name = name
        file = import_module(name).__file__
        assert file is not None
        self.tree = ast.parse(Path(file).read_text("utf-8"))
        self.origins = dict(self._origins(self.tree.body))

    def _origins(self, body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
        for node in body:
            if isinstance(node, ast.ImportFrom):
                yield from ((alias.asname or alias.name, f"{node.module}:{alias.name}") for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((alias.name, alias.name) for alias in node.names)
            elif isinstance(node, ast.If):
                yield from self._origins(node.body)
            elif isinstance(node, ast.ClassDef):
                yield node.name, f"{self.name}:{node.name}"
            elif isinstance(node, ast.Assign):
                yield from ((t.id, f"{self.name}:{t.id}") for t in node.targets if isinstance(t, ast.Name))

    def method(self, kind: str, name: str) -> ast.FunctionDef:
        (owner,) = (node for node in self.tree.body if isinstance(node, ast.ClassDef) and node.name == kind)
        return next(node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == name)


class _Imports:
    """The names that the stub needs. Two modules may have the same name for two things: the second gets another."""

    def __init__(self) -> None:
        self._names = {
            "Address": "recollect.values.record:Address",
            "Memory": "recollect.memory:Memory",
            "Self": "typing:Self",
            "Skills": "recollect.documents.skills:Skills",
            "TracebackType": "types:TracebackType",
        }

    def rename(self, node: ast.AST, module: _Module) -> None:
        """Gives every name in an annotation or a default the name that the stub has for it."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in module.origins:
                part.id = self._name(part.id, module.origins[part.id])

    def _name(self, name: str, origin: str) -> str:
        while self._names.setdefault(name, origin) != origin:
            name += "_"
        return name

    def lines(self) -> Iterator[str]:
        plain = sorted(origin for origin in self._names.values() if ":" not in origin)
        yield from (f"import {origin}" for origin in plain)
        by_module: dict[str, list[str]] = {}
        for name, origin in self._names.items():
            module, colon, original = origin.partition(":")
            if colon:
                by_module.setdefault(module, []).append(original if original == name else f"{original} as {name}")
        for module, names in sorted(by_module.items()):
            line = f"from {module} import {', '.join(sorted(names))}"
            wrapped = "".join(f"    {name},\n" for name in sorted(names))
            yield line if len(line) <= _WIDTH else f"from {module} import (\n{wrapped})"


class _Stub:
    def __init__(self) -> None:
        self._imports = _Imports()
        self._modules: dict[str, _Module] = {}

    def text(self) -> str:
        classes = [self._facet(owner) for owner in sorted(filter(None, OWNERS), key=lambda name: -name.count("."))]
        classes += [self._talk(), self._memory()]
        return _HEAD + "\n".join([*self._imports.lines(), "", ""]) + "\n\n".join(classes)

    def _module(self, name: str) -> _Module:
        if name not in self._modules:
            self._modules[name] = _Module(name)
        return self._modules[name]

    def _facet(self, owner: str) -> str:
        name = f"Async{owner_class(owner).__name__}"
        doc = (owner_class(owner).__doc__ or "").partition("\n")[0]
        return "\n".join([f"class {name}:", f'    """{doc}"""', "", *self._properties(owner), *self._verbs(owner)])

    def _properties(self, owner: str) -> Iterator[str]:
        for name in OWNERS:
            above, _, short = name.rpartition(".")
            if name and above == owner:
                yield from ("    @property", f"    def {short}(self) -> Async{owner_class(name).__name__}: ...")

    def _verbs(self, owner: str) -> Iterator[str]:
        kind = owner_class(owner)
        for operation in operations_of(owner).values():
            yield self._method(kind.__module__, kind.__name__, operation.verb)
        for former, function in former_names_of(owner).items():
            yield self._method(kind.__module__, kind.__name__, function.__wrapped__.__name__, former)

    def _method(self, module_name: str, kind: str, verb: str, name: str = "", head: str = "async def") -> str:
        module = self._module(module_name)
        method = module.method(kind, verb)
        gives = "None" if method.returns is None else ast.unparse(method.returns)
        if gives == "Talk":
            method.returns, gives = None, "AsyncTalk"
        for node in (method.args, method.returns):
            if node is not None:
                self._imports.rename(node, module)
        gives = gives if method.returns is None else ast.unparse(method.returns)
        doc = ast.get_docstring(method)
        line = f"    {head} {name or verb}({ast.unparse(method.args)}) -> {gives}:"
        if len(line) > _WIDTH:
            line = f"    {head} {name or verb}(\n{_wrapped(method.args)}    ) -> {gives}:"
        return f"{line} ..." if doc is None else f"{line}\n{textwrap.indent(_quoted(doc), ' ' * 8)}\n        ..."

    def _talk(self) -> str:
        verbs = [self._method(_TALK, "Talk", verb) for verb in ("say", "observe", "end")]
        return "\n".join([_TALK_CLASS, *verbs])

    def _memory(self) -> str:
        made = self._method("recollect.memory", "Memory", "__init__", head="def")
        made = made.replace("store: str | os.PathLike[str] | Store | None", _OWN_STORE)
        others = [self._method("recollect.memory", "Memory", verb, head="def") for verb in ("conversation", "at")]
        close = self._method("recollect.memory", "Memory", "close")
        return "\n".join([_MEMORY_CLASS, made, *self._properties(""), *others, *self._verbs(""), close]) + "\n"


_OWN_STORE = "store: str | os.PathLike[str] | Store | Memory | None"
_EXIT = "self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None"
_TALK_CLASS = f'''class AsyncTalk:
    """A conversation that is going on, awaited: `async with memory.conversation("title") as talk:`."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__({_EXIT}) -> None: ...
    @property
    def conversation(self) -> Conversation: ...
    @property
    def memory(self) -> AsyncMemory: ...
    async def orientation(self) -> OrientationDocument:
        """The orientation about the title. It is read from the disk, so it is awaited."""
        ...'''
_MEMORY_CLASS = f'''class AsyncMemory:
    """The same verbs, awaited. Takes what `Memory` takes, or a Memory, which has its settings already."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__({_EXIT}) -> None: ...
    @property
    def memory(self) -> Memory:
        """The Memory that it is made from."""
        ...
    @property
    def address(self) -> Address: ...
    @property
    def preset(self) -> Preset: ...
    @property
    def unsaved(self) -> int:
        """Writes that are in memory only, because the disk refuses them; of a server, as of its last answer."""
        ...
    @property
    def skills(self) -> Skills:
        """The skills that were read from SKILL.md files when this memory was made."""
        ...'''


def _wrapped(arguments: ast.arguments) -> str:
    """One argument a line."""
    plain = [*arguments.args]
    defaults: list[ast.expr | None] = [*[None] * (len(plain) - len(arguments.defaults)), *arguments.defaults]
    lines = [_argument(arg, default) for arg, default in zip(plain, defaults, strict=True)]
    if arguments.kwonlyargs:
        lines.append("*")
        lines += [
            _argument(arg, default) for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        ]
    if arguments.kwarg:
        lines.append(f"**{_argument(arguments.kwarg, None)}")
    return "".join(f"        {line},\n" for line in lines)


def _argument(arg: ast.arg, default: ast.expr | None) -> str:
    hint = f": {ast.unparse(arg.annotation)}" if arg.annotation else ""
    return f"{arg.arg}{hint}" + (f" = {ast.unparse(default)}" if default is not None else "")


def _quoted(doc: str) -> str:
    return f'"""{doc}\n"""' if "\n" in doc else f'"""{doc}"""'


def async_stub() -> str:
    return _Stub().text()
