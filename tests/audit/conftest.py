"""Evidence of the lab's cluster as rendered."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cluster import places
from cluster.artefacts import ArtefactSource, catalogue
from cluster.audit.evidence import API_LISTS, Evidence, Kind
from cluster.files import HostConfig
from cluster.spec import Cluster
from components.control_plane import host_config
from components.workers import render as workers_render
from etcd.render import host_configs
from network.addresses import plan
from tests.audit import support


@pytest.fixture(scope="session")
def source() -> ArtefactSource:
    return ArtefactSource(mirror=None, sha256={artefact.source: "0" * 64 for artefact in catalogue().values()})


@pytest.fixture(scope="session")
def config(lab: Cluster, source: ArtefactSource) -> HostConfig:
    return host_config(lab, plan(lab), source)


@pytest.fixture(scope="session")
def worker(build: Callable[..., Cluster], source: ArtefactSource) -> HostConfig:
    """The roles' declarations in the form that a worker in the region gets."""
    cluster = build({"pools": {"region": {"machine": "lab-small", "max": 1}}})
    return workers_render.host_config(cluster, "region", plan(cluster), source)


@pytest.fixture(scope="session")
def good(lab: Cluster, config: HostConfig, worker: HostConfig, source: ArtefactSource) -> Evidence:
    """Evidence of a cluster as we render it.

    Units, flags, placed files and the kubelet's configuration are rendered, and the API only has what components/control_plane/
    creates. Made up here, and checked for real by the lab's audit (tests/lab/test_8_audit.py): that each unit runs, what programs
    write on hosts, the places of certificates, and the outcome of every attempt.
    """
    etcds = host_configs(lab, plan(lab), source)
    evidence = Evidence(
        reports=(
            support.api_host(config),
            support.etcd_host("etcd-main-1", "main", etcds["etcd-main-1"]),
            support.etcd_host("etcd-events-1", "events", etcds["etcd-events-1"]),
            support.worker(worker),
        ),
        kubelets={"worker-1": support.kubelet(config, worker)},
        objects={
            **dict.fromkeys(API_LISTS, ()),
            "kube-proxy": support.proxy("127.0.0.1:10249"),
            "addresses of nodes": support.addresses({"worker-1": "10.78.1.11"}, {"region-1": "10.77.0.130"}),
            "serving requests": (support.serving_request("region-1", "10.77.0.130"),),
        },
        ports={Kind.API: frozenset({6443, 8132}), Kind.ETCD: frozenset({2379, 2380})},
        kubernetes_ca=support.AUTHORITIES["kubernetes"].certificate,
        audit_logs=support.LOGS,
        now=support.NOW,
        labels={host.name: places.node_labels(lab, pool, host) for pool, host in lab.host_list()},
        controllers=frozenset({"workers"}),
    )
    for control in support.METHODS:
        evidence = support.attempted(evidence, control, True)
    return evidence
