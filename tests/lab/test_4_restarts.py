"""Parts of a node that restart with existing kernel state."""

from __future__ import annotations

import pytest
from kubernetes import client

from clients.waiting import is_ready, wait_until
from cluster.load import find_cluster, load_cluster
from operations.stack import access_to
from operations.verify.workload import workload
from tests.lab.support import ROOT, Run

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

NODE = "worker-1"


def test_services_stay_reachable_while_kube_proxy_restarts(lab: Run) -> None:
    api = access_to(load_cluster(find_cluster("lab", ROOT))).api()
    core = client.CoreV1Api(api)

    def proxy() -> client.V1Pod:
        pods_ = core.list_namespaced_pod(
            "kube-system", label_selector="k8s-app=kube-proxy", field_selector=f"spec.nodeName={NODE}"
        )
        return pods_.items[0]

    with workload(api, frozenset({NODE}), print) as pods:
        pod = pods.pods()[NODE]
        url = f"http://probe.{pods.namespace}.svc.cluster.local/"
        wait_until(lambda: "" if pods.word in pods.fetch(pod, url) else "no answer yet", 60, print)
        before = proxy().metadata.name
        core.delete_namespaced_pod(before, "kube-system")
        missed = []

        def missing() -> str:
            missed.append(pods.word not in pods.fetch(pod, url))
            now = proxy()
            return "" if now.metadata.name != before and is_ready(now) else "no new kube-proxy yet"

        wait_until(missing, 60, print)
        for _ in range(10):
            missing()
    assert not any(missed)
