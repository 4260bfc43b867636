"""The smallest cluster.yaml of the README is a valid one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from cluster.load import load_cluster

ROOT = Path(__file__).resolve().parents[2]


def test_the_readme_s_smallest_cluster_is_accepted(tmp_path: Path) -> None:
    example = re.search(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert example
    folder = tmp_path / "inventories" / "lab"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(example[1])
    shutil.copy(ROOT / "inventories" / "lab" / "hosts.yaml", folder)
    assert [host.name for _, host in load_cluster(folder / "cluster.yaml").host_list()] == [
        "worker-1",
        "worker-2",
        "worker-3",
    ]
