"""Whose serving certificates of kubelets the API servers believe, and whether these hold names and addresses of others."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping

from cryptography import x509

from cluster.audit.evidence import Evidence, Kind, Report
from cluster.audit.lists import Object, by_lists
from cluster.audit.model import Finding

SERVING = "/var/lib/kubelet/pki/kubelet-server-current.pem"
_NODE = "system:node:"
_FLAG = "kubelet-certificate-authority"


def kubelets_have_their_own_authority(evidence: Evidence) -> Iterator[Finding]:
    """It must be another one than that whose clients the API server knows, which all clients of the API trust."""
    for report, process in evidence.processes("kube-apiserver"):
        trusted, clients = (_of_file(report, process.flags.get(flag, "")) for flag in (_FLAG, "client-ca-file"))
        if not trusted or not clients:
            yield Finding(report.host, None, f"authorities of --{_FLAG} or --client-ca-file are not in the report")
            continue
        names = ", ".join(sorted(_common_name(each.subject) for each in trusted))
        yield Finding(report.host, not set(trusted) & set(clients), f"kubelets' certificates are to be by {names}")


@by_lists("addresses of nodes", "serving requests")
def serving_certificates_are_of_their_nodes(
    evidence: Evidence, configmaps: Iterable[Object], requests: Iterable[Object]
) -> Iterator[Finding]:
    """Of those that the API has on record, which is for an hour, and those on workers that were looked at."""
    known = _addresses(configmaps)
    if known is None:
        yield Finding(
            "API", None, "the cluster was not told which machine has which address; run ./menagerie configure"
        )
        return
    for request in requests:
        if pem := request.get("status", {}).get("certificate"):
            yield _judged(request["metadata"]["name"], base64.b64decode(pem).decode(), known)
    for report in evidence.of(Kind.WORKER):
        for held in report.certificates:
            if held.path == SERVING:
                yield _judged(report.host, held.pem[0], known)


def _addresses(configmaps: Iterable[Object]) -> dict[str, str] | None:
    """Node -> its address, by what operators wrote and by what was given to workers in the region; None where nobody wrote."""
    data = {each["metadata"]["name"]: each.get("data") or {} for each in configmaps}
    if "hosts.json" not in data.get("hosts", {}):
        return None
    workers = {name: text.split(" ")[-1] for name, text in data.get("workers", {}).items()}
    return {**workers, **json.loads(data["hosts"]["hosts.json"])}


def _judged(subject: str, pem: str, known: Mapping[str, str]) -> Finding:
    certificate = x509.load_pem_x509_certificate(pem.encode())
    node = _common_name(certificate.subject).removeprefix(_NODE)
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return Finding(subject, True, f"of {node}, for no name")
    held = {str(each.value) for each in names}
    foreign = sorted(held - {node, known.get(node, node)})
    return Finding(subject, not foreign, f"of {node}, for {', '.join(foreign or sorted(held))}")


def _of_file(report: Report, path: str) -> list[x509.Certificate]:
    texts = (pem for each in report.certificates if each.path == path for pem in each.pem)
    return [x509.load_pem_x509_certificate(pem.encode()) for pem in texts]


def _common_name(name: x509.Name) -> str:
    return ",".join(str(each.value) for each in name.get_attributes_for_oid(x509.NameOID.COMMON_NAME))
