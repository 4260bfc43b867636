"""The program by which API servers check whether a machine belongs to the cluster's pools before it joins as a node."""

from __future__ import annotations

import json
from pathlib import Path

from cluster.spec import Cluster
from components.control_plane import paths
from stacks import machines
from stacks.azure.tags import host_prefix, scale_set_name, workers_group_name

READ_MACHINES = ("Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read",)
_PROGRAM = Path(__file__).with_name("menagerie_machine.py")


def program(
    cluster: Cluster,
    url: str = "https://management.azure.com",
    metadata: str = "http://169.254.169.254",
    library: str = paths.LIBRARY,
) -> str:
    """Return the program's text. URLs have no trailing slash. library: where `menagerie_host` is."""
    sets = {host_prefix(name): scale_set_name(name) for name in cluster.spec.region_pools}
    values = {
        "LIBRARY_OF_HOST": library,
        "SETS_OF_POOLS": json.dumps(sets, sort_keys=True),
        "GROUP_OF_WORKERS": workers_group_name(cluster),
        "MANAGER_URL": url,
        "METADATA_URL": metadata,
    }
    return machines.filled(_PROGRAM, values)
