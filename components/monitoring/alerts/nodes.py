"""Alerts on nodes and their hosts."""

from __future__ import annotations

from cluster import preflight
from cluster.monitoring import Severity
from components.monitoring.alert import Alert

_READY = 'kube_node_status_condition{condition="Ready", status="true"}'
_SITE = "label_menagerie_dev_site"
_OBJECTS = ("kube-state-metrics",)
_HOSTS = ("node",)
_STATUS = "status CLUSTER"
_REPAIR = "repair CLUSTER --dry-run"

ALERTS = (
    Alert(
        name="NodesNotReadyTogether",
        # A brake of repairs stops at the same share by default (repair.max_unhealthy).
        expr=f"sum({_READY}) / count({_READY}) < 0.6",
        holds="5m",
        severity=Severity.CRITICAL,
        says="Only {{ $value | humanizePercentage }} of nodes are Ready.",
        means="Many nodes at once are never the cause. Look at what they report to; do not reboot or delete them.",
        jobs=_OBJECTS,
        runbook="all-nodes-not-ready",
        first=_STATUS,
    ),
    Alert(
        name="SiteCutOff",
        expr=f'sum by ({_SITE}) ({_READY} * on (node) group_left ({_SITE}) kube_node_labels{{{_SITE}!=""}}) == 0',
        holds="5m",
        severity=Severity.CRITICAL,
        says="No node of site {{ $labels.label_menagerie_dev_site }} is Ready.",
        means="The tunnels to the site, its power or its network. Its pods keep running for a day and are not evicted.",
        jobs=_OBJECTS,
        runbook="site-cut-off",
        first=_STATUS,
    ),
    Alert(
        name="NodeNotReady",
        expr=f"{_READY} == 0",
        holds="15m",
        severity=Severity.WARNING,
        says="Node {{ $labels.node }} is not Ready.",
        means="It takes no new pods. `repair` reboots it after ten minutes, where it runs.",
        jobs=_OBJECTS,
        runbook="node-does-not-join",
        first=_STATUS,
    ),
    Alert(
        name="PreflightFailed",
        expr=f'kube_node_status_condition{{condition="{preflight.CONDITION}", status="false"}} == 1',
        holds="30m",
        severity=Severity.WARNING,
        says="Node {{ $labels.node }} does not pass its own checks.",
        means="It has a taint and takes no new pods. The condition says what is wrong: a GPU, a disk, a link or the clock.",
        jobs=_OBJECTS,
        runbook="preflight-failed",
        first=_REPAIR,
    ),
    Alert(
        name="NodeServiceDown",
        expr="menagerie_unit_active == 0",
        holds="10m",
        severity=Severity.WARNING,
        says="{{ $labels.unit }} of node {{ $labels.node }} does not run.",
        means="systemd restarts it and it ends again. Without flanneld, new nodes are unreachable for pods there.",
        jobs=_HOSTS,
        runbook="node-does-not-join",
        first=_STATUS,
    ),
    Alert(
        name="KubeletCertificateExpires",
        # A kubelet renews after 70 to 90 % of a year (client-go, certificate manager), so 36 days are left at the least.
        expr="kubelet_certificate_manager_client_ttl_seconds < 14 * 86400",
        holds="1h",
        severity=Severity.WARNING,
        says="The certificate of the kubelet on {{ $labels.node }} expires in {{ $value | humanizeDuration }}.",
        means="The kubelet did not renew it in time: nobody approves its request, or its clock is wrong.",
        jobs=("kubelet",),
        runbook="certificates",
        first="status CLUSTER keys",
    ),
    Alert(
        name="ClockNotSynchronised",
        expr="node_timex_sync_status == 0",
        holds="30m",
        severity=Severity.WARNING,
        says="The clock of {{ $labels.node }} is not synchronised.",
        means="Certificates and leases need the same time everywhere. The host's time servers do not answer.",
        jobs=_HOSTS,
        runbook="certificates",
        first="status CLUSTER keys",
    ),
    Alert(
        name="NodeDiskFull",
        expr="node_filesystem_avail_bytes / node_filesystem_size_bytes < 0.05",
        holds="15m",
        severity=Severity.WARNING,
        says="{{ $labels.mountpoint }} of {{ $labels.node }} has {{ $value | humanizePercentage }} left.",
        means="Images, logs or files of pods fill it. The kubelet evicts pods before the disk of images is full.",
        jobs=_HOSTS,
        runbook="node-disk",
        first=_STATUS,
    ),
    Alert(
        name="NodeReadOnly",
        expr='node_filesystem_readonly{mountpoint="/"} == 1',
        holds="5m",
        severity=Severity.WARNING,
        says="The system disk of {{ $labels.node }} is read-only.",
        means="Linux makes a file system read-only after errors of its disk. Pods there fail as soon as they write.",
        jobs=_HOSTS,
        runbook="node-disk",
        first=_STATUS,
    ),
    Alert(
        name="NeighbourTableFull",
        expr=(
            "increase(menagerie_neighbours_overflows_total[15m]) > 0"
            " or menagerie_neighbours_entries / menagerie_neighbours_limit > 0.9"
        ),
        holds="5m",
        severity=Severity.WARNING,
        says="The neighbour table ({{ $labels.family }}) of {{ $labels.node }} is full, or nearly.",
        means="New connections of this host wait for seconds. The rack has more machines than the hosts file lists.",
        jobs=_HOSTS,
        runbook="slow-connections",
        first="configure CLUSTER --tags neighbours --dry-run",
    ),
)
