"""docs/explanation/metrics.md has the numbers that the code computes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from cluster.counts import gibibytes
from cluster.metrics import sizes, units
from cluster.metrics.sizes import Size
from cluster.quantities import DAY_MS
from tests.cli.pages import ROOT
from tests.monitoring.test_sizes import on_prem

PAGE = ROOT / "docs" / "explanation" / "metrics.md"
_HEAD = "| job | endpoints | series |\n|---|---|---|\n"


def rows(jobs: tuple[Size, ...]) -> Iterator[str]:
    for size in jobs:
        yield f"| {size.job.name} | {f'{size.targets:,}' if size.targets else ''} | {size.series:,} |\n".replace(
            "|  |", "| |"
        )
    yield f"| **sum** | | **{sizes.total(jobs):,}** |\n"


def test_the_table_of_the_largest_cluster_is_what_check_computes() -> None:
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites the table; review the difference."""
    jobs = sizes.sizes(on_prem(7500))
    text = PAGE.read_text()
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        text = re.sub(
            rf"({re.escape(_HEAD)}).*?\n\n", lambda match: f"{match[1]}{''.join(rows(jobs))}\n", text, flags=re.DOTALL
        )
        PAGE.write_text(text)
    assert _HEAD + "".join(rows(jobs)) in text, "run `make golden`"
    memory, disk = sizes.memory(sizes.total(jobs)), sizes.disk(jobs, 15 * DAY_MS)
    assert f"that is {gibibytes(memory)} of memory, and {gibibytes(disk)} of disk for 15 days" in text


def test_the_assumptions_are_those_of_the_code() -> None:
    text = PAGE.read_text()
    assert f"at most {units.MOST_PODS:,}" in text
    assert f"{units.CPUS} CPUs and {units.DISKS} disks" in text
    assert f"| containers | {units.CONTAINERS_OF_POD} for each pod" in text
    assert f"| file systems of a node | {units.FILESYSTEMS} |" in text
    assert f"| network interfaces of a node | {units.INTERFACES}, and" in text
