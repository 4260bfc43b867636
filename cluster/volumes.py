"""The part of the model that is about volumes of pods."""

from __future__ import annotations

from cluster.model import Model
from cluster.quantities import Name
from cluster.words import CloudWord


class Storage(Model):
    """Volumes that the cloud makes for pods of workers in the region. Without such workers nothing of it is built."""

    block: bool = True
    """The class `block`, the default one: a disk for one node at a time, in the zone of its pod."""
    file: bool = False
    """The class `file`: a file system that many nodes mount, by NFS."""
    controllers: Name | None = None
    """Pool in the region whose machines alone may make, attach and delete volumes. Default: the first that has no GPUs,
    is not spot and is never empty, as far as there is one."""
    block_disk: CloudWord | None = None
    """Kind of disk, in the words of etcd's. Default: gp3; premium_ssd or standard_ssd; pd-balanced or
    hyperdisk-balanced: the first that all machines in the region take."""
    retain: bool = False
    """Keep a volume, and its costs, when its claim is deleted."""
