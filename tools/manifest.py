"""tools/programs.toml and its go.mod files: what is built, from which pinned version, and how."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools import cache

TOOLS = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Module:
    """One folder of tools/ with its go.mod.

    `seconds`: of a cold build on 2 cores. `version`: without a v.
    `programs`: name -> Go package; names end with @ and the version if another module builds programs with the same names.
    `tests`: programs that are tests of their package. `releases`: name -> the project's file, as host/path or
    host/path#member of that archive. `files`: name -> path in the module `pin`, used unchanged (tools/files.py).
    `adds`: path in the module `pin` -> text, of files that its programs embed and only its releases have (tools/added.py).
    `unasked`: false if it is built only on request.
    """

    name: str
    version: str
    go: tuple[int, ...]
    seconds: int
    programs: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict)
    releases: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    debian: tuple[str, ...] = ()
    cgo: bool = False
    static: bool = False
    files: Mapping[str, str] = field(default_factory=dict)
    adds: Mapping[str, str] = field(default_factory=dict)
    pin: str = ""
    unasked: bool = True
    tests: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return TOOLS / self.name

    def linker_flags(self) -> str:
        """Return the value of go build's -ldflags."""
        flags = ["-s", "-w", *(f"-X {name}={value}" for name, value in self.variables.items())]
        if self.static:
            flags.append("-extldflags -static")
        return " ".join(flags)

    def key(self, program: str, go_version: str, architecture: str) -> str:
        """Return the key of a built program: 16 hex digits over everything that its bytes depend on."""
        options = [self.programs[program], self.linker_flags(), list(self.tags), self.cgo]
        options += ["test"] if program in self.tests else []
        options += [sorted(self.adds.items())] if self.adds else []
        sources = [(self.folder / name).read_bytes() for name in ("go.mod", "go.sum")]
        return cache.digest(*sources, json.dumps(options), go_version, architecture)[:16]


def numbers(version: str) -> tuple[int, ...]:
    """Return '1.26.3' or 'go1.26rc1' as comparable numbers: (1, 26, 3), (1, 26)."""
    match = re.match(r"(?:go)?(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in match[1].split(".")) if match else ()


def unasked() -> list[str]:
    """Return the programs that are built unless others are named, in the order of programs.toml."""
    return [program for module in modules().values() if module.unasked for program in module.programs]


def at(program: str, version: str) -> str:
    """Return a program's name at this version: without the version if the plain name means this version."""
    return (
        program
        if any(program in m.programs and m.version == version for m in modules().values())
        else f"{program}@{version}"
    )


def file_name(program: str) -> str:
    """Return the name without the version: ``kubelet@1.35.4`` -> ``kubelet``."""
    return program.partition("@")[0]


def pinned(folder: Path, module: str) -> str:
    """Return the version, without its v, that folder/go.mod requires of `module`. Raises LookupError when it has none."""
    text = (folder / "go.mod").read_text()
    match = re.search(rf"^\s*(?:require )?{re.escape(module)} v([^\s+]+)", text, re.MULTILINE)
    if not match:
        raise LookupError(f"{folder / 'go.mod'} requires no version of {module}; programs.toml names it as the pin")
    return match[1]


def _module(name: str, table: Mapping[str, object], folder: Path) -> Module:
    fields = dict(table)
    version = pinned(folder, str(fields["pin"]))
    major, minor = version.split(".")[:2]
    for listed in ("tags", "debian", "tests"):
        if listed in fields:
            fields[listed] = tuple(fields[listed])  # type: ignore[arg-type]
    for templates in ("variables", "releases"):
        texts: Mapping[str, str] = fields.get(templates, {})  # type: ignore[assignment]
        fields[templates] = {key: text.format(version=version, major=major, minor=minor) for key, text in texts.items()}
    directive = re.search(r"^go (\S+)$", (folder / "go.mod").read_text(), re.MULTILINE)
    go = numbers(directive[1]) if directive else ()
    return Module(name=name, version=version, go=go, **fields)  # type: ignore[arg-type]


def modules() -> dict[str, Module]:
    """Return every module by folder name, in the order of programs.toml."""
    tables = tomllib.loads((TOOLS / "programs.toml").read_text())
    return {name: _module(name, _whole(table, tables, TOOLS / name), TOOLS / name) for name, table in tables.items()}


def _whole(table: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]], folder: Path) -> Mapping[str, Any]:
    """Return the table with what it inherits from the table named by `like`."""
    own = dict(table)
    like = tables.get(own.pop("like", ""))
    if like is None:
        return own
    version = pinned(folder, str(own["pin"]))
    renamed = {
        key: {f"{name}@{version}": value for name, value in like[key].items()} for key in ("programs", "releases")
    }
    return {**like, **own, **renamed}


def grouped(programs: Iterable[str]) -> list[tuple[Module, list[str]]]:
    """Return the modules that build `programs`, in the order of the programs.

    Raises LookupError that names every unknown program and all the known ones.
    """
    module_of = {program: module for module in modules().values() for program in module.programs}
    names = list(dict.fromkeys(programs))
    if unknown := [program for program in names if program not in module_of]:
        raise LookupError(f"tools/programs.toml has no {', '.join(unknown)}; it has {', '.join(sorted(module_of))}")
    groups: dict[str, tuple[Module, list[str]]] = {}
    for program in names:
        module = module_of[program]
        groups.setdefault(module.name, (module, []))[1].append(program)
    return list(groups.values())
