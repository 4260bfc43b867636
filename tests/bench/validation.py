"""``python -m tests.bench.validation``: time and memory of `menagerie validate`, and resources of small clusters."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cluster.project import ROOT
from tests.bench import alone, machine
from tests.bench.figures import Figure, table
from tests.bench.group import CommandError, Group

SECONDS_AIM, MEMORY_AIM_MB, RESOURCES_AIM = 60.0, 500.0, 60.0
SMALL = sorted((ROOT / "examples").glob("*-small"))
LARGER = sorted({file.parent for file in (ROOT / "examples").glob("*/cluster.yaml")} - {*SMALL})


def measure(say: Callable[[str], None]) -> list[Figure]:
    """Validate the larger examples for time and again for memory, and each small one."""
    with Group() as group:
        seconds = _validated(group, LARGER)[0]["seconds"]
        say(f"validate: {seconds:.1f} s")
        peaks = {}
        for jobs in (None, 1):
            peaks[jobs] = _validated(group, LARGER, jobs, sample_memory=True)[1]
            say(f"validate, {jobs or 'all'} at a time: {sum(peaks[jobs].values()) / 1e6:.0f} MB")
        small = _validated(group, SMALL)[0]
    return summary(seconds, peaks, small)


def summary(seconds: float, peaks: Mapping[int | None, Mapping[str, int]], small: Mapping[str, Any]) -> list[Figure]:
    """Return the figures. peaks: clusters at a time (None: one per core) -> bytes of each process at the common peak."""
    return [
        Figure("validate, every example", "s", (seconds,), SECONDS_AIM),
        *(
            Figure(
                f"validate, peak memory, {f'{jobs} at a time' if jobs else 'one a core'}",
                "MB",
                (sum(peak.values()) / 1e6,),
                MEMORY_AIM_MB,
                "sum of PSS over all processes, in a run that is not timed",
            )
            for jobs, peak in peaks.items()
        ),
        *(
            Figure(f"resources of {cluster['cluster']}", "", (float(made(cluster)),), RESOURCES_AIM)
            for cluster in small["clusters"]
        ),
    ]


def made(cluster: Mapping[str, Any]) -> int:
    """Return the number of resources that a cluster's stack created in the cloud."""
    return next(int(stage["resources"]) for stage in cluster["stages"] if stage["resources"] is not None)


def _validated(
    group: Group, clusters: Iterable[Path], jobs: int | None = None, *, sample_memory: bool = False
) -> tuple[dict[str, Any], Mapping[str, int]]:
    """Return the report, and the memory of each process."""
    arguments = [*map(str, clusters), *(["--parallel", str(jobs)] if jobs else [])]
    command = [sys.executable, "-m", "cli", "validate", "--json", *arguments]
    cost = group.run(["env", f"--chdir={ROOT}", *command], sample_memory=sample_memory)
    return json.loads(cost.text), cost.peak


def main() -> None:
    """Measure `menagerie validate`: time, memory, resources."""
    print(f"{machine.read()}; load {machine.load():.1f} before")
    print(table(measure(alone.say)))


if __name__ == "__main__":
    try:
        main()
    except CommandError as error:
        sys.exit(f"error: {error}")
