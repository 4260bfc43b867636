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
    """Return whether it is a working Python, not a shim for a missing one."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


OTHERS = [interpreter for n in range(12, 20) if (interpreter := shutil.which(f"python3.{n}")) and runs(interpreter)]

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
    """Return the syntax tree of a program without statements that are only a string."""
    tree = ast.parse(program)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [each for each in body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.dump(tree)


def is_of_its_pieces(made: str, source: str) -> bool:
    """Return whether every line is the start of one of the source's, in order, or ``pass`` instead of a string."""
    lines = iter(source.split("\n"))
    return all(
        any(line.startswith(each) or re.sub(r"[\"'].*", "pass", line) == each for line in lines)
        for each in made.removesuffix("\n").split("\n")
    )


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_stripped_host_program_has_the_same_syntax_and_only_its_own_lines(path: Path) -> None:
    source = path.read_text()
    made = without_words(source)
    assert dumped(made) == dumped(source)
    assert made == "pass\n" or is_of_its_pieces(made, source)


@pytest.mark.parametrize("file", [applying.files()[0], refreshing.files()[0]], ids=lambda file: file.path)
def test_a_program_joined_from_modules_loses_all_comments_and_docstrings(file: HostFile) -> None:
    assert "#" not in file.text.removeprefix("#!")
    assert ast.get_docstring(ast.parse(file.text)) is None


def test_only_comments_and_docstrings_are_removed_and_strings_are_kept() -> None:
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


def test_lines_of_a_source_are_distinguished_from_others() -> None:
    assert is_of_its_pieces("x = f'{y}'\n", "x = f'{y}'  # why\n")
    assert not is_of_its_pieces("x = f'{y}'\n", 'x = f"{y}"\n')


def test_every_python_gives_the_same_result_for_every_program() -> None:
    """Tries every newer Python on this machine, and this one in another process."""
    program = "import runpy, sys; w = runpy.run_path('cluster/programs.py'); print(w['without_words'](sys.stdin.read()), end='')"
    source = "\n".join(
        (AWKWARD, *(re.sub("^from __future__.*", "", p.read_text(), flags=re.MULTILINE) for p in SOURCES))
    )
    for python in (sys.executable, *OTHERS):
        run = [python, "-X", "utf8", "-c", program]
        made = subprocess.run(run, input=source, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=True)
        assert made.stdout == without_words(source), python
