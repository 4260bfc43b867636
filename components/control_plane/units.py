"""systemd units of an API-server host.

Users: CIS requires keys and kubeconfigs to be 0600 and owned by root. kube-apiserver and kube-controller-manager need nearly
all of them, so they run as root with an empty capability set: they can read root's files and write to two folders, and the
kernel grants nothing else. (systemd's LoadCredential= would copy the keys once, but the encryption keys are reloaded at
runtime.) The other programs need one or two files each: each runs as its own user and gets its files as credentials.

No unit has an [Install] section: menagerie-boot starts them, in order, at every boot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cluster.files import HostFile
from cluster.spec import Cluster
from components.control_plane import audit_log, flags, gangs, joining, paths, scheduler
from network.addresses import AddressPlan

_HERE = Path(__file__).resolve().parent
_CREDENTIALS = "${CREDENTIALS_DIRECTORY}"
KONNECTIVITY_ACCOUNT = "konnectivity"
SCHEDULER_ACCOUNT = "kube-scheduler"
APPROVER_ACCOUNT = "csr-approver"
PREFLIGHT_ACCOUNT = "node-preflight"
LABELS_ACCOUNT = "node-labels"

ORDER = (
    "kubeadm-phases.service",
    "konnectivity-server.service",
    "audit-log.service",
    "kube-apiserver.service",
    "kube-controller-manager.service",
    "kube-scheduler.service",
    "kubelet-csr-approver.service",
    f"{joining.NAME}.service",
    "node-labels.service",
    "node-preflight.service",
    "gangs.service",
    "cluster-bootstrap.service",
    "host-report.service",
    "join-tokens.service",
)
"""The order in which menagerie-boot starts them. join-tokens only runs with workers in the region, node-preflight only if some
workers join tainted, and gangs only if the spec has gangs on."""


@dataclass(frozen=True)
class Unit:
    """A service. words: the command line before escaping; systemd expands ``${...}`` in it."""

    name: str
    description: str
    words: tuple[str, ...]
    type: str = "exec"
    documentation: str = "https://kubernetes.io/docs/reference/command-line-tools-reference/"
    user: str = ""
    groups: tuple[str, ...] = ()
    after: tuple[str, ...] = ("kubeadm-phases.service",)
    credentials: tuple[tuple[str, str], ...] = ()
    settings: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    processes: str = "invisible"
    """ProtectProc=: which processes of other users the service sees."""


def files(cluster: Cluster, plan: AddressPlan) -> tuple[HostFile, ...]:
    """Return every unit as a file with mode 0600 (CIS 1.1.1, 1.1.3, 1.1.5)."""
    return tuple(HostFile(f"/etc/systemd/system/{unit.name}", render(unit), 0o600) for unit in units(cluster, plan))


def units(cluster: Cluster, plan: AddressPlan) -> tuple[Unit, ...]:
    """Return the units, in the order of `ORDER`."""
    return (
        _kubeadm_phases(),
        _konnectivity_server(cluster),
        _audit_log(),
        _api_server(cluster, plan),
        _controller_manager(cluster),
        _scheduler(cluster),
        _approver(),
        _join_approver(cluster),
        _node_labels(),
        *((_node_preflight(),) if cluster.spec.checked_workers else ()),
        *((_gangs(),) if cluster.spec.scheduling.gangs else ()),
        _cluster_bootstrap(),
        _host_report(),
        *((_join_tokens(),) if cluster.spec.cloud_workers else ()),
    )


def accounts(cluster: Cluster, plan: AddressPlan) -> tuple[str, ...]:
    """Return the users that units run as."""
    return tuple(dict.fromkeys(unit.user for unit in units(cluster, plan) if unit.user))


def render(unit: Unit) -> str:
    """Return the text of the unit's file."""
    template = _environment().get_template("service.j2")
    values = {name: getattr(unit, name) for name in unit.__dataclass_fields__}
    return template.render(values | {"words": [_word(word) for word in unit.words]})


