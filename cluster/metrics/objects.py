"""kube-state-metrics: the state of objects of the API."""

from __future__ import annotations

from cluster.metrics.model import Exporter, Per, counter, gauge, gauges

_CONDITIONS = 3 * 12
"""Three states for each condition of a node: five of the kubelet and flannel, ours, and those of node-problem-detector."""
_RESOURCES = 10
"""Resources of a node: cpu, memory, pods, ephemeral storage, huge pages, GPUs, RDMA."""
_QUOTA = 2 * 30
"""Hard and used of what Menagerie's quotas count, and of what a spec adds."""
_SYSTEM = 20
"""Deployments, or DaemonSets, of system namespaces. Those of users are as many as namespaces."""
_POD = ("namespace", "pod", "uid")

KUBE_STATE_METRICS = Exporter(
    "kube-state-metrics",
    "kube-state-metrics 2.18.0, docs/metrics",
    (
        gauge("kube_node_info", "node", "kernel_version", "os_image", "kubelet_version", "internal_ip", per=Per.NODE),
        gauge(
            "kube_node_labels",
            *("node", "label_menagerie_dev_site", "label_menagerie_dev_rack", "label_openai_com_team"),
            *("label_node_restriction_kubernetes_io_menagerie_pool",),
            per=Per.NODE,
        ),
        gauge("kube_node_spec_unschedulable", "node", per=Per.NODE),
        gauge("kube_node_spec_taint", "node", "key", "value", "effect", per=Per.NODE, times=4),
        gauge("kube_node_status_condition", "node", "condition", "status", per=Per.NODE, times=_CONDITIONS),
        gauge("kube_node_created", "node", per=Per.NODE),
        *gauges(
            "kube_node_status_capacity kube_node_status_allocatable",
            *("node", "resource", "unit"),
            per=Per.NODE,
            times=_RESOURCES,
        ),
        gauge("kube_pod_info", *_POD, "node", "host_ip", "pod_ip", "created_by_kind", "created_by_name", per=Per.POD),
        gauge("kube_pod_status_phase", *_POD, "phase", per=Per.POD, times=5),
        gauge("kube_pod_status_ready", *_POD, "condition", per=Per.POD, times=3),
        *gauges(
            "kube_pod_container_resource_requests kube_pod_container_resource_limits",
            *(*_POD, "container", "node", "resource", "unit"),
            per=Per.CONTAINER,
            times=3,
        ),
        counter("kube_pod_container_status_restarts_total", *_POD, "container", per=Per.CONTAINER),
        gauge("kube_resourcequota", "namespace", "resourcequota", "resource", "type", per=Per.NAMESPACE, times=_QUOTA),
        gauge("kube_namespace_status_phase", "namespace", "phase", per=Per.NAMESPACE, times=2),
        *gauges(
            """
            kube_daemonset_status_desired_number_scheduled kube_daemonset_status_number_ready
            kube_daemonset_status_number_unavailable kube_daemonset_status_updated_number_scheduled
            """,
            *("namespace", "daemonset"),
            times=_SYSTEM,
        ),
        *gauges(
            """
            kube_deployment_spec_replicas kube_deployment_status_replicas_available
            kube_deployment_status_replicas_unavailable kube_deployment_status_replicas_ready
            """,
            *("namespace", "deployment"),
            per=Per.NAMESPACE,
        ),
        gauge(
            "kube_persistentvolumeclaim_status_phase",
            *("namespace", "persistentvolumeclaim", "phase"),
            per=Per.NAMESPACE,
            times=3 * 5,
        ),
    ),
)
