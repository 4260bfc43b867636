"""What is in the image: packages of Debian and of Python, and of ours the modules that the program imports, no others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from cluster.project import ROOT

START = "controllers.program.__main__"
PYTHON = "3.11"
USER = 65532
"""As the images that call themselves distroless have it: nobody else on a host."""
DEBIAN = (
    "ca-certificates",
    "libbz2-1.0",
    "libc6",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libssl3",
    "libuuid1",
    "media-types",
    "python3.11-minimal",
    "zlib1g",
)
"""Python and the libraries that it loads; the modules of its standard library that want others (curses, sqlite3, ...) stay unused."""
PYTHON_PACKAGES = ("kubernetes", "ldap3", "pydantic", "pydantic-core", "PyYAML", "urllib3")
"""What the program imports itself; what these need comes with them. A test compares with the imports."""
LEFT_OUT = ("aiohttp",)
"""Of kubernetes' asynchronous client, which nothing here loads."""


def modules(start: str = START, root: Path = ROOT) -> tuple[Path, ...]:
    """Files of ours that `start` imports, and what they import: those at the top of modules, which all are loaded."""
    found: set[Path] = set()
    waiting = [start]
    while waiting:
        for file in _files(waiting.pop(), root):
            if file not in found:
                found.add(file)
                waiting += imported(file)
    return tuple(sorted(found))


def data(files: Iterable[Path]) -> tuple[Path, ...]:
    """What lies beside modules and is read by them: all that is no module, in the folders of packages that have a module in the image."""
    return tuple(
        sorted(
            path
            for folder in {file.parent for file in files}
            for path in folder.iterdir()
            if path.suffix in (".yaml", ".json")
        )
    )


def imported(file: Path) -> Iterator[str]:
    """Dotted names that a module imports where it is loaded: not in functions, and not for types alone."""
    yield from _imports(ast.parse(file.read_text(encoding="utf-8")).body)


def _imports(body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ClassDef):
            yield from _imports(node.body)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from _imports([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _imports([*node.body, *node.orelse, *node.finalbody])


def _files(name: str, root: Path) -> Iterator[Path]:
    """A module of ours and the packages that it is in; nothing of a name that is none."""
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
    """The lines of requirements.lock, with their hashes, for `PYTHON_PACKAGES` and all that these need. LookupError where it lacks one.

    Who needs whom is what uv wrote below each package: "# via".
    """
    blocks = [block for block in re.split(r"\n(?=\S)", lock) if "==" in block.split("\n")[0]]
    pinned = {_plain(block.split("==")[0]): block for block in blocks}
    needs: dict[str, set[str]] = {}
    for name, block in pinned.items():
        for parent in re.findall(r"^    #(?: via)?\s+(\S+)$", block, re.MULTILINE):
            needs.setdefault(parent, set()).add(name)
    wanted: set[str] = set()
    waiting = [_plain(name) for name in PYTHON_PACKAGES]
    while waiting:
        name = waiting.pop()
        if name not in wanted and name not in LEFT_OUT:
            wanted.add(name)
            waiting += needs.get(name, ())
    if missing := sorted(wanted - pinned.keys()):
        raise LookupError(f"requirements.lock has no {', '.join(missing)}: run `make lock`")
    return "".join(f"{pinned[name].rstrip()}\n" for name in sorted(wanted))


def _plain(name: str) -> str:
    """As registries compare names (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()
