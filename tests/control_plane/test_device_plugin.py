"""NVIDIA's device plugin itself, built from its Go module, on a machine without a GPU. In `make soak`, which builds it."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from components.control_plane import gpu
from tests.waiting import until

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timed,
    pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a GPU"),
]
WAITING = "No devices found. Waiting indefinitely."


class Plugin:
    """The program with a socket in place of the kubelet's, in its own folder."""

    def __init__(self, program: Path, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.log = folder, folder.with_suffix(".log")
        self.socket = self.kubelet()
        command = [str(program), f"--kubelet-socket={folder}/kubelet.sock"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def kubelet(self) -> socket.socket:
        """Create a socket that accepts registrations like the kubelet's; a new one looks like a restart of the kubelet."""
        (self.folder / "kubelet.sock").unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(self.folder / "kubelet.sock"))
        listening.listen()
        listening.setblocking(False)
        return listening

    def until_said(self, text: str, times: int = 1) -> None:
        until(lambda: self.log.read_text().count(text) >= times, self.log.read_text, 20, 0.05)

    def stop(self) -> int:
        self.process.terminate()
        self.socket.close()
        return self.process.wait(10)


@pytest.fixture
def start(program: Callable[[str], Path], tmp_path: Path) -> Iterator[Callable[..., Plugin]]:
    started: list[Plugin] = []

    def run(**environment: str) -> Plugin:
        folder = tmp_path / "device-plugins"
        folder.mkdir()
        started.append(Plugin(program("nvidia-device-plugin"), folder, {"PATH": os.environ["PATH"], **environment}))
        return started[-1]

    yield run
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()


@pytest.mark.soak
def test_without_a_gpu_it_starts_and_registers_none_with_the_kubelet(start: Callable[..., Plugin]) -> None:
    plugin = start(FAIL_ON_INIT_ERROR="false", MIG_STRATEGY="mixed")
    plugin.until_said(WAITING)
    with pytest.raises(BlockingIOError):  # the plugin has registered nothing
        plugin.socket.accept()
    assert [path.name for path in plugin.folder.iterdir()] == ["kubelet.sock"]
    assert plugin.process.poll() is None
    plugin.socket.close()
    plugin.socket = plugin.kubelet()
    plugin.until_said(WAITING, times=2)
    assert plugin.stop() == 0


@pytest.mark.soak
def test_as_the_cluster_starts_it_the_plugin_fails_at_once_on_a_node_without_nvml(
    start: Callable[..., Plugin], build: Callable[..., object]
) -> None:
    """On a labelled node without its driver the pod fails, which `status` shows; it never reports that there are no GPUs."""
    (daemon_set, _) = gpu.objects(build({"pools": {"workers": {"hardware": "dgx-h100"}}}))  # type: ignore[arg-type]
    (container,) = daemon_set["spec"]["template"]["spec"]["containers"]
    plugin = start(**{each["name"]: each["value"] for each in container["env"]})
    assert plugin.process.wait(20) == 1
    plugin.until_said("CDI --device-list-strategy options are only supported on NVML-based systems")
