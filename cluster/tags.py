"""Tags (labels on Google Cloud) that say which cluster a cloud's resource belongs to.

The stack sets them; policies check them; the autoscaler finds its groups of machines by them.
"""

from __future__ import annotations


def of_cluster(name: str) -> dict[str, str]:
    """Return the tags of all resources of a cluster. name: the cluster's."""
    return {"menagerie": "true", "cluster": name}
