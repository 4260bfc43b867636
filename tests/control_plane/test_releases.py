"""Programs of each supported release with our flags, kubeadm's configuration and its add-on."""

from __future__ import annotations

import http
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import yaml

from clients.access import Access
from cluster.artefacts import ArtefactSource, catalogue
from cluster.outputs import ArtefactOutput, ClusterOutputs
from cluster.releases import SUPPORTED
from cluster.spec import Cluster
from cluster.versions import KUBERNETES
from components.control_plane import controller_manager, kube_apiserver, kubeadm, paths, scheduler
from components.control_plane.flags import Flags
from components.control_plane.render import host_config
from network import addresses
from operations.upgrade import versions
from stacks.certificates import new_authority
from stacks.pki import encryption_config
from tests.control_plane.real_api import TOKEN, Line, RealApi, started, storing
from tests.ports import free_ports
from tests.waiting import until
from tools import manifest

pytestmark = pytest.mark.xdist_group("releases_flags")
RELEASES = [release.tested for release in SUPPORTED.values()]
Program = Callable[[str], Path]


@pytest.fixture(
    params=[pytest.param(each, marks=[pytest.mark.soak] if each != KUBERNETES else []) for each in RELEASES]
)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def at(program: Program, release: str) -> Program:
    """Return a function that returns the path of a program in the release."""
    return lambda name: program(manifest.at(name, release) if name.startswith("kube") else name)


@pytest.fixture
def cluster(build: Callable[..., Cluster], release: str) -> Cluster:
    return build({"kubernetes": {"version": release}, "control_plane": {"api_servers": 2}})


def written(cluster: Cluster, folder: Path) -> Path:
    """Write kubeadm's configuration with its certificates in a folder; return the file."""
    text = kubeadm.render(cluster, addresses.plan(cluster)).replace(kubeadm.OWN_ADDRESS, "10.77.0.11")
    path = folder / "kubeadm.yaml"
    path.write_text(text.replace(paths.PKI, str(folder / "pki")))
    return path


