"""Host programs without their comments and docstrings."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.files import HostFile
from cluster.programs import without_words
from components.userdata import applying, refreshing

ROOT = Path(__file__).parents[2]
FOLDERS = ("cluster/audit/host", "components/control_plane/host", "etcd/host", "roles", "stacks", "userdata")
SOURCES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def runs(python: str) -> bool:
    """Whether it is a Python, and not a shim for one that isn't there."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


OTHERS = [found for n in range(12, 20) if (found := shutil.which(f"python3.{n}")) and runs(found)]

AWKWARD = '''\
#!/usr/bin/python3
"""What it does.

# Not a comment.
"""

import os  # why


class Empty(Exception):
    """Nothing else."""


async def told(x):  # who
    # how
    """First."""
    """Second."""


def text(x):
    """Words."""
    given = """
    # kept

      as it stands   
    """
    also = f"""{x!r:>{4}} # kept

    {x}"""
    return [
        given,  # one
        # two

        also, "#", 'é # ü', f'{x["#"]}',  # ö
    ]


if os.name: "a text alone"
'''


def dumped(program: str) -> str:
    """The syntax of a program without the statements that are only a text."""
    tree = ast.parse(program)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [each for each in body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.dump(tree)


def is_of_its_pieces(made: str, source: str) -> bool:
    """Whether every line is the beginning of one of the source's, in their order, or ``pass`` where a text stood."""
    lines = iter(source.split("\n"))
    return all(
        any(line.startswith(each) or re.sub(r"[\"'].*", "pass", line) == each for line in lines)
        for each in made.removesuffix("\n").split("\n")
    )


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_host_program_without_its_words_does_the_same_and_is_made_of_its_own_lines(path: Path) -> None:
    source = path.read_text()
    made = without_words(source)
    assert dumped(made) == dumped(source)
    assert made == "pass\n" or is_of_its_pieces(made, source)


@pytest.mark.parametrize("file", [applying.files()[0], refreshing.files()[0]], ids=lambda file: file.path)
def test_a_program_joined_of_modules_loses_all_of_its_words(file: HostFile) -> None:
    assert "#" not in file.text.removeprefix("#!")
    assert ast.get_docstring(ast.parse(file.text)) is None


def test_only_words_go_and_texts_stay_as_they_stand() -> None:
    assert (
        without_words(AWKWARD)
        == '''\
import os
class Empty(Exception):
    pass
async def told(x):
    pass
def text(x):
    given = """
    # kept

      as it stands   
    """
    also = f"""{x!r:>{4}} # kept

    {x}"""
    return [
        given,
        also, "#", 'é # ü', f'{x["#"]}',
    ]
if os.name: pass
'''
    )


def test_the_lines_of_a_text_are_told_from_lines_that_somebody_else_wrote() -> None:
    assert is_of_its_pieces("x = f'{y}'\n", "x = f'{y}'  # why\n")
    assert not is_of_its_pieces("x = f'{y}'\n", 'x = f"{y}"\n')


def test_every_python_makes_the_same_of_every_program() -> None:
    """Every newer one that this machine has, and this one in another process."""
    program = "import runpy, sys; w = runpy.run_path('cluster/programs.py'); print(w['without_words'](sys.stdin.read()), end='')"
    source = "\n".join(
        (AWKWARD, *(re.sub("^from __future__.*", "", p.read_text(), flags=re.MULTILINE) for p in SOURCES))
    )
    for python in (sys.executable, *OTHERS):
        run = [python, "-X", "utf8", "-c", program]
        made = subprocess.run(run, input=source, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=True)
        assert made.stdout == without_words(source), python
