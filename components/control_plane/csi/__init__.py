"""Volumes through each cloud's CSI drivers: the drivers themselves, and their StorageClasses.

The drivers are in the API servers' payload with the other manifests. The classes contain values that only the stack knows (a
key, a file system), so they are in the API servers' bundle as `cluster.files.STORAGE_CLASSES`.
"""

from cluster.spec import Cluster
from components.control_plane.csi import pods, rights
from components.control_plane.csi.classes import storage_classes as storage_classes
from components.control_plane.csi.drivers import drivers as drivers
from components.control_plane.csi.rights import NAMESPACE as NAMESPACE
from components.control_plane.objects import Object


def workloads(cluster: Cluster) -> tuple[str, ...]:
    """Return the names of the drivers' Deployments and DaemonSets. Unlike `objects`, this needs no image digests."""
    return tuple(rights.account(driver, part) for driver in drivers(cluster) for part in ("controller", "node"))


def objects(cluster: Cluster) -> tuple[Object, ...]:
    """Return the objects of the drivers that the spec needs, in the order in which they are applied."""
    needed = drivers(cluster)
    if not needed:
        return ()
    of_drivers = [each for driver in needed for each in (*rights.of_driver(driver), *pods.of_driver(cluster, driver))]
    return (*rights.shared(needed), *of_drivers)
