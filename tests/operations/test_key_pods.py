"""Which pods may still trust the content that kube-root-ca.crt had when they started."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kubernetes import client

from operations.keys import pods
from operations.keys.pods import LaggingPods, behind, is_late

SINCE = datetime(2026, 7, 1, 12, tzinfo=UTC)
TOKEN = client.V1VolumeProjection(
    service_account_token=client.V1ServiceAccountTokenProjection(path="token"),
)
ROOT = client.V1VolumeProjection(config_map=client.V1ConfigMapProjection(name="kube-root-ca.crt"))
PROJECTED = client.V1Volume(name="x", projected=client.V1ProjectedVolumeSource(sources=[TOKEN, ROOT]))


def container(image: str = "x:1", **more: Any) -> client.V1Container:
    return client.V1Container(name="c", image=image, **more)


def status(*started: int | None) -> list[client.V1ContainerStatus]:
    """Minutes between `SINCE` and the start of containers; None for one that does not run."""
    states = [
        client.V1ContainerState(
            running=None if each is None else client.V1ContainerStateRunning(started_at=SINCE + timedelta(minutes=each))
        )
        for each in started
    ]
    return [
        client.V1ContainerStatus(name="c", image="", image_id="", ready=True, restart_count=0, state=s) for s in states
    ]


def pod(
    *started: int | None,
    volume: client.V1Volume | None = PROJECTED,
    namespace: str = "default",
    image: str = "x:1",
    inits: tuple[int | None, ...] = (),
    **of_container: Any,
) -> client.V1Pod:
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name="p", namespace=namespace),
        spec=client.V1PodSpec(containers=[container(image, **of_container)], volumes=[volume] if volume else None),
        status=client.V1PodStatus(container_statuses=status(*started), init_container_statuses=status(*inits)),
    )


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (pod(-1), True),
        (pod(1), False),
        (pod(1, -1), True),
        (pod(None), False),
        (pod(1, inits=(-1,)), True),
        (pod(1, inits=(None,)), False),
    ],
)
def test_a_program_that_started_before_may_have_read_it_only_once(pod: client.V1Pod, expected: bool) -> None:
    """A program that was restarted since has read it again."""
    assert is_late(pod, SINCE) is expected


REFERENCE = client.V1EnvVarSource(
    config_map_key_ref=client.V1ConfigMapKeySelector(key="ca.crt", name="kube-root-ca.crt")
)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (pod(-1, volume=None), False),
        (pod(-1, volume=client.V1Volume(name="x", empty_dir=client.V1EmptyDirVolumeSource())), False),
        (
            pod(
                -1, volume=client.V1Volume(name="x", config_map=client.V1ConfigMapVolumeSource(name="kube-root-ca.crt"))
            ),
            True,
        ),
        (pod(-1, volume=client.V1Volume(name="x", config_map=client.V1ConfigMapVolumeSource(name="mine"))), False),
        (pod(-1, volume=None, env=[client.V1EnvVar(name="CA", value_from=REFERENCE)]), True),
        (pod(-1, volume=None, env=[client.V1EnvVar(name="CA", value="x")]), False),
        (
            pod(
                -1,
                volume=None,
                env_from=[client.V1EnvFromSource(config_map_ref=client.V1ConfigMapEnvSource(name="kube-root-ca.crt"))],
            ),
            True,
        ),
    ],
)
def test_it_is_mounted_or_in_a_variable(pod: client.V1Pod, expected: bool) -> None:
    assert is_late(pod, SINCE) is expected


@pytest.mark.parametrize(
    ("image", "namespace", "expected"),
    [
        ("registry.k8s.io/kube-proxy:v1.36.4", "kube-system", False),
        ("kube-proxy:v1.40.0", "kube-system", False),
        ("registry.k8s.io/kube-proxy:v1.35.4", "kube-system", True),
        ("registry.k8s.io/kube-proxy:v1.36.4", "default", True),
        ("registry.k8s.io/coredns/coredns:v1.14.6", "kube-system", True),
    ],
)
def test_kube_proxy_reloads_it_since_1_36(image: str, namespace: str, expected: bool) -> None:
    assert is_late(pod(-1, image=image, namespace=namespace), SINCE) is expected


def test_each_controller_has_a_command_and_pods_that_no_rollout_recreates_are_deleted() -> None:
    late = (
        LaggingPods("kube-system", "Deployment", "coredns", ("coredns-1", "coredns-2")),
        LaggingPods("ml", "Job", "train", ("train-0", "train-1")),
        LaggingPods("ml", "", "", ("alone",)),
    )
    text = str(behind(late, SINCE, "./menagerie keys rotate lab kubernetes-ca"))
    assert text.splitlines()[1:4] == [
        "  kubectl -n kube-system rollout restart deployment/coredns",
        "  kubectl -n ml delete pod train-0 train-1   # Job train decides what follows",
        "  kubectl -n ml delete pod alone   # nothing recreates them",
    ]
    assert "2026-07-01 12:00 UTC" in text
    assert "--pods-follow" in text


def test_pods_of_a_deployment_are_found_by_their_replica_set_which_is_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def owned(kind: str, name: str) -> list[client.V1OwnerReference]:
        return [client.V1OwnerReference(api_version="apps/v1", kind=kind, name=name, uid="0", controller=True)]

    asked: list[tuple[str, str]] = []

    class Apps:
        def read_namespaced_replica_set(self, name: str, namespace: str, **_: Any) -> client.V1ReplicaSet:
            asked.append((namespace, name))
            owners = owned("Deployment", "web") if name == "web-1" else None
            spec = client.V1ReplicaSetSpec(selector=client.V1LabelSelector())
            return client.V1ReplicaSet(metadata=client.V1ObjectMeta(owner_references=owners), spec=spec)

    pods_ = []
    for name, owners in (
        ("web-1-b", owned("ReplicaSet", "web-1")),
        ("web-1-a", owned("ReplicaSet", "web-1")),
        ("own-1", owned("ReplicaSet", "own")),
        ("db-0", owned("StatefulSet", "db")),
        ("alone", None),
    ):
        made = pod(-1)
        made.metadata.name, made.metadata.owner_references = name, owners
        pods_.append(made)
    monkeypatch.setattr(pods, "pods", lambda _: iter([*pods_, pod(1)]))
    monkeypatch.setattr(pods.client, "AppsV1Api", lambda _: Apps())
    assert pods.late(client.ApiClient(), SINCE) == (
        LaggingPods("default", "", "", ("alone",)),
        LaggingPods("default", "Deployment", "web", ("web-1-a", "web-1-b")),
        LaggingPods("default", "ReplicaSet", "own", ("own-1",)),
        LaggingPods("default", "StatefulSet", "db", ("db-0",)),
    )
    assert asked == [("default", "web-1"), ("default", "own")]
