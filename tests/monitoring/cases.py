"""Samples with which each alert fires, and samples with which it must not, in the notation of `promtool test rules`.

A sample a minute. `0x9` is 0 ten times, `0+6x9` counts up by 6, `_` is no sample. Names of labels are those that scrapes give.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

Series = Mapping[str, str]


class Case(NamedTuple):
    """An alert that fires `at` minutes after the first of the bad samples, and not with the good ones.

    labels: those of the alert, without severity and cluster. says: its message. good: None if it fires always.
    """

    alert: str
    at: int
    bad: Series
    good: Series | None
    labels: Mapping[str, str]
    says: str


def counters(name: str, label: str, **steps: int) -> Series:
    """Return counters that grow each minute, by the value of a label."""
    return {f'{name}{{{label}="{value}"}}': f"0+{step}x60" for value, step in steps.items()}


def buckets(name: str, labels: str, *steps: tuple[str, int]) -> Series:
    """Return the buckets of a histogram that grow each minute: (upper bound, step)."""
    return {f'{name}_bucket{{{labels},le="{bound}"}}': f"0+{step}x60" for bound, step in steps}


def ups(job: str, *values: int) -> Series:
    return {
        f'up{{job="{job}",instance="{name}"}}': f"{value}x60" for name, value in zip("abcdefghij", values, strict=False)
    }


_CODES = "apiserver_request_total"
_TOOK = ("apiserver_request_duration_seconds", 'verb="PUT",subresource="status"')
_LEADS = 'leader_election_master_status{{job="kube-{}",name="kube-{}",instance="{}"}}'

CONTROL_PLANE = (
    Case("ApiDown", 3, ups("kube-apiserver", 0, 0), ups("kube-apiserver", 0, 1), {}, "No API server answers."),
    Case("ApiDown", 3, {}, ups("kube-apiserver", 1), {}, "No API server answers."),
    Case(
        "ApiServerDown", 6, ups("kube-apiserver", 0, 1), ups("kube-apiserver", 1, 1),
        {"job": "kube-apiserver", "instance": "a"}, "API server a does not answer.",
    ),
    Case(
        "ApiErrors", 15, counters(_CODES, "code", **{"200": 94, "503": 6}),
        counters(_CODES, "code", **{"200": 99, "404": 30, "503": 1}), {}, "6% of requests to the API fail.",
    ),
    Case(
        "ApiSlow", 20, buckets(*_TOOK, ("1", 90), ("2", 100), ("+Inf", 100)),
        {**buckets(*_TOOK, ("1", 100), ("2", 100), ("+Inf", 100)),
         **buckets(_TOOK[0], 'verb="POST",subresource="exec"', ("1", 0), ("2", 9), ("+Inf", 9))},
        {"verb": "PUT"}, "1 % of PUT requests take longer than 1.9s.",
    ),
    Case(
        "ApiRejects", 15, counters("apiserver_flowcontrol_rejected_requests_total", "priority_level", low=3),
        counters("apiserver_flowcontrol_rejected_requests_total", "priority_level", low=0),
        {"priority_level": "low"}, "API servers reject requests of priority level low.",
    ),
    Case(
        "ControlLoopDown", 6,
        {_LEADS.format("scheduler", "scheduler", "a"): "0x20", _LEADS.format("controller-manager", "c", "a"): "1x20"},
        {_LEADS.format("scheduler", "scheduler", "a"): "0x20", _LEADS.format("scheduler", "scheduler", "b"): "1x20",
         _LEADS.format("controller-manager", "c", "a"): "1x20"},
        {"job": "kube-scheduler"}, "No kube-scheduler leads.",
    ),
    Case(
        "ControlLoopDown", 6, {_LEADS.format("scheduler", "scheduler", "a"): "1x20"}, None,
        {"job": "kube-controller-manager"}, "No kube-controller-manager leads.",
    ),
    Case(
        "TunnelsGone", 6,
        {'konnectivity_network_proxy_server_ready_backend_connections{instance="a"}': "0x20",
         'konnectivity_network_proxy_server_ready_backend_connections{instance="b"}': "4x20"},
        {'konnectivity_network_proxy_server_ready_backend_connections{instance="a"}': "1x20"},
        {"instance": "a"}, "No node has a tunnel to a.",
    ),
    Case(
        "DnsDown", 3, {'kube_deployment_status_replicas_available{namespace="kube-system",deployment="coredns"}': "0x9"},
        {'kube_deployment_status_replicas_available{namespace="kube-system",deployment="coredns"}': "1x9",
         'kube_deployment_status_replicas_available{namespace="team",deployment="coredns"}': "0x9"},
        {"namespace": "kube-system", "deployment": "coredns"}, "No pod of CoreDNS is available.",
    ),
    Case(
        "DnsFails", 15, counters("coredns_dns_responses_total", "rcode", NOERROR=80, SERVFAIL=20),
        counters("coredns_dns_responses_total", "rcode", NOERROR=80, NXDOMAIN=900, SERVFAIL=1), {},
        "20% of DNS answers are failures.",
    ),
    Case(
        "AddOnDown", 16,
        {'kube_daemonset_status_number_unavailable{namespace="kube-system",daemonset="kube-proxy"}': "2x20",
         'kube_daemonset_status_desired_number_scheduled{namespace="kube-system",daemonset="kube-proxy"}': "10x20"},
        {'kube_daemonset_status_number_unavailable{namespace="kube-system",daemonset="kube-proxy"}': "1x20",
         'kube_daemonset_status_desired_number_scheduled{namespace="kube-system",daemonset="kube-proxy"}': "10x20"},
        {"namespace": "kube-system", "daemonset": "kube-proxy"}, "20% of the pods of kube-proxy are not available.",
    ),
)  # fmt: skip

_MEMBER = 'job="etcd-main",instance="a"'
_OF_A = {"job": "etcd-main", "instance": "a"}
_FSYNC = "etcd_disk_wal_fsync_duration_seconds"

ETCDS = (
    Case(
        "EtcdNoQuorum", 2, ups("etcd-main", 1, 0, 0), ups("etcd-main", 1, 1, 0), {},
        "etcd main has no leader, or half of its members do not answer.",
    ),
    Case(
        "EtcdNoQuorum", 2, {f"etcd_server_has_leader{{{_MEMBER}}}": "0x9", **ups("etcd-main", 1)},
        {f"etcd_server_has_leader{{{_MEMBER}}}": "1x9", **ups("etcd-main", 1)}, {},
        "etcd main has no leader, or half of its members do not answer.",
    ),
    Case(
        "EtcdEventsDown", 6, ups("etcd-events", 1, 0, 0), {**ups("etcd-events", 1, 1, 0), **ups("etcd-main", 0, 0)}, {},
        "etcd events takes no writes.",
    ),
    Case(
        "EtcdMemberDown", 6, ups("etcd-main", 0, 1, 1), ups("etcd-main", 1, 1, 1), _OF_A,
        "Member a of etcd-main does not answer.",
    ),
    Case(
        "EtcdAlarm", 2, {f'etcd_debugging_server_alarms{{{_MEMBER},alarm_type="NOSPACE"}}': "1x9"},
        {f'etcd_debugging_server_alarms{{{_MEMBER},alarm_type="NOSPACE"}}': "0x9"}, {**_OF_A, "alarm_type": "NOSPACE"},
        "etcd main has the alarm NOSPACE.",
    ),
    Case(
        "EtcdNearQuota", 12,
        {f"etcd_mvcc_db_total_size_in_bytes{{{_MEMBER}}}": "90x20",
         f"etcd_server_quota_backend_bytes{{{_MEMBER}}}": "100x20"},
        {f"etcd_mvcc_db_total_size_in_bytes{{{_MEMBER}}}": "80x20",
         f"etcd_server_quota_backend_bytes{{{_MEMBER}}}": "100x20"},
        _OF_A, "a of etcd-main has used 90% of its quota.",
    ),
    Case(
        "EtcdSlowDisk", 15, buckets(_FSYNC, _MEMBER, ("0.008", 90), ("0.016", 100), ("+Inf", 100)),
        buckets(_FSYNC, _MEMBER, ("0.008", 100), ("0.016", 100), ("+Inf", 100)), _OF_A,
        "1 % of fsyncs of a (etcd-main) take longer than 15.2ms.",
    ),
    Case(
        "EtcdLeaderChanges", 60, {f"etcd_server_leader_changes_seen_total{{{_MEMBER}}}": "0x9 1x9 2x9 3x9 4x9 5x60"},
        {f"etcd_server_leader_changes_seen_total{{{_MEMBER}}}": "0x9 1x9 2x9 3x90"}, _OF_A,
        "etcd-main has changed its leader 5 times within an hour.",
    ),
    Case(
        "EtcdMemberCutOff", 12,
        {f'etcd_network_peer_sent_failures_total{{{_MEMBER},To="b"}}': "0+3x30", **ups("etcd-main", 1, 1)},
        {f'etcd_network_peer_sent_failures_total{{{_MEMBER},To="b"}}': "0+3x30", **ups("etcd-main", 1, 0)},
        {**_OF_A, "To": "b"}, "a of etcd-main does not reach a peer that runs.",
    ),
)  # fmt: skip

_GPUS = 'node="n1",resource="nvidia_com_gpu",unit="integer"'

GPUS = (
    Case(
        "GpuLost", 11,
        {f"kube_node_status_allocatable{{{_GPUS}}}": "7x20", f"kube_node_status_capacity{{{_GPUS}}}": "8x20"},
        {f"kube_node_status_allocatable{{{_GPUS}}}": "8x20", f"kube_node_status_capacity{{{_GPUS}}}": "8x20"},
        {"node": "n1", "resource": "nvidia_com_gpu", "unit": "integer"},
        "Node n1 can use 7 GPUs, fewer than it has.",
    ),
    Case(
        "GpuMemoryWornOut", 6, {'DCGM_FI_DEV_ROW_REMAP_FAILURE{node="n1",gpu="3"}': "1x9"},
        {'DCGM_FI_DEV_ROW_REMAP_FAILURE{node="n1",gpu="3"}': "0x9"}, {"node": "n1", "gpu": "3"},
        "GPU 3 of n1 could not remap a memory row.",
    ),
    Case(
        "RdmaLinkDrops", 12, {'node_infiniband_link_downed_total{node="n1",device="mlx5_0",port="1"}': "4x5 5x30"},
        {'node_infiniband_link_downed_total{node="n1",device="mlx5_0",port="1"}': "4x30"},
        {"node": "n1", "device": "mlx5_0", "port": "1"}, "The link of mlx5_0 of n1 went down.",
    ),
)  # fmt: skip
