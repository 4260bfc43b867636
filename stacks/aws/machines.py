"""The program by which API servers check whether a machine belongs to the cluster's pools before it joins as a node."""

from __future__ import annotations

import json
from pathlib import Path

from cluster.spec import Cluster
from components.control_plane import paths
from stacks import machines
from stacks.aws.tags import named
from stacks.cloud_store import WORKERS

_PROGRAM = Path(__file__).with_name("menagerie_machine.py")


def program(
    cluster: Cluster, url: str = "", metadata: str = "http://169.254.169.254", library: str = paths.LIBRARY
) -> str:
    """Return the program's text. URLs have no trailing slash. library: where `menagerie_host` is."""
    region = str(cluster.spec.control_plane.region)
    # The provider appends a hyphen and digits to a group's name (`stacks.aws.tags`).
    groups = {
        f"{WORKERS}-{name}": named(cluster, f"pool-{name}", "launch_template") + "-"
        for name in cluster.spec.region_pools
    }
    values = {
        "LIBRARY_OF_HOST": library,
        "GROUPS_OF_POOLS": json.dumps(groups, sort_keys=True),
        "CLUSTER_NAME": cluster.name,
        "REGION_NAME": region,
        "EC2_URL": url or f"https://ec2.{region}.amazonaws.com",
        "METADATA_URL": metadata,
    }
    return machines.filled(_PROGRAM, values)