def _kubeadm_phases() -> Unit:
    return Unit(
        name="kubeadm-phases.service",
        description="Certificates and kubeconfigs of this host, by kubeadm's phases",
        documentation="https://kubernetes.io/docs/reference/setup-tools/kubeadm/kubeadm-init-phase/",
        words=_python("phases"),
        type="oneshot",
        after=(),
        settings=(_PYTHON_PATH, "RuntimeDirectory=menagerie", "RuntimeDirectoryPreserve=yes"),
        writable=(paths.KUBERNETES,),
    )


def _api_server(cluster: Cluster, plan: AddressPlan) -> Unit:
    return Unit(
        name="kube-apiserver.service",
        description="Kubernetes API server",
        words=_command("kube-apiserver", flags.api_server(cluster, plan)),
        type="notify",
        groups=(KONNECTIVITY_ACCOUNT,),
        # systemd stops units in reverse order: audit-log stops later, so it also ships the last entries.
        after=("kubeadm-phases.service", "konnectivity-server.service", "audit-log.service"),
        settings=(
            f"EnvironmentFile={paths.ADVERTISED}",
            "LogsDirectory=kubernetes/audit",
            "LogsDirectoryMode=0700",
            "TimeoutStartSec=2min",
            # The shutdown delay plus the longest request.
            "TimeoutStopSec=90s",
        ),
        hidden=(f"{paths.PKI}/ca.key", f"{paths.PKI}/front-proxy-ca.key", paths.SERVING_KEY),
    )


def _audit_log() -> Unit:
    return Unit(
        name="audit-log.service",
        description="Ships the API server's audit log to the cluster's bucket",
        documentation="https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/",
        words=_python("audit_log"),
        after=("network-online.target",),
        credentials=((audit_log.SECRET, audit_log.PATH),),
        settings=(_PYTHON_PATH, "StateDirectory=audit-log", "StateDirectoryMode=0700", "TimeoutStopSec=60s"),
        # Runs as root, which owns the log. It needs none of the cluster's keys.
        hidden=(paths.PKI,),
    )


def _controller_manager(cluster: Cluster) -> Unit:
    return Unit(
        name="kube-controller-manager.service",
        description="Kubernetes controller manager",
        words=_command("kube-controller-manager", flags.controller_manager(cluster)),
        hidden=(
            f"{paths.PKI}/front-proxy-ca.key",
            paths.ETCD_KEY,
            f"{paths.KUBERNETES}/encryption-config.yaml",
        ),
    )


def _scheduler(cluster: Cluster) -> Unit:
    return Unit(
        name="kube-scheduler.service",
        description="Kubernetes scheduler",
        words=_command("kube-scheduler", flags.scheduler(cluster, scheduler.CONFIG, scheduler.KUBECONFIG)),
        user=SCHEDULER_ACCOUNT,
        credentials=(("kubeconfig", f"{paths.KUBERNETES}/scheduler.conf"),),
    )


def _konnectivity_server(cluster: Cluster) -> Unit:
    return Unit(
        name="konnectivity-server.service",
        description="konnectivity server: the API server's way to nodes and pods",
        documentation="https://kubernetes.io/docs/tasks/extend-kubernetes/setup-konnectivity/",
        words=_command("konnectivity-server", flags.konnectivity_server(cluster, _CREDENTIALS)),
        user=KONNECTIVITY_ACCOUNT,
        credentials=(
            ("kubeconfig", f"{paths.KUBERNETES}/konnectivity-server.conf"),
            ("apiserver.crt", f"{paths.PKI}/apiserver.crt"),
            ("apiserver.key", f"{paths.PKI}/apiserver.key"),
        ),
        # The API server is in this group, so it may use the socket.
        settings=("RuntimeDirectory=konnectivity-server", "RuntimeDirectoryMode=0750"),
    )


def _approver() -> Unit:
    return _follower(
        "kubelet-csr-approver",
        "approver",
        APPROVER_ACCOUNT,
        "Approves the serving certificates of kubelets",
        "reference/access-authn-authz/kubelet-tls-bootstrapping/",
    )


def _join_approver(cluster: Cluster) -> Unit:
    unit = _follower(
        joining.NAME,
        "joining",
        joining.NAME,
        "Approves the client certificates of hosts that join",
        "reference/access-authn-authz/kubelet-tls-bootstrapping/",
    )
    return replace(unit, credentials=tuple(joining.credentials(cluster).items()))


