"""Alerts on API servers, what runs next to them, and the add-ons that every pod needs."""

from __future__ import annotations

from cluster.monitoring import Severity
from components.monitoring.alert import Alert

_API = ("kube-apiserver",)
_STATUS = "status CLUSTER"
_FAILING = 0.03
"""Share of answers. A few fail in every rolling update of API servers. Not measured on a large cluster."""

ALERTS = (
    Alert(
        name="ApiDown",
        expr='absent(up{job="kube-apiserver"} == 1)',
        holds="2m",
        severity=Severity.CRITICAL,
        says="No API server answers.",
        means="Nothing changes any more: no pod starts, no verb works. Pods that run go on, and none is evicted.",
        jobs=_API,
        runbook="api-down",
        first="status CLUSTER etcd",
    ),
    Alert(
        name="ApiServerDown",
        expr='up{job="kube-apiserver"} == 0',
        holds="5m",
        severity=Severity.WARNING,
        says="API server {{ $labels.instance }} does not answer.",
        means="The load balancer leaves it out, and the others serve. A further loss may stop the API.",
        jobs=_API,
        runbook="api-server-down",
        first=_STATUS,
    ),
    Alert(
        name="ApiErrors",
        expr=(
            'sum(rate(apiserver_request_total{code=~"5.."}[5m])) / sum(rate(apiserver_request_total[5m]))'
            f" > {_FAILING}"
        ),
        holds="10m",
        severity=Severity.CRITICAL,
        says="{{ $value | humanizePercentage }} of requests to the API fail.",
        means="API servers answer with errors of their own (5xx): most often an etcd, or a webhook that does not answer.",
        jobs=_API,
        runbook="api-slow",
        first=_STATUS,
    ),
    Alert(
        name="ApiSlow",
        # Kubernetes' objective for changes and for reads of one object: 99 % within a second (API call latency SLO).
        expr=(
            "histogram_quantile(0.99, sum by (le, verb) (rate(apiserver_request_duration_seconds_bucket"
            '{verb=~"POST|PUT|PATCH|DELETE|GET", subresource!~"log|exec|attach|portforward|proxy"}[5m]))) > 1'
        ),
        holds="15m",
        severity=Severity.WARNING,
        says="1 % of {{ $labels.verb }} requests take longer than {{ $value | humanizeDuration }}.",
        means="Pods start late, and nodes may miss their heartbeats. The cause is most often etcd's disk, or a client that lists.",
        jobs=_API,
        runbook="api-slow",
        first=_STATUS,
    ),
    Alert(
        name="ApiRejects",
        expr="sum by (priority_level) (rate(apiserver_flowcontrol_rejected_requests_total[5m])) > 0",
        holds="10m",
        severity=Severity.WARNING,
        says="API servers reject requests of priority level {{ $labels.priority_level }}.",
        means="A client sends more than its level may. It gets 429 and slows down; other levels are not affected.",
        jobs=_API,
        runbook="api-slow",
        first=_STATUS,
    ),
    Alert(
        name="ControlLoopDown",
        expr=(
            'max by (job) (leader_election_master_status{job=~"kube-scheduler|kube-controller-manager"}) == 0'
            ' or absent(leader_election_master_status{job="kube-scheduler"})'
            ' or absent(leader_election_master_status{job="kube-controller-manager"})'
        ),
        holds="5m",
        severity=Severity.CRITICAL,
        says="No {{ $labels.job }} leads.",
        means="Without a scheduler no pod is placed; without a controller manager no job, node or volume makes progress.",
        jobs=("kube-scheduler", "kube-controller-manager"),
        runbook="control-loop-down",
        first=_STATUS,
    ),
    Alert(
        name="TunnelsGone",
        expr="konnectivity_network_proxy_server_ready_backend_connections == 0",
        holds="5m",
        severity=Severity.CRITICAL,
        says="No node has a tunnel to {{ $labels.instance }}.",
        means="Logs, exec and webhooks through this API server fail. Pods run, and nodes stay Ready.",
        jobs=("konnectivity-server",),
        runbook="tunnels-gone",
        first=_STATUS,
        when="node",
    ),
    Alert(
        name="DnsDown",
        expr='kube_deployment_status_replicas_available{namespace="kube-system", deployment="coredns"} == 0',
        holds="2m",
        severity=Severity.CRITICAL,
        says="No pod of CoreDNS is available.",
        means="Names do not resolve in pods, so new connections of nearly every job fail.",
        jobs=("kube-state-metrics",),
        runbook="pods-cannot-pull",
        first=_STATUS,
    ),
    Alert(
        name="DnsFails",
        expr=(
            'sum(rate(coredns_dns_responses_total{rcode="SERVFAIL"}[5m])) / sum(rate(coredns_dns_responses_total[5m]))'
            " > 0.05"
        ),
        holds="10m",
        severity=Severity.WARNING,
        says="{{ $value | humanizePercentage }} of DNS answers are failures.",
        means="CoreDNS does not get answers from the resolvers of its hosts, or cannot reach the API.",
        jobs=("coredns",),
        runbook="pods-cannot-pull",
        first=_STATUS,
    ),
    Alert(
        name="AddOnDown",
        expr=(
            'kube_daemonset_status_number_unavailable{namespace="kube-system"}'
            ' / kube_daemonset_status_desired_number_scheduled{namespace="kube-system"} > 0.1'
        ),
        holds="15m",
        severity=Severity.WARNING,
        says="{{ $value | humanizePercentage }} of the pods of {{ $labels.daemonset }} are not available.",
        means="An add-on fails on many nodes at once: an image, a change of the spec, or many nodes that are NotReady.",
        jobs=("kube-state-metrics",),
        runbook="add-on-down",
        first=_STATUS,
        when="node",
    ),
)
