"""README.md's example and its table of folders are right."""

from __future__ import annotations

import os
import re
from pathlib import Path

from cluster.load import check_paths
from sandbox.lab.prepare import KUBECTL
from tests import rooms

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()


def test_the_smallest_cluster_is_accepted_unchanged_and_together_with_the_lab(tmp_path: Path) -> None:
    shown = re.findall(r"```yaml\n# (inventories/\S+)\n(.*?)```", README, re.DOTALL)
    for name, text in shown:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (spec,) = tmp_path.rglob("cluster.yaml")
    loaded, problems = check_paths([spec, ROOT / "inventories" / "lab" / "cluster.yaml"])
    assert [str(problem) for problem in problems if problem.is_error or "koala" in problem.file] == []
    assert [host.name for _, host in loaded[0].cluster.host_list()] == ["koala-worker-1", "koala-worker-2"]


def test_the_table_of_folders_matches_their_own_descriptions() -> None:
    if "MENAGERIE_UPDATE_GOLDEN" in os.environ:
        (ROOT / "README.md").write_text(rooms.written(README))
    assert [row for row in rooms.table().splitlines() if row.split("|")[2].strip() == ""] == []
    assert rooms.written(README) == README, "run `make golden`"


def test_every_purpose_starts_with_a_capital_letter() -> None:
    purposes = {folder.name: rooms.purpose(folder) for folder in rooms.folders()}
    for folder in rooms.folders():
        purposes |= {f"{folder.name}/{name}": text for name, text in rooms.inside(folder).items()}
    assert {folder: text for folder, text in purposes.items() if not text[:1].isupper()} == {}


def test_the_documented_kubectl_is_where_the_lab_puts_it() -> None:
    path = str(KUBECTL.relative_to(ROOT))
    assert path in README
    assert str(KUBECTL.parent.relative_to(ROOT)) in (ROOT / "docs" / "start" / "lab.md").read_text()
