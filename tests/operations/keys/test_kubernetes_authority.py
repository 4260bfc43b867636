"""The control plane's part in the change of the authority of Kubernetes, with a real API server and controller manager.

The ring is refused to operators, since workers and pods have their part too; here there are none.
"""

from __future__ import annotations

import base64
import time
from dataclasses import replace

import pytest
import urllib3
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from cluster.key_rings import Ring
from operations.access import Access
from operations.keys import rotation as rotations
from operations.keys import trusted
from stacks.certificates import Request, Signed, issue
from tests.operations.keys.region import Region
from tests.operations.keys.test_rotation import until_done

pytestmark = pytest.mark.timeout(1200)
SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"


def subjects(pem: str) -> list[str]:
    return sorted(each.subject.rfc4514_string() for each in x509.load_pem_x509_certificates(pem.encode()))


def issuer(signed: Signed) -> str:
    return x509.load_pem_x509_certificate(signed.certificate.encode()).issuer.rfc4514_string()


def renewed(access: Access, node: Signed, name: str) -> Signed:
    """What a kubelet gets that asks with the certificate that it has; nobody approves by hand."""
    key = ec.generate_private_key(ec.SECP256R1())
    own = [(NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, "system:node:w1")]
    subject = x509.Name([x509.NameAttribute(*each) for each in own])
    asked = x509.CertificateSigningRequestBuilder(subject).sign(key, hashes.SHA256())
    text = base64.b64encode(asked.public_bytes(serialization.Encoding.PEM)).decode()
    as_node = replace(access, certificate=node.certificate, key=node.private_key)
    certificates = client.CertificatesV1Api(as_node.api())
    spec = {"signerName": SIGNER, "request": text, "usages": ["digital signature", "client auth"]}
    certificates.create_certificate_signing_request({"metadata": {"name": name}, "spec": spec})
    for _ in range(600):
        if found := certificates.read_certificate_signing_request(name).status.certificate:
            pem = key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            return Signed(base64.b64decode(found).decode(), pem.decode())
        time.sleep(0.2)
    raise AssertionError(f"nobody signed {name}")


def answers(access: Access) -> str:
    """ "" where the API takes both sides' certificates."""
    try:
        client.CoreV1Api(access.api()).list_namespace(_request_timeout=5)
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        return str(error)
    return ""


def test_every_side_is_trusted_by_all_others_in_every_state_and_the_former_authority_by_nobody_after(
    world: Region, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotations, "ROTATED", (*rotations.ROTATED, "kubernetes-ca"))
    former = world.access()
    pki = world.api.root / "etc/kubernetes/pki"
    authority = Signed((pki / "ca.crt").read_text(), (pki / "ca.key").read_text())
    node = [issue(authority, Request("system:node:w1", ("system:nodes",), usages=("client",)))]
    told: dict[str, tuple[str, list[str]]] = {}

    def look(state: str) -> None:
        api = world.access().api()
        root = client.CoreV1Api(api).read_namespaced_config_map(trusted.ROOT, "default").data["ca.crt"]
        node.append(renewed(world.access(), node[-1], f"asked-{len(node)}"))
        told[state] = (issuer(node[-1]), subjects(root))
        for kubeconfig in (world.api.root / "etc/kubernetes").glob("*.conf"):
            cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
            held = subjects(base64.b64decode(cluster["certificate-authority-data"]).decode())
            assert held == told[state][1], kubeconfig
        assert answers(replace(former, outputs=world.access().outputs)) == "" or state.endswith(" 2")

    seen, rotated = until_done(world, "kubernetes-ca", look)
    both = ["CN=kubernetes", "CN=kubernetes-2"]
    assert told == {
        "kubernetes-ca 1,2": ("CN=kubernetes", both),
        "kubernetes-ca 2,1": ("CN=kubernetes-2", both),
        "kubernetes-ca 2": ("CN=kubernetes-2", both[1:]),
    }
    assert seen == list(told)
    assert rotated.ended == Ring((2,))
    now = world.access()
    assert answers(now) == ""
    assert "401" in answers(replace(now, certificate=former.certificate, key=former.key))
    assert "CERTIFICATE_VERIFY_FAILED" in answers(replace(now, outputs=former.outputs))
    info = client.CoreV1Api(now.api()).read_namespaced_config_map(trusted.INFO, trusted.INFO_NAMESPACE)
    (cluster,) = yaml.safe_load(info.data["kubeconfig"])["clusters"]
    assert subjects(base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode()) == both[1:]


def test_the_ring_is_refused_to_operators() -> None:
    with pytest.raises(rotations.NotRotatedError, match="workers"):
        rotations.refuse_unrotated("kubernetes-ca")
