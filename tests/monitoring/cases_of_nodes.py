"""Samples with which alerts on nodes, on Menagerie's own programs and on Ceph fire, and with which they must not."""

from __future__ import annotations

from cluster import preflight
from tests.monitoring.cases import Case, Series, ups


def ready(*values: int, condition: str = "Ready", status: str = "true") -> Series:
    return {
        f'kube_node_status_condition{{node="n{number}",condition="{condition}",status="{status}"}}': f"{value}x60"
        for number, value in enumerate(values, 1)
    }


_LABELS = {
    f'kube_node_labels{{node="n{number}",label_menagerie_dev_site="{site}"}}': "1x60"
    for number, site in ((1, "fra"), (2, "fra"), (3, "osl"))
}
_NODE = {"node": "n1"}
_ROOT = 'node="n1",mountpoint="/",device="/dev/vda1",fstype="ext4"'
_OF_ROOT = {"node": "n1", "mountpoint": "/", "device": "/dev/vda1", "fstype": "ext4"}
_TABLE = 'node="n1",family="ipv4"'

NODES = (
    Case("NodesNotReadyTogether", 6, ready(1, 0), ready(1, 1, 1, 0, 0), {}, "Only 50% of nodes are Ready."),
    Case(
        "SiteCutOff", 6, {**ready(0, 0, 1), **_LABELS}, {**ready(0, 1, 1), **_LABELS},
        {"label_menagerie_dev_site": "fra"}, "No node of site fra is Ready.",
    ),
    Case(
        "NodeNotReady", 16, ready(0, 1), ready(1, 1), {**_NODE, "condition": "Ready", "status": "true"},
        "Node n1 is not Ready.",
    ),
    Case(
        "PreflightFailed", 31, ready(1, condition=preflight.CONDITION, status="false"),
        {**ready(0, condition=preflight.CONDITION, status="false"), **ready(1, condition="DiskPressure", status="false")},
        {**_NODE, "condition": preflight.CONDITION, "status": "false"}, "Node n1 does not pass its own checks.",
    ),
    Case(
        "KubeletCertificateExpires", 61, {'kubelet_certificate_manager_client_ttl_seconds{node="n1"}': "90000x90"},
        {'kubelet_certificate_manager_client_ttl_seconds{node="n1"}': "3110400x90"}, _NODE,
        "The certificate of the kubelet on n1 expires in 1d 1h 0m 0s.",
    ),
    Case(
        "ClockNotSynchronised", 31, {'node_timex_sync_status{node="n1"}': "0x60"},
        {'node_timex_sync_status{node="n1"}': "0x20 1 0x20"}, _NODE, "The clock of n1 is not synchronised.",
    ),
    Case(
        "NodeDiskFull", 16,
        {f"node_filesystem_avail_bytes{{{_ROOT}}}": "3x60", f"node_filesystem_size_bytes{{{_ROOT}}}": "100x60"},
        {f"node_filesystem_avail_bytes{{{_ROOT}}}": "6x60", f"node_filesystem_size_bytes{{{_ROOT}}}": "100x60"},
        _OF_ROOT, "/ of n1 has 3% left.",
    ),
    Case(
        "NodeReadOnly", 6, {f"node_filesystem_readonly{{{_ROOT}}}": "1x9"},
        {f"node_filesystem_readonly{{{_ROOT}}}": "0x9", 'node_filesystem_readonly{node="n1",mountpoint="/usr"}': "1x9"},
        _OF_ROOT, "The system disk of n1 is read-only.",
    ),
    Case(
        "NeighbourTableFull", 7,
        {f"menagerie_neighbours_entries{{{_TABLE}}}": "95x60", f"menagerie_neighbours_limit{{{_TABLE}}}": "100x60"},
        {f"menagerie_neighbours_entries{{{_TABLE}}}": "50x60", f"menagerie_neighbours_limit{{{_TABLE}}}": "100x60",
         f"menagerie_neighbours_overflows_total{{{_TABLE}}}": "8x60"},
        {"node": "n1", "family": "ipv4"}, "The neighbour table (ipv4) of n1 is full, or nearly.",
    ),
    Case(
        "NeighbourTableFull", 12, {f"menagerie_neighbours_overflows_total{{{_TABLE}}}": "8x5 9x60"}, None,
        {"node": "n1", "family": "ipv4"}, "The neighbour table (ipv4) of n1 is full, or nearly.",
    ),
)  # fmt: skip

_POD = 'controller="tenancy",instance="p1"'
_LAST = f"menagerie_controller_last_success_timestamp_seconds{{{_POD}}}"

OWN = (
    Case(
        "ControllerWithoutLeader", 6,
        {f"menagerie_controller_leader{{{_POD}}}": "0x9",
         'menagerie_controller_leader{controller="tenancy",instance="p2"}': "0x9"},
        {f"menagerie_controller_leader{{{_POD}}}": "0x9",
         'menagerie_controller_leader{controller="tenancy",instance="p2"}': "1x9"},
        {"controller": "tenancy"}, "No pod of tenancy acts.",
    ),
    Case(
        "ControllerStale", 22, {f"menagerie_controller_leader{{{_POD}}}": "1x60", _LAST: "0x60"},
        {f"menagerie_controller_leader{{{_POD}}}": "1x60", _LAST: "0+60x60"},
        {"controller": "tenancy", "instance": "p1"}, "The last good round of tenancy was 22m 0s ago.",
    ),
    Case(
        "ControllerStale", 22, {f"menagerie_controller_leader{{{_POD}}}": "1x60", _LAST: "0x60"},
        {f"menagerie_controller_leader{{{_POD}}}": "0x60", _LAST: "0x60"},
        {"controller": "tenancy", "instance": "p1"}, "The last good round of tenancy was 22m 0s ago.",
    ),
    Case(
        "AutoscalerStale", 17, {"menagerie_autoscaler_last_pass_timestamp_seconds": "0x60"},
        {"menagerie_autoscaler_last_pass_timestamp_seconds": "0+60x60"}, {},
        "The last good pass of the autoscaler was 17m 0s ago.",
    ),
    Case(
        "NoMachines", 61, {'menagerie_autoscaler_resting{pool="gpu"}': "1x90"},
        {'menagerie_autoscaler_resting{pool="gpu"}': "1x50 0 1x50"}, {"pool": "gpu"},
        "The cloud has given no machine for pool gpu for an hour.",
    ),
    Case(
        "TargetsDown", 16, ups("kubelet", 0, 0, 1, 1, 1, 1, 1, 1, 1, 1), ups("kubelet", 0, 1, 1, 1, 1, 1, 1, 1, 1, 1),
        {"job": "kubelet"}, "20% of the endpoints of kubelet do not answer.",
    ),
    Case(
        "DeadMansSwitch", 1, {}, None, {},
        "Alerts arrive. This alert fires always; what receives it must warn when it no longer does.",
    ),
    Case("JobMissing", 16, ups("node", 1), {**ups("node", 0), **ups("kubelet", 1)}, {"job": "kubelet"},
         "Prometheus has no endpoint of job kubelet."),
    Case(
        "SeriesNearLimit", 16, {'scrape_samples_post_metric_relabeling{job="node",instance="a"}': "3700000x60"},
        {'scrape_samples_post_metric_relabeling{job="node",instance="a"}': "3500000x60"}, {},
        "Endpoints serve 3.7M series.",
    ),
)  # fmt: skip
