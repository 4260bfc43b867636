"""Volumes through each cloud's CSI drivers: the drivers themselves, and the classes that pods ask for.

Drivers stand in the API servers' payload beside the other manifests. Classes hold facts of the stack (a key, a file
system), so they travel in the API servers' bundle as `cluster.files.STORAGE_CLASSES`.
"""

from cluster.spec import Cluster
from components.control_plane.csi import pods, rights
from components.control_plane.csi.classes import storage_classes as storage_classes
from components.control_plane.csi.drivers import drivers as drivers
from components.control_plane.csi.rights import NAMESPACE as NAMESPACE
from components.control_plane.objects import Object


def workloads(cluster: Cluster) -> tuple[str, ...]:
    """Names of the drivers' Deployments and DaemonSets. They need no digest, as pods do."""
    return tuple(rights.account(driver, part) for driver in drivers(cluster) for part in ("controller", "node"))


def objects(cluster: Cluster) -> tuple[Object, ...]:
    """The drivers that the spec asks for, in the order in which they are applied."""
    found = drivers(cluster)
    if not found:
        return ()
    of_each = [each for driver in found for each in (*rights.of_driver(driver), *pods.of_driver(cluster, driver))]
    return (*rights.shared(found), *of_each)
