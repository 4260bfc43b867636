"""The guide to a further cloud, docs/how-to/add-a-cloud.md, lists the files that know clouds, and no others.

Two rules derive them from the tree. A path with a cloud's name is a template with `<cloud>`; the guide has each template that
every cloud fills, or a folder above it. A file without a cloud's name in its path is shared; the guide has each one whose code
names at least two clouds. Comments and docstrings do not count.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from cluster.spec import Cloud

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "how-to" / "add-a-cloud.md"
CLOUDS = {cloud.value for cloud in Cloud if cloud is not Cloud.LAB}
ON_PAGES = {"google-cloud": "gcp"}
"""A name on pages for operators -> the cloud."""
IN_A_PATH = re.compile(rf"(?<![a-z])({'|'.join([*sorted(CLOUDS), *ON_PAGES])})(?![a-z])")
MENTION = re.compile("|".join(sorted(CLOUDS)), re.IGNORECASE)
DATA = (".json", ".lock", ".toml", ".yaml", ".yml")
NOT_THE_PRODUCT = ("docs/", "examples/", "tests/", "zensical.toml")
"""Their paths count, their text does not: pages and tests may speak of any cloud."""
TYPE = re.compile(rf"({'|'.join(sorted(CLOUDS))})(-native)?(:.*)?")
"""A string that is a cloud's name, or one of its types of resources."""


@cache
def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in listed.splitlines() if not path.startswith("docs/decisions/")]


@cache
def templates() -> dict[str, set[str]]:
    """Return the paths with `<cloud>`, and the clouds that fill them."""
    filled: dict[str, set[str]] = defaultdict(set)
    for path in tracked():
        if name := IN_A_PATH.search(path):
            filled[IN_A_PATH.sub("<cloud>", path)].add(ON_PAGES.get(name[1], name[1]))
    return filled


def clouds_in_code(source: str) -> set[str]:
    """Return the clouds that a module names in strings, imports, attributes, keywords and variables."""
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    named: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            kind = TYPE.fullmatch(node.value) if isinstance(node.value, str) and id(node) not in prose else None
            named |= {kind[1]} if kind else set()
        else:
            named |= {word for name in names(node) for word in re.split(r"[_.]", name.lower())}
    return named & CLOUDS


def names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
            yield name
        case ast.Import(names=imported):
            yield from (alias.name for alias in imported)
        case ast.ImportFrom(module=module, names=imported):
            yield from (module or "", *(alias.name for alias in imported))


def clouds_in_data(text: str) -> set[str]:
    words = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    return {cloud for cloud in CLOUDS if re.search(rf"\b{cloud}\b", words)}


@cache
def shared() -> dict[str, set[str]]:
    """Return the product's files whose path names no cloud, and the clouds that they name."""
    files = [path for path in tracked() if not path.startswith(NOT_THE_PRODUCT) and not IN_A_PATH.search(path)]
    texts = {path: (ROOT / path).read_text() for path in files if path.endswith((".py", *DATA))}
    texts = {path: text for path, text in texts.items() if MENTION.search(text)}  # others need no parsing
    return {
        path: clouds_in_code(text) if path.endswith(".py") else clouds_in_data(text) for path, text in texts.items()
    }


def listed() -> list[str]:
    """Return the paths of the guide's tables: the code in the first column."""
    rows = re.findall(r"^\| (`[^|]*) \|", GUIDE.read_text(), re.MULTILINE)
    return [path for row in rows for path in re.findall(r"`([^`]+)`", row)]


@pytest.fixture(scope="module")
def guide() -> list[str]:
    return listed()


def has(guide: list[str], path: str) -> bool:
    return path in guide or any(path.startswith(folder) for folder in guide if folder.endswith("/"))


def test_the_guide_has_every_path_that_each_cloud_fills(guide: list[str]) -> None:
    common = {template for template, clouds in templates().items() if clouds == CLOUDS}
    assert len(common) > 30
    assert sorted(template for template in common if not has(guide, template)) == []


def test_the_guide_has_every_shared_file_that_names_two_clouds(guide: list[str]) -> None:
    known = {path for path, clouds in shared().items() if len(clouds) > 1}
    assert len(known) > 40
    assert sorted(path for path in known if not has(guide, path)) == []


def test_the_guide_has_no_path_that_no_cloud_needs(guide: list[str]) -> None:
    filled, named = templates(), shared()
    needed = [*filled, *(path for path, clouds in named.items() if clouds)]
    stale = [path for path in guide if not any(has([path], needs) for needs in needed)]
    assert stale == []


def test_the_guide_has_a_path_once(guide: list[str]) -> None:
    assert sorted(path for path in set(guide) if guide.count(path) > 1) == []


@pytest.mark.parametrize(
    ("source", "clouds"),
    [
        ('"""On aws and azure."""  # gcp', set()),
        ('TABLE = {Cloud.AWS: 1, "gcp": 2}', {"aws", "gcp"}),
        ("from stacks.azure import provider", {"azure"}),
        ("AWS_EBS = PULUMI_GCP", {"aws", "gcp"}),
        ('"aws:ec2/instance:Instance", "azure-native:compute:Disk", "see aws"', {"aws", "azure"}),
    ],
)
def test_code_names_a_cloud_in_names_and_types_but_not_in_prose(source: str, clouds: set[str]) -> None:
    assert clouds_in_code(source) == clouds