def _node_labels() -> Unit:
    return _follower(
        "node-labels",
        "labels",
        LABELS_ACCOUNT,
        "Gives nodes the labels that are theirs by the spec",
        "concepts/scheduling-eviction/assign-pod-node/#node-isolation-restriction",
    )


def _node_preflight() -> Unit:
    return _follower(
        "node-preflight",
        "preflight",
        PREFLIGHT_ACCOUNT,
        "Lifts the taint of nodes that are as expected",
        "concepts/scheduling-eviction/taint-and-toleration/",
    )


def _gangs() -> Unit:
    return _follower(
        gangs.NAME,
        "gangs",
        gangs.NAME,
        "Makes the PodGroups of Jobs that are gangs, and starts a whole gang anew when a member has died",
        "concepts/workloads/controllers/job/#suspending-a-job",
    )


def _follower(name: str, module: str, account: str, description: str, page: str) -> Unit:
    """Return the unit of a Menagerie program that watches objects in the API. page: of kubernetes.io/docs.

    Its kubeconfig has its name. It reads objects that cluster-bootstrap creates, and retries until they exist.
    """
    return Unit(
        name=f"{name}.service",
        description=description,
        documentation=f"https://kubernetes.io/docs/{page}",
        words=_python(module),
        user=account,
        after=("kube-apiserver.service",),
        credentials=(("kubeconfig", f"{paths.KUBERNETES}/{name}.conf"),),
        settings=(_PYTHON_PATH,),
    )


def _cluster_bootstrap() -> Unit:
    return Unit(
        name="cluster-bootstrap.service",
        description="Cluster configuration, add-ons and RBAC; changes nothing that is already so",
        documentation="https://kubernetes.io/docs/reference/setup-tools/kubeadm/kubeadm-init-phase/",
        words=_python("bootstrap"),
        type="oneshot",
        after=("kube-apiserver.service",),
        settings=(_PYTHON_PATH, "RuntimeDirectory=cluster-bootstrap", "RuntimeDirectoryMode=0700"),
    )


def _host_report() -> Unit:
    return Unit(
        name="host-report.service",
        description="Writes how this host is set up where operators read it",
        documentation="https://www.cisecurity.org/benchmark/kubernetes",
        words=_python("report"),
        after=("cluster-bootstrap.service",),
        credentials=(("kubeconfig", f"{paths.KUBERNETES}/host-report.conf"),),
        settings=(_PYTHON_PATH,),
        # Runs as root with nothing hidden: it could not report true modes of hidden files, or see others' processes.
        processes="default",
    )


def _join_tokens() -> Unit:
    return Unit(
        name="join-tokens.service",
        description="Short-lived tokens in the store, by which workers in the region join",
        documentation="https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/",
        words=_python("tokens"),
        after=("cluster-bootstrap.service",),
        credentials=(("kubeconfig", f"{paths.KUBERNETES}/join-tokens.conf"),),
        settings=(_PYTHON_PATH,),
        # Runs as root, because only root may query the store.
        hidden=(
            f"{paths.PKI}/ca.key",
            f"{paths.PKI}/front-proxy-ca.key",
            paths.SERVING_KEY,
            f"{paths.PKI}/sa.key",
            paths.ETCD_KEY,
        ),
    )


_PYTHON_PATH = f"Environment=PYTHONPATH={paths.LIBRARY}"


def _python(module: str) -> tuple[str, ...]:
    return ("/usr/bin/python3", "-sB", "-m", f"menagerie_host.{module}")


def _command(program: str, values: flags.Flags) -> tuple[str, ...]:
    return (f"{paths.BIN}/{program}", *(f"--{name}={value}" for name, value in values.items()))


def _word(text: str) -> str:
    # systemd.service(5), "Command lines": % and \ are special, and a separate ; ends a command.
    escaped = text.replace("\\", "\\\\").replace("%", "%%").replace('"', '\\"')
    return f'"{escaped}"' if any(character in text for character in " \t';*") else escaped


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
