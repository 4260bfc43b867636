"""The full configuration of an API-server host at boot. It is the same for all of them: they keep no state."""

from __future__ import annotations

import json
from pathlib import Path

from cluster import node_labels, preflight
from cluster.artefacts import ArtefactSource, catalogue
from cluster.audit import programs
from cluster.files import STORAGE_CLASSES, Download, HostConfig, HostFile, SecretRef
from cluster.images import kube_proxy
from cluster.programs import without_words
from cluster.spec import Cloud, Cluster
from cluster.storage import controllers_pool
from components.control_plane import (
    audit_log,
    gangs,
    join_tokens,
    joining,
    konnectivity,
    kube_apiserver,
    kubeadm,
    manifests,
    metrics_keys,
    metrics_relay,
    paths,
    refreshing,
    reports,
    scheduler,
    serving,
    units,
)
from components.control_plane.images import image
from components.scheduling.gangs import api as pod_groups
from etcd.apiserver import probe_path
from etcd.members import relay_port
from etcd.render import program_download
from network.addresses import ROLES, AddressPlan

_HERE = Path(__file__).resolve().parent
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubeadm", "konnectivity-server")
PACKAGES = ("iproute2", "python3")
BUCKETS = {Cloud.AWS: "s3", Cloud.LAB: "s3", Cloud.AZURE: "azure", Cloud.GCP: "gcs"}
"""Cloud -> kind of `BucketOutput`. Each kind has its own module on hosts."""


def host_config(cluster: Cluster, plan: AddressPlan, source: ArtefactSource) -> HostConfig:
    """Return the configuration of every API-server host of `cluster`; nothing in it names a particular host.

    Raises KeyError if `source` has no checksum for a program.
    """
    artefacts = catalogue(cluster.spec.kubernetes.version)
    for program in (*PROGRAMS, "etcd"):
        source.checksum(artefacts[program])
    return HostConfig(
        files=(*units.files(cluster, plan), *_configuration(cluster, plan), *_programs(cluster)),
        secrets=secrets(cluster),
        downloads=(
            *(Download(artefacts[program], path=f"{paths.BIN}/{program}") for program in PROGRAMS),
            program_download(artefacts["etcd"], "etcdctl"),
        ),
        users=units.accounts(cluster, plan),
        start=tuple(unit.name for unit in units.units(cluster, plan)),
        packages=PACKAGES,
        refresh=refreshing.refresh(cluster, plan),
    )


def secrets(cluster: Cluster) -> tuple[SecretRef, ...]:
    """Return the secrets of an API-server host. Certificates are 0644 and keys 0600 (CIS 1.1.20, 1.1.21)."""
    pki = paths.PKI
    certificates = {
        "kubernetes-ca.crt": f"{pki}/ca.crt",
        "kubernetes-ca-signing.crt": paths.SIGNING_CA,
        "kubelet-serving-ca.crt": paths.SERVING_CA,
        "kubelet-serving-ca-signing.crt": paths.SERVING_SIGNING_CA,
        "front-proxy-ca.crt": f"{pki}/front-proxy-ca.crt",
        "service-account.pub": f"{pki}/sa.pub",
        "etcd-client.crt": paths.ETCD_CERTIFICATE,
    }
    keys = {
        "kubernetes-ca.key": f"{pki}/ca.key",
        "kubelet-serving-ca.key": paths.SERVING_KEY,
        "front-proxy-ca.key": f"{pki}/front-proxy-ca.key",
        "service-account.key": f"{pki}/sa.key",
        "etcd-client.key": paths.ETCD_KEY,
    }
    return (
        *(SecretRef(name, path, 0o644) for name, path in certificates.items()),
        *(SecretRef(name, path, 0o600) for name, path in keys.items()),
        *metrics_keys.secrets(),
        *(metrics_relay.secrets() if metrics_relay.is_on(cluster) else ()),
        # kube-apiserver takes one file of authorities for all its etcds.
        *(SecretRef(f"etcd-{role}-ca.crt", paths.ETCD_CA, 0o644) for role in ROLES),
        SecretRef(audit_log.SECRET, audit_log.PATH, 0o600),
        SecretRef("encryption-config.yaml", f"{paths.KUBERNETES}/encryption-config.yaml", 0o600),
        *(
            (SecretRef(STORAGE_CLASSES, f"{paths.CONFIG}/{STORAGE_CLASSES}", 0o600),)
            if controllers_pool(cluster.spec)
            else ()
        ),
    )


def _configuration(cluster: Cluster, plan: AddressPlan) -> tuple[HostFile, ...]:
    settings = {
        "nodes": str(plan.nodes),
        "endpoint": plan.endpoint,
        "balancers": [str(address) for address in plan.balancers],
        "advertised": {"path": paths.ADVERTISED, "variable": kube_apiserver.ADVERTISED},
        "serving": serving.settings(cluster, plan),
        "ready_path": probe_path(),
        "kube_proxy": image(cluster, kube_proxy(cluster.spec.kubernetes.version)),
        "own_address_placeholder": kubeadm.OWN_ADDRESS,
        "users": {
            konnectivity.NAME: konnectivity.USER,
            serving.NAME: serving.USER,
            joining.NAME: joining.USER,
            reports.NAME: reports.USER,
            "node-labels": node_labels.USER,
            refreshing.KUBECONFIG: refreshing.USER,
            metrics_keys.NAME: metrics_keys.USER,
        }
        | ({"join-tokens": join_tokens.USER} if cluster.spec.cloud_workers else {})
        | ({"node-preflight": preflight.USER} if cluster.spec.checked_workers else {})
        | ({metrics_relay.NAME: metrics_relay.USER} if metrics_relay.is_on(cluster) else {})
        | ({gangs.NAME: gangs.USER} if cluster.spec.scheduling.gangs else {}),
        **({"relay_port": relay_port(cluster)} if metrics_relay.is_on(cluster) else {}),
        **({"pod_groups": pod_groups(cluster.spec.kubernetes.version)} if cluster.spec.scheduling.gangs else {}),
    }
    texts = {
        "kubeadm.yaml": kubeadm.render(cluster, plan),
        "manifests.json": manifests.render(cluster, plan),
        scheduler.FILE: scheduler.render(cluster),
        "host.json": json.dumps(settings, indent=1, sort_keys=True) + "\n",
    } | {path.name: path.read_text() for path in sorted((_HERE / "files").glob("*.yaml"))}
    # host.json and the scheduler's file are readable for all: the approver and the scheduler have no other rights here.
    return tuple(
        HostFile(f"{paths.CONFIG}/{name}", text, 0o644 if name in ("host.json", scheduler.FILE) else 0o600)
        for name, text in texts.items()
    )


def _programs(cluster: Cluster) -> tuple[HostFile, ...]:
    left_out = {
        *(() if cluster.spec.checked_workers else ("preflight",)),
        *(() if cluster.spec.scheduling.gangs else ("gangs",)),
        *(f"bucket_{kind}" for kind in BUCKETS.values() if kind != BUCKETS[cluster.spec.control_plane.cloud]),
    }
    ours = (
        HostFile(f"{paths.LIBRARY}/menagerie_host/{path.name}", without_words(path.read_text()))
        for path in sorted((_HERE / "host").glob("*.py"))
        if path.stem not in left_out
    )
    return (*ours, programs.collector(), *(metrics_relay.files(cluster) if metrics_relay.is_on(cluster) else ()))
