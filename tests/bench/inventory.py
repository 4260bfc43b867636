"""``python -m tests.bench.inventory``: CPU cost of large inventories on the controller, compared with Ansible's JSON script.

All figures are CPU time of this process. No host is contacted.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cluster.outputs import ClusterOutputs
from cluster.project import ROOT
from cluster.spec import Cluster
from inventories.batches import batches
from inventories.build import Inventory, build
from inventories.desired import desired
from tests.bench import alone, machine
from tests.bench.figures import Figure, ratios, table
from tests.bench.fleet import fleet, outputs

HOSTS, FILES_OF = 10_000, 7_500
LOAD_AIM, FILES_AIM_S = 1 / 50, 3.0
ROUNDS = 3


def measure(say: Callable[[str], None]) -> list[Figure]:
    """Measure everything `ROUNDS` times, in turns."""
    cluster, smaller, outputs_ = fleet(HOSTS), fleet(FILES_OF), outputs()
    rounds = []
    for number in range(1, ROUNDS + 1):
        with tempfile.TemporaryDirectory() as folder:
            rounds.append((*_loads(Path(folder), cluster, outputs_), *_files(smaller, outputs_)))
        whole, _, one, script, *_ = rounds[-1]
        say(f"round {number}: whole {whole:.2f} s, one host {one:.2f} s, script {script:.2f} s")
    return summary(*map(list, zip(*rounds, strict=True)))


def _loads(folder: Path, cluster: Cluster, known: ClusterOutputs) -> tuple[float, float, float, float]:
    """Return the seconds for the whole inventory, in batches, for one host, and for the script."""
    built_s, inventory = _timed(lambda: build(cluster, known))
    parts = [inventory.only(hosts) for hosts in batches(inventory.hosts, None)]
    one = [inventory.only(inventory.hosts[:1])]
    loaded = (built_s + _loading_s(folder, inventories) for inventories in ([inventory], parts, one))
    source = _script(folder, inventory)
    whole_s, shares_s, one_s = loaded
    return whole_s, shares_s, one_s, _timed(lambda: _load(source))[0]


def _files(cluster: Cluster, known: ClusterOutputs) -> tuple[float, float]:
    """Return the seconds for variables and files, and for the journal's states."""
    taken, inventory = _timed(lambda: build(cluster, known))
    return taken + _timed(lambda: json.dumps(inventory.data))[0], _timed(lambda: desired(inventory, ROOT))[0]


def summary(
    whole: list[float],
    shares: list[float],
    one: list[float],
    script: list[float],
    files: list[float],
    states: list[float],
) -> list[Figure]:
    """Return the figures, each with one value per round."""
    what = f"inventory of {HOSTS} hosts"
    note = "the script is a `cat`: a real one has to compute as well"
    return [
        Figure(f"{what}, built and loaded at once", "s", tuple(whole)),
        Figure(f"{what}, built, loaded in shares", "s", tuple(shares), None, "as `configure` does"),
        Figure(
            f"{what}, built, loaded for one host", "s", tuple(one), None, "as for a host that is added, with --resume"
        ),
        Figure(f"{what}, Ansible's script", "s", tuple(script), None, note),
        Figure(f"{what}, at once ÷ script", "", ratios(whole, script), LOAD_AIM),
        Figure(f"{what}, for one host ÷ script", "", ratios(one, script), LOAD_AIM),
        Figure(
            f"variables and files of {FILES_OF} hosts, rendered",
            "s",
            tuple(files),
            FILES_AIM_S,
            "texts that hosts share are rendered once; Ansible's own work for each host is in its cost per host",
        ),
        Figure(f"states of {FILES_OF} hosts for the journal", "s", tuple(states)),
    ]


def as_script(inventory: Inventory) -> dict[str, Any]:
    """Return what an inventory script prints for --list (docs.ansible.com, "Developing dynamic inventory")."""
    whole: Mapping[str, Any] = inventory.data["all"]
    groups = {
        name: {"hosts": list(group["hosts"]), "vars": group.get("vars", {})}
        for name, group in whole["children"].items()
    }
    everything = {"vars": whole["vars"], "hosts": list(whole["hosts"]), "children": list(groups)}
    return {"_meta": {"hostvars": whole["hosts"]}, "all": everything, **groups}


def _script(folder: Path, inventory: Inventory) -> Path:
    document = folder / "script.json"
    document.write_text(json.dumps(as_script(inventory)))
    script = folder / "script"
    script.write_text(f"#!/bin/sh\nexec cat {document}\n")
    script.chmod(0o755)
    return script


def _loading_s(folder: Path, inventories: list[Inventory]) -> float:
    """Return the seconds to load inventories as ansible-runner passes them: one file each."""
    return sum(_timed(partial(_load, _written(folder, each)))[0] for each in inventories)


def _written(folder: Path, inventory: Inventory) -> Path:
    path = folder / "hosts.json"
    path.write_text(json.dumps(inventory.data))
    return path


def _load(source: Path) -> int:
    """Return the number of hosts that Ansible finds in a source."""
    from ansible.inventory.manager import InventoryManager  # type: ignore[import-untyped]
    from ansible.parsing.dataloader import DataLoader  # type: ignore[import-untyped]

    return len(InventoryManager(loader=DataLoader(), sources=[str(source)]).get_hosts())


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def main() -> None:
    """Measure the cost of large inventories."""
    print(f"{machine.read()}; load {machine.load():.1f} before")
    print(table(measure(alone.say)))


if __name__ == "__main__":
    main()
