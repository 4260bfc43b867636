"""The scrape jobs: which endpoints a cluster has. Rules and dashboards rely on these names and labels."""

from __future__ import annotations

from cluster.metrics import control_plane, etcds, gpus, kubelets, nodes, objects, own
from cluster.metrics.model import Job, Per

JOBS = (
    Job("kube-apiserver", control_plane.API_SERVER, Per.API_SERVER, 30, "API servers"),
    Job("kube-scheduler", control_plane.SCHEDULER, Per.API_SERVER, 30, "schedulers, of which one leads"),
    Job("kube-controller-manager", control_plane.CONTROLLER_MANAGER, Per.API_SERVER, 30, "controller managers"),
    Job("konnectivity-server", control_plane.KONNECTIVITY_SERVER, Per.API_SERVER, 30, "tunnels, at API servers"),
    Job("etcd-main", etcds.ETCD, Per.MEMBER_OF_MAIN, 30, "members of etcd main"),
    Job("etcd-events", etcds.ETCD, Per.MEMBER_OF_EVENTS, 30, "members of etcd events"),
    Job("node", nodes.NODE_EXPORTER, Per.NODE, 60, "hosts of nodes", ("node",)),
    Job("kubelet", kubelets.KUBELET, Per.NODE, 60, "kubelets", ("node",)),
    Job(
        "kubelet-resources", kubelets.RESOURCES, Per.NODE, 60, "CPU and memory of nodes, pods and containers", ("node",)
    ),
    Job("cadvisor", kubelets.CADVISOR, Per.NODE, 60, "cgroups of containers", ("node",)),
    Job("konnectivity-agent", control_plane.KONNECTIVITY_AGENT, Per.NODE, 60, "tunnels, at nodes", ("node",)),
    Job("gpu", gpus.DCGM_EXPORTER, Per.GPU_NODE, 60, "NVIDIA's GPUs", ("node",)),
    Job("kube-state-metrics", objects.KUBE_STATE_METRICS, Per.CLUSTER, 60, "objects of the API"),
    Job("coredns", control_plane.COREDNS, Per.DNS, 60, "DNS of pods"),
    Job("controllers", own.CONTROLLER, Per.CONTROLLER, 60, "Menagerie's controllers", ("controller",)),
    Job("autoscaler", own.AUTOSCALER, Per.AUTOSCALER, 60, "`autoscaler run --metrics`"),
    Job("ceph", own.CEPH, Per.SITE_WITH_CEPH, 60, "Ceph's managers"),
)
"""docs/how-to/monitoring.md says where each endpoint listens; `components.monitoring.endpoints` has the ports."""

BY_NAME = {job.name: job for job in JOBS}