def output_of(command: list[str | Path]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kubeadm_accepts_our_configuration(at: Program, cluster: Cluster, tmp_path: Path) -> None:
    assert output_of([at("kubeadm"), "config", "validate", "--config", written(cluster, tmp_path)]).strip() == "ok"


@pytest.mark.soak
def test_kube_proxies_of_two_releases_differ_only_in_their_image(
    program: Program, build: Callable[..., Cluster], tmp_path: Path
) -> None:
    """So `upgrade` changes only the image (operations/upgrade/addons.py)."""
    rendered = set()
    for version in RELEASES:
        config = written(build({"kubernetes": {"version": version}}), tmp_path)
        words = ["init", "phase", "addon", "kube-proxy", "--config", config, "--print-manifest"]
        text = output_of([program(manifest.at("kubeadm", version)), *words])
        assert f"registry.k8s.io/kube-proxy:v{version}" in text
        rendered.add(text.replace(f":v{version}", ":any"))
    assert len(rendered) == 1


@pytest.fixture
def folder(at: Program, cluster: Cluster, tmp_path: Path) -> Path:
    """Return a folder in place of /etc/kubernetes, with certificates from the release's own kubeadm."""
    output_of([at("kubeadm"), "init", "phase", "certs", "all", "--config", written(cluster, tmp_path)])
    # kubeadm trusts and signs with one file. We have two, so that a rotation can trust more authorities than the one that signs.
    shutil.copy(tmp_path / "pki" / "ca.crt", tmp_path / "pki" / Path(paths.SIGNING_CA).name)
    serving = new_authority("kubelet-serving")
    for path, text in (
        (paths.SERVING_CA, serving.certificate),
        (paths.SERVING_SIGNING_CA, serving.certificate),
        (paths.SERVING_KEY, serving.private_key),
    ):
        (tmp_path / "pki" / Path(path).name).write_text(text)
    config = host_config(cluster, addresses.plan(cluster), _any_source(cluster))
    (tmp_path / "menagerie").mkdir()
    for file in config.files:
        if file.path.startswith(f"{paths.CONFIG}/"):
            (tmp_path / "menagerie" / Path(file.path).name).write_text(
                file.text.replace("/etc/kubernetes", str(tmp_path))
            )
    (tmp_path / "encryption-config.yaml").write_text(encryption_config({1: "00" * 32}))
    (tmp_path / "tokens.csv").write_text(f"{TOKEN},tester,1,system:masters\n")
    return tmp_path


def _any_source(cluster: Cluster) -> ArtefactSource:
    artefacts = catalogue(cluster.spec.kubernetes.version).values()
    return ArtefactSource(None, {artefact.source: "0" * 64 for artefact in artefacts})


def command(program: Path, values: Mapping[str, str], folder: Path) -> list[str]:
    """Return the command line of a unit, with a folder in place of /etc/kubernetes."""
    return [
        str(program),
        *(f"--{name}={value.replace('/etc/kubernetes', str(folder))}" for name, value in values.items()),
    ]


def answers(port: int, path: str) -> bool:
    try:
        return Line(port).ask("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})[0] == http.HTTPStatus.OK
    except OSError:
        return False


@contextmanager
def serves(name: str, words: list[str], port: int, path: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the program; yield when it answers."""
    with started(name, words, folder) as process:
        until_or_ended(lambda: answers(port, path), process, lambda: log_of(name, folder))
        yield process


def until_or_ended(true: Callable[[], bool], process: subprocess.Popen[bytes], log: Callable[[], str]) -> None:
    """Wait until `true` returns true, or fail at once when the program has exited."""

    def is_over() -> bool:
        if true():
            return True
        assert process.poll() is None, log()
        return False

    until(is_over, log, every_s=0.2)


def log_of(name: str, folder: Path) -> str:
    return (folder / f"{name}.log").read_text()[-3000:]


WORK = {
    "kube-controller-manager": "/api/v1/namespaces/default/serviceaccounts/default",
    "kube-scheduler": "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler",
}
"""Evidence that only working controllers create. Both programs answer on /healthz before they have built their controllers."""


def works(name: str, api: RealApi) -> bool:
    return api.call("GET", WORK[name])[0] == http.HTTPStatus.OK


def api_server(cluster: Cluster, folder: Path, etcd: str, port: int) -> Flags:
    """Return our flags; only for the test, etcd has no TLS, and a token replaces the client certificate."""
    ours = kube_apiserver.flags(cluster, addresses.plan(cluster))
    of_etcd = ("etcd-cafile", "etcd-certfile", "etcd-keyfile", "etcd-servers-overrides")
    own = {
        "etcd-servers": etcd,
        "advertise-address": "127.0.0.1",
        "bind-address": "127.0.0.1",
        "secure-port": str(port),
        "audit-log-path": str(folder / "audit.log"),
        "token-auth-file": str(folder / "tokens.csv"),
    }
    return {name: value for name, value in ours.items() if name not in of_etcd} | own


def access(folder: Path, port: int) -> Access:
    """Return an operator's access, with a client certificate from kubeadm."""
    own = "apiserver-kubelet-client"
    ca, certificate, key = ((folder / "pki" / name).read_text() for name in ("ca.crt", f"{own}.crt", f"{own}.key"))
    outputs = ClusterOutputs(
        cluster="lab",
        endpoint=f"127.0.0.1:{port}",
        konnectivity="",
        ca_pem=ca,
        api_servers=(),
        etcds={},
        artefacts=ArtefactOutput(mirror=None, sha256={}, registry=None),
    )
    return Access(outputs, certificate, key, "", "", "")


def test_the_control_plane_starts_with_our_flags(at: Program, cluster: Cluster, folder: Path) -> None:
    api_port, manager_port, scheduler_port = free_ports(3)
    kubeconfig = folder / "controller-manager.conf"
    it = {"server": f"https://127.0.0.1:{api_port}", "insecure-skip-tls-verify": True}
    kubeconfig.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "c", "cluster": it}], "users": [{"name": "u", "user": {"token": TOKEN}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }))  # fmt: skip
    config = folder / scheduler.FILE
    config.write_text(scheduler.render(cluster).replace(scheduler.KUBECONFIG, str(kubeconfig)))
    managers = {
        "kube-controller-manager": (controller_manager.flags(cluster), manager_port),
        "kube-scheduler": (scheduler.flags(cluster, str(config), str(kubeconfig)), scheduler_port),
    }
    with storing(at, folder) as etcd:
        words = command(at("kube-apiserver"), api_server(cluster, folder, etcd, api_port), folder)
        with serves("kube-apiserver", words, api_port, "/readyz", folder):
            assert versions.servers(access(folder, api_port)) == {cluster.spec.kubernetes.version}
            for name, (values, port) in managers.items():
                words = command(at(name), values | {"secure-port": str(port)}, folder)
                with serves(name, words, port, "/healthz", folder) as process:
                    api = RealApi(api_port)
                    until_or_ended(partial(works, name, api), process, partial(log_of, name, folder))


def test_the_kubelet_reads_its_configuration(at: Program, cluster: Cluster, tmp_path: Path) -> None:
    """It exits before it changes the machine, because of one value that the test made invalid."""
    config = kubeadm.kubelet_configuration(cluster, addresses.plan(cluster))
    config["authentication"]["x509"] = {}
    # Depends on the machine that runs the test.
    config["failCgroupV1"] = False
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config | {"maxPods": -1}))
    words = ["--config", tmp_path / "config.yaml", "--root-dir", tmp_path / "kubelet", "--cert-dir", tmp_path / "pki"]
    done = subprocess.run([at("kubelet"), *words], check=False, capture_output=True, text=True, timeout=60)
    (why,) = (line for line in done.stderr.splitlines() if "failed to validate kubelet configuration" in line)
    assert "maxPods (--max-pods) -1 must not be a negative number, path" in why
    assert why.count("invalid configuration:") == 1
    assert "unknown field" not in done.stderr
