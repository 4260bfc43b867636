"""The image's contents: Debian packages, Python packages, and only those of our modules that the program imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cluster.project import TOOLKIT

STARTS = ("controllers.program.__main__", "controllers.web.program")
"""Where the program begins; the second only for pages, so that the other controllers don't load it."""
PYTHON = "3.13"
USER = 65532
"""The UID and GID of distroless images; nothing else on a host uses it."""
DEBIAN = (
    "ca-certificates",
    "libbz2-1.0",
    "libc6",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libpython3.13-minimal",
    "libpython3.13-stdlib",
    "libssl3t64",
    "libuuid1",
    "libzstd1",
    "media-types",
    "python3.13-minimal",
    "zlib1g",
)
"""Python and the libraries that it loads. Modules of its standard library that need others (curses, sqlite3, ...) are not used."""
PYTHON_PACKAGES = (
    *("arro3-core", "arro3-io", "Jinja2", "kubernetes", "ldap3", "MarkupSafe", "obstore"),
    *("prometheus-client", "pydantic", "pydantic-core", "PyYAML", "starlette", "urllib3", "uvicorn"),
)
"""What the program imports directly; their dependencies are added. A test compares this list with the imports."""
LEFT_OUT = ("aiohttp", "aiohttp-retry")
"""Needed only by kubernetes' asynchronous client, which nothing here loads."""
PAGES = ("static", "templates")
"""Folders next to modules that make pages."""


def modules(starts: Sequence[str] = STARTS, root: Path = TOOLKIT) -> tuple[Path, ...]:
    """Return our files that `starts` import, directly or indirectly. Only imports at the top of modules count: those are all loaded."""
    files: set[Path] = set()
    waiting = list(starts)
    while waiting:
        for file in _files(waiting.pop(), root):
            if file not in files:
                files.add(file)
                waiting += imported(file, root)
    return tuple(sorted(files))


def data(files: Iterable[Path]) -> tuple[Path, ...]:
    """Return the data files that modules may read: YAML and JSON next to a module that is in the image, and what pages consist of."""
    folders = {file.parent for file in files}
    beside = (path for folder in folders for path in folder.iterdir() if path.suffix in (".yaml", ".json"))
    pages = (path for folder in folders for name in PAGES for path in (folder / name).glob("[!_]*.*"))
    return tuple(sorted({*beside, *pages}))


def imported(file: Path, root: Path = TOOLKIT) -> Iterator[str]:
    """Yield the dotted names that a module imports when it is loaded: not those in functions, and not those for types only."""
    package = file.relative_to(root).with_suffix("").parts[:-1]
    yield from _imports(ast.parse(file.read_text(encoding="utf-8")).body, package)


def _imports(body: Iterable[ast.stmt], package: tuple[str, ...]) -> Iterator[str]:
    """Yield the names of these statements. package: that of their module, for relative imports."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            around = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*around, *((node.module,) if node.module else ())))
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ClassDef):
            yield from _imports(node.body, package)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from _imports([*node.body, *node.orelse], package)
        elif isinstance(node, ast.Try):
            yield from _imports([*node.body, *node.orelse, *node.finalbody], package)


def _files(name: str, root: Path) -> Iterator[Path]:
    """Yield the file of our module and of the packages around it; nothing for a name that isn't ours."""
    parts = name.split(".")
    path = root.joinpath(*parts)
    module = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not module.is_file():
        return
    yield module
    for depth in range(1, len(parts)):
        package = root.joinpath(*parts[:depth], "__init__.py")
        if package.is_file():
            yield package


def requirements(lock: str) -> str:
    """Return the lines of requirements.lock, with their hashes, for `PYTHON_PACKAGES` and their dependencies.

    Dependencies are read from the "# via" lines that uv writes below each package. Errors: raises LookupError if one is missing.
    """
    blocks = [block for block in re.split(r"\n(?=\S)", lock) if "==" in block.split("\n")[0]]
    pinned = {_plain(block.split("==")[0]): block for block in blocks}
    needs: dict[str, set[str]] = {}
    for name, block in pinned.items():
        for parent in re.findall(r"^    #(?: via)?\s+(\S+)$", block, re.MULTILINE):
            needs.setdefault(parent, set()).add(name)
    selected: set[str] = set()
    waiting = [_plain(name) for name in PYTHON_PACKAGES]
    while waiting:
        name = waiting.pop()
        if name not in selected and name not in LEFT_OUT:
            selected.add(name)
            waiting += needs.get(name, ())
    if missing := sorted(selected - pinned.keys()):
        raise LookupError(f"requirements.lock lacks {', '.join(missing)}: run `make lock`")
    return "".join(f"{pinned[name].rstrip()}\n" for name in sorted(selected))


def _plain(name: str) -> str:
    """Normalise a name as registries compare names (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()
