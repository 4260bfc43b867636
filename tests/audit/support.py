"""Evidence of a cluster on which everything is as rendered, and helpers to change it."""

from __future__ import annotations

import base64
import json
import re
import shlex
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import yaml

from cluster.audit.evidence import Attempt, AuditLogs, Certificates, Evidence, File, Kind, Process, Report, Socket
from cluster.audit.serving import SERVING
from cluster.files import HostConfig
from stacks.certificates import Request, Signed, issue, new_authority

UNITS = "/etc/systemd/system/"
NOW = time.time()
"""Certificates for tests are created now, too."""
AUTHORITIES = {name: new_authority(name) for name in ("kubernetes", "kubelet-serving", "etcd-main", "etcd-events")}
LOGS = AuditLogs({"api-1": NOW - 60}, 600, 30, 30)
METHODS = ("M.5", "M.6", "M.7", "M.8", "M.9", "M.10", "M.13", "M.26", "M.27")
"""Controls that are decided by attempts."""


def process(unit: str, text: str) -> Process:
    """Return the process that a unit would start. Variables that the unit doesn't set are empty."""
    command = text[text.index("ExecStart=") + len("ExecStart=") :].replace("\\\n", " ").split("\n", 1)[0]
    environment = dict(re.findall(r'^Environment="(\w+)=(.*)"$', text, re.MULTILINE))
    argv = tuple(shlex.split(re.sub(r"\$(\w+)", lambda name: environment.get(name[1], ""), command)))
    return Process(program=argv[0].rpartition("/")[2], argv=argv, unit=unit, user="root")


def report(kind: Kind, host: str, config: HostConfig, **more: Any) -> Report:
    """Return the report of a host configured by `config`."""
    units = {file.path.removeprefix(UNITS): file.text for file in config.files if file.path.startswith(UNITS)}
    placed = {
        each.path: File(kind="file", mode=format(each.mode, "04o"), owner=each.owner, secret=each.path.endswith(".key"))
        for each in (*config.files, *config.secrets)
    }
    values: dict[str, Any] = {
        "kind": kind,
        "host": host,
        "taken": NOW,
        "processes": tuple(process(unit, text) for unit, text in units.items() if "/usr/local/bin/" in text),
        "files": placed,
        "texts": {},
        "providers": (),
        "certificates": (),
        "listening": (Socket(address="127.0.0.1", port=10257),),
        "addresses": (),
        "versions": {},
        "unreadable": (),
    }
    return Report(**values | more)


def folder(owner: str = "root:root", mode: str = "0700") -> File:
    return File(kind="folder", mode=mode, owner=owner, secret=False)


def root_file(mode: str = "0600", secret: bool = False) -> File:
    return File(kind="file", mode=mode, owner="root:root", secret=secret)


def certificates(**by_path: Signed) -> tuple[Certificates, ...]:
    return tuple(Certificates(path=path, pem=(signed.certificate,)) for path, signed in by_path.items())


def api_host(config: HostConfig) -> Report:
    texts = {
        file.path: file.text for file in config.files if file.path.endswith(("authentication.yaml", "policy.yaml"))
    }
    base = report(Kind.API, "api-1", config)
    leaf = issue(AUTHORITIES["kubernetes"], Request("kube-apiserver", days=365))
    more = {f"/etc/kubernetes/{name}.conf": root_file(secret=True) for name in ("scheduler", "controller-manager")}
    more |= {"/etc/kubernetes/pki": folder(mode="0755"), "/var/lib/menagerie/payload-1": root_file()}
    return base.model_copy(
        update={
            "texts": texts,
            "providers": ("secretbox", "identity"),
            "certificates": certificates(
                **{
                    "/etc/kubernetes/pki/apiserver.crt": leaf,
                    "/etc/kubernetes/pki/ca.crt": AUTHORITIES["kubernetes"],
                    "/etc/kubernetes/pki/kubelet-serving-ca.crt": AUTHORITIES["kubelet-serving"],
                }
            ),
            "files": {**base.files, **more},
        }
    )


def etcd_host(name: str, role: str, config: HostConfig) -> Report:
    base = report(Kind.ETCD, name, config)
    pki = f"/etc/etcd/{role}/pki"
    own = issue(AUTHORITIES[f"etcd-{role}"], Request(name, days=365))
    trusted = ["etcd-main"] if role == "main" else ["etcd-main", "etcd-events"]
    return base.model_copy(
        update={
            "files": {**base.files, f"/var/lib/etcd/{role}": folder("etcd:etcd")},
            "certificates": (
                Certificates(path=f"{pki}/client-ca.crt", pem=tuple(AUTHORITIES[each].certificate for each in trusted)),
                Certificates(path=f"{pki}/ca.crt", pem=(AUTHORITIES[f"etcd-{role}"].certificate,)),
                *certificates(**{f"{pki}/server.crt": own, f"{pki}/peer.crt": own}),
            ),
            "versions": {"etcd": "etcd Version: 3.6.14"},
        }
    )


