"""The model of volumes for pods."""

from __future__ import annotations

from cluster.model import Model
from cluster.quantities import Name
from cluster.words import CloudWord


class Storage(Model):
    """Volumes of the cloud for pods on workers in the region. Without such workers nothing is built."""

    block: bool = True
    """Whether there is a class `block`, which is the default: a disk for one node at a time, in the zone of its pod."""
    file: bool = False
    """Whether there is a class `file`: a file system that many nodes can mount, over NFS."""
    controllers: Name | None = None
    """Pool in the region whose machines alone may create, attach and delete volumes. Default: the first pool, preferably
    without GPUs, not spot and never empty."""
    block_disk: CloudWord | None = None
    """Kind of disk, named as for etcd. Default: gp3 on AWS, premium_ssd or standard_ssd on Azure, pd-balanced or
    hyperdisk-balanced on Google Cloud: the first that all machines in the region support."""
    retain: bool = False
    """Keep a volume, with its costs, when its claim is deleted."""
