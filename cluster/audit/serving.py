"""Which CA API servers trust for kubelets' serving certificates, and whether certificates have other nodes' names."""

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
    """The CA for kubelets' serving certificates must differ from the client CA, which all clients of the API trust."""
    for report, process in evidence.processes("kube-apiserver"):
        trusted, clients = (_of_file(report, process.flags.get(flag, "")) for flag in (_FLAG, "client-ca-file"))
        if not trusted or not clients:
            yield Finding(report.host, None, f"the CAs of --{_FLAG} or --client-ca-file aren't in the report")
            continue
        names = ", ".join(sorted(_common_name(each.subject) for each in trusted))
        yield Finding(report.host, not set(trusted) & set(clients), f"trusts kubelets' certificates signed by {names}")


@by_lists("addresses of nodes", "serving requests")
def serving_certificates_are_of_their_nodes(
    evidence: Evidence, configmaps: Iterable[Object], requests: Iterable[Object]
) -> Iterator[Finding]:
    """Check certificates that the API still lists, which is for an hour, and those in workers' reports."""
    addresses = _addresses(configmaps)
    if addresses is None:
        yield Finding("API", None, "the cluster doesn't have the addresses of its machines; run ./menagerie configure")
        return
    for request in requests:
        if pem := request.get("status", {}).get("certificate"):
            yield _judged(request["metadata"]["name"], base64.b64decode(pem).decode(), addresses)
    for report in evidence.of(Kind.WORKER):
        for held in report.certificates:
            if held.path == SERVING:
                yield _judged(report.host, held.pem[0], addresses)


def _addresses(configmaps: Iterable[Object]) -> dict[str, str] | None:
    """Map nodes to addresses, from operators' data and workers in the region; None if operators wrote none."""
    data = {each["metadata"]["name"]: each.get("data") or {} for each in configmaps}
    if "hosts.json" not in data.get("hosts", {}):
        return None
    workers = {name: text.split(" ")[-1] for name, text in data.get("workers", {}).items()}
    return {**workers, **json.loads(data["hosts"]["hosts.json"])}


def _judged(subject: str, pem: str, addresses: Mapping[str, str]) -> Finding:
    certificate = x509.load_pem_x509_certificate(pem.encode())
    node = _common_name(certificate.subject).removeprefix(_NODE)
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return Finding(subject, True, f"of {node}, without names")
    held = {str(each.value) for each in names}
    foreign = sorted(held - {node, addresses.get(node, node)})
    return Finding(subject, not foreign, f"of {node}, for {', '.join(foreign or sorted(held))}")


def _of_file(report: Report, path: str) -> list[x509.Certificate]:
    texts = (pem for each in report.certificates if each.path == path for pem in each.pem)
    return [x509.load_pem_x509_certificate(pem.encode()) for pem in texts]


def _common_name(name: x509.Name) -> str:
    return ",".join(str(each.value) for each in name.get_attributes_for_oid(x509.NameOID.COMMON_NAME))
