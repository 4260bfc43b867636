"""Whether an image has the Debian packages that a cluster's hosts refuse to boot without."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from cluster.artefacts import ArtefactSource
from cluster.reading import read_text
from cluster.spec import Cluster
from components.control_plane.render import PACKAGES as OF_API_SERVERS
from components.workers.render import packages_of
from etcd.agent import PACKAGES as OF_MEMBERS
from network.addresses import plan
from operations.doctor.model import Answer, Question, ok, unknown, wrong


def manifest_question(cluster: Cluster, file: Path) -> Question:
    """Return the question. file: what `dpkg-query -W` prints on a machine with the image."""
    return Question("images", "manifest", lambda: _answers(cluster, file), cloud=False)


def packages(cluster: Cluster) -> Mapping[str, tuple[str, ...]]:
    """Return kind of host -> the packages that its payload checks for at boot (`components/userdata/boot/system.py`)."""
    # The packages do not depend on checksums, which the spec may still lack.
    source = ArtefactSource(
        cluster.spec.artefacts.mirror, defaultdict(lambda: "0" * 64), cluster.spec.artefacts.registry
    )
    addresses = plan(cluster)
    pools = {f"pool {name}": packages_of(cluster, name, addresses, source) for name in cluster.spec.region_pools}
    return {"API servers": OF_API_SERVERS, "etcd members": OF_MEMBERS, **pools}


def installed(manifest: str) -> frozenset[str]:
    """Return the names of a manifest's packages: lines of a name, with or without its architecture, a tab and a version.

    A JSON object whose `packages` has them by name is a manifest too.
    """
    if manifest.lstrip().startswith("{"):
        try:
            named = json.loads(manifest).get("packages", {})
        except ValueError:
            return frozenset()
        return frozenset(map(str, named)) if isinstance(named, dict) else frozenset()
    lines = [line.split("\t") for line in manifest.splitlines() if line.strip()]
    return frozenset(line[0].partition(":")[0] for line in lines if len(line) == 2 and line[1].strip())


def _answers(cluster: Cluster, file: Path) -> Iterator[Answer]:
    found = installed(read_text(file))
    if not found:
        yield unknown(
            f"{file} is not what `dpkg-query -W` prints", "dpkg-query -W > manifest  # on a machine with the image"
        )
        return
    for kind, wanted in packages(cluster).items():
        lacking = [name for name in wanted if name not in found]
        needed = ", ".join(wanted)
        if lacking:
            yield wrong(
                f"{file} lacks {', '.join(lacking)}", f"apt-get install {' '.join(lacking)}", needed=needed, about=kind
            )
        else:
            yield ok(f"{file} has all {len(wanted)} packages", needed, about=kind)