def worker(config: HostConfig) -> Report:
    """Return a worker's report. Processes and placed files come from the roles; files of kubeadm, kubelet and flannel are made up."""
    signed = issue(AUTHORITIES["kubernetes"], Request("system:node:worker-1", days=365))
    base = report(Kind.WORKER, "worker-1", config)
    paths = ("/etc/kubernetes/kubelet.conf", "/var/lib/kubelet/config.yaml", "/etc/cni/net.d/10-flannel.conflist")
    written = {path: root_file() for path in paths} | {"/etc/kubernetes/pki/ca.crt": root_file("0644")}
    return base.model_copy(
        update={
            "files": {**base.files, **written},
            "certificates": certificates(
                **{
                    "/var/lib/kubelet/pki/kubelet-client-current.pem": signed,
                    SERVING: serving("worker-1", "10.78.1.11"),
                }
            ),
        }
    )


def serving(node: str, *addresses: str) -> Signed:
    """Return a kubelet's serving certificate."""
    own = Request(f"system:node:{node}", ("system:nodes",), (node,), addresses, ("server",), 365)
    return issue(AUTHORITIES["kubelet-serving"], own)


def serving_request(node: str, *addresses: str) -> Mapping[str, Any]:
    """Return a signing request as the API lists it after approval."""
    pem = base64.b64encode(serving(node, *addresses).certificate.encode()).decode()
    return {"metadata": {"name": f"csr-{node}"}, "status": {"certificate": pem}}


def addresses(hosts: Mapping[str, str], workers: Mapping[str, str]) -> tuple[Mapping[str, Any], ...]:
    """Return the ConfigMaps with addresses from operators and of workers in the region."""
    return (
        {"metadata": {"name": "hosts"}, "data": {"hosts.json": json.dumps(hosts)}},
        {"metadata": {"name": "workers"}, "data": {name: f"uid {address}" for name, address in workers.items()}},
    )


def kubelet(config: HostConfig, worker: HostConfig) -> Mapping[str, Any]:
    """Return kubeadm's configuration for kubelets with role kubelet's patches (merged by RFC 7386, like kubeadm)."""
    text = next(file.text for file in config.files if file.path.endswith("kubeadm.yaml"))
    configuration = next(d for d in yaml.safe_load_all(text) if d["kind"] == "KubeletConfiguration")
    patches = [file.text for file in worker.files if "/patches/kubeletconfiguration" in file.path]
    assert patches
    for patch in patches:
        configuration = merged(configuration, json.loads(patch))
    return configuration


def merged(value: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    changed = {key: merged(value.get(key) or {}, new) if isinstance(new, dict) else new for key, new in patch.items()}
    return {key: new for key, new in {**value, **changed}.items() if new is not None}


def proxy(address: str) -> tuple[Mapping[str, Any], ...]:
    return ({"metadata": {"name": "kube-proxy"}, "data": {"config.conf": f"metricsBindAddress: {address}\n"}},)


def with_objects(evidence: Evidence, **lists: Iterable[Mapping[str, Any]]) -> Evidence:
    """Return the evidence with other lists, whose names have underscores instead of spaces."""
    named = {name.replace("_", " "): tuple(things) for name, things in lists.items()}
    return replace(evidence, objects={**evidence.objects, **named})


def attempted(evidence: Evidence, control: str, ok: bool | None) -> Evidence:
    others = [each for each in evidence.attempts if each.control != control]
    return replace(evidence, attempts=(*others, Attempt(control, "somewhere", ok, "set by the test")))


def changed(evidence: Evidence, kind: Kind, change: Callable[[Report], Mapping[str, Any]]) -> Evidence:
    """Return the evidence with fields replaced by `change` in each report of a kind."""
    reports = [each.model_copy(update=dict(change(each))) if each.kind is kind else each for each in evidence.reports]
    return replace(evidence, reports=tuple(reports))


def with_flag(report: Report, program: str, name: str, value: str | None) -> Mapping[str, Any]:
    """Return the processes with a flag set, or removed for None."""

    def argv(each: Process) -> tuple[str, ...]:
        if each.program != program:
            return each.argv
        others = [word for word in each.argv if not word.startswith(f"--{name}=")]
        return (*others, *([] if value is None else [f"--{name}={value}"]))

    return {"processes": tuple(each.model_copy(update={"argv": argv(each)}) for each in report.processes)}


def with_files(report: Report, **files: File) -> Mapping[str, Any]:
    return {"files": {**report.files, **files}}
