"""Made-up fleets for benches: the lab's spec with any number of workers, in racks of 40."""

from __future__ import annotations

import ipaddress

from cluster.artefacts import catalogue
from cluster.load import find_cluster, load_cluster
from cluster.outputs import ArtefactOutput, ClusterOutputs, SshOutput
from cluster.project import ROOT
from cluster.spec import Cluster

RACK = 40
FIRST = ipaddress.ip_address("10.64.0.11")


def fleet(workers: int) -> Cluster:
    """Return the lab's spec with `workers` workers in one pool, without storage and declared links.

    It is not checked, because its racks have no ranges.
    """
    lab = load_cluster(find_cluster("lab", ROOT))
    sites = {name: site.model_copy(update={"ceph": None, "links": {}}) for name, site in lab.spec.sites.items()}
    model = lab.hosts["workers"][0].model_copy(update={"links": {}})
    hosts = tuple(
        model.model_copy(update={"name": f"gpu-{n:05}", "address": FIRST + n, "rack": f"r{n // RACK}"})
        for n in range(workers)
    )
    return Cluster.model_construct(spec=lab.spec.model_copy(update={"sites": sites}), hosts={"workers": hosts})


def outputs() -> ClusterOutputs:
    """Return the outputs of a built cluster, with a checksum for every program."""
    sums = {artefact.source: f"{number:064x}" for number, artefact in enumerate(catalogue().values())}
    return ClusterOutputs(
        cluster="lab",
        endpoint="10.77.0.10:6443",
        konnectivity="10.77.0.10:8132",
        ca_pem="-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n",
        api_servers=(),
        etcds={},
        artefacts=ArtefactOutput(mirror="http://10.79.1.10/mirror", sha256=sums, registry=""),
        ssh=SshOutput(known_hosts={}),
    )
