"""The kubelet's API for devices of pods, served by a real gRPC server on a socket."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from menagerie_node_metrics import Unanswered, devices

Answer = Callable[[bytes, Any], bytes]


def field(number: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    head = bytes([value & 0x7F | (0x80 if value > 0x7F else 0)])
    return head + (varint(value >> 7) if value > 0x7F else b"")


def of_container(resource: str, *ids: str) -> bytes:
    """Return a ContainerDevices with the NUMA node of its devices, as in `api.proto` of the kubelet."""
    numa = field(1, varint(1 << 3) + varint(1))
    return field(1, resource) + b"".join(field(2, each) for each in ids) + field(3, numa)


def pod(namespace: str, name: str, *each: bytes) -> bytes:
    """Return a PodResources. Its containers also have exclusive CPUs and memory."""
    cpus = field(3, varint(7) + varint(300))
    memory = field(4, field(1, "hugepages-1Gi") + varint(2 << 3) + varint(1 << 40))
    containers = (field(3, field(1, "main") + field(2, one) + cpus + memory) for one in each)
    return field(1, field(1, name) + field(2, namespace) + b"".join(containers))


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "kubelet.sock")


@contextmanager
def kubelet(path: str, answer: Answer) -> Iterator[None]:
    """Serve the one method of `v1.PodResourcesLister` that is called."""
    handler = grpc.unary_unary_rpc_method_handler(answer, lambda data: data, lambda data: data)
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": handler}),))
    server.add_insecure_port(f"unix:{path}")
    server.start()
    try:
        yield
    finally:
        server.stop(None).wait()


def test_gpus_belong_to_the_pods_that_have_them(path: str) -> None:
    message = (
        pod("team-a", "train-0", of_container("nvidia.com/gpu", "GPU-a", "GPU-b"))
        + pod("team-b", "shared", of_container("nvidia.com/gpu", "GPU-c::3"), of_container("rdma/hca", "mlx5_0"))
        + pod("kube-system", "coredns")
    )
    with kubelet(path, lambda request, _: message if request == b"" else b""):
        assert devices.pods(path) == {
            "GPU-a": [("team-a", "train-0")],
            "GPU-b": [("team-a", "train-0")],
            "GPU-c": [("team-b", "shared")],
        }


def test_an_answer_of_several_megabytes_arrives_whole(path: str) -> None:
    """Larger than HTTP/2's first window of 64 KiB, and than a frame."""
    message = b"".join(
        pod("n", f"p-{index}", of_container("nvidia.com/gpu", f"GPU-{index}"), of_container("x.org/y", "z" * 50_000))
        for index in range(60)
    )
    assert len(message) > 3_000_000
    with kubelet(path, lambda *_: message):
        assert len(devices.pods(path)) == 60


def test_no_pod_has_a_device(path: str) -> None:
    with kubelet(path, lambda *_: b""):
        assert devices.pods(path) == {}


def test_a_refusal_is_no_answer(path: str) -> None:
    def refuse(_: bytes, context: Any) -> bytes:
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
        return b""

    with kubelet(path, refuse), pytest.raises(Unanswered, match="the kubelet refused"):
        devices.pods(path)


def test_without_a_kubelet_there_is_no_answer(path: str) -> None:
    with pytest.raises(Unanswered, match=r"kubelet\.sock: .*No such file"):
        devices.pods(path)


def test_a_kubelet_that_hangs_is_not_waited_for(path: str) -> None:
    gone = threading.Event()

    def hang(*_: object) -> bytes:
        gone.wait(20)
        return b""

    before = time.monotonic()
    with kubelet(path, hang):
        with pytest.raises(Unanswered, match="timed out|no answer in time"):
            devices.pods(path, 0.3)
        gone.set()
    assert time.monotonic() - before < 15


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"", "closed the connection"),
        (b"\0\0", "closed the connection"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9, "closed the connection"),
        (struct.pack(">I", 4)[1:] + bytes([3, 0, 0, 0, 0, 1]) + bytes(4), "ended the call"),
        (struct.pack(">I", 8)[1:] + bytes([7, 0, 0, 0, 0, 0]) + bytes(8), "ended the call"),
    ],
)
def test_what_is_no_grpc_is_no_answer(path: str, sent: bytes, why: str) -> None:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()

    def serve() -> None:
        connection, _ = listening.accept()
        connection.recv(1 << 16)
        connection.sendall(sent)
        connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    with pytest.raises(Unanswered, match=why):
        devices.pods(path)
    thread.join()
    listening.close()


@pytest.mark.parametrize("message", [b"\x0a", b"\x0a\x05ab", b"\x0b", b"\xff" * 12, b"\x09\x00"])
def test_a_message_that_is_cut_off_is_refused(message: bytes) -> None:
    with pytest.raises(ValueError, match=r"the kubelet's answer is"):
        devices.assigned(message)
