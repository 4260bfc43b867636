"""When the reports of kubelets allow the next step in the rotation of the authority of Kubernetes."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from cluster.key_rings import RingName
from operations.keys.kubelets import ANNOTATION, KubeletReport, Needs, behind, describe, late
from stacks.certificates import Signed, new_authority

FIRST, SECOND, OTHER = (new_authority(name) for name in ("kubernetes", "kubernetes-2", "kubernetes"))
SERVING, NEWER = new_authority("kubelet-serving"), new_authority("kubelet-serving-2")
CA: RingName = "kubernetes-ca"
OF_SERVERS: RingName = "kubelet-serving-ca"
BOTH, TURNED = FIRST.certificate + SECOND.certificate, SECOND.certificate + FIRST.certificate


def digest(authority: Signed) -> str:
    return x509.load_pem_x509_certificate(authority.certificate.encode()).fingerprint(SHA256()).hex()


def node(
    api: Sequence[Signed],
    signer: Signed,
    clients: Sequence[Signed] | None = None,
    serving: Signed = SERVING,
    servers: Sequence[Signed] = (SERVING,),
) -> KubeletReport:
    trusted = {"api": list(map(digest, api)), "clients": list(map(digest, api if clients is None else clients))}
    trusted["servers"] = list(map(digest, servers))
    issuers = {"client": digest(signer), "serving": digest(serving)}
    return KubeletReport("w1", False, json.dumps(trusted | issuers))


def authorities(kubernetes: str, serving: str = SERVING.certificate) -> dict[str, str]:
    return {CA: kubernetes, OF_SERVERS: serving}


def why(said: KubeletReport, needs: Needs) -> str:
    return describe(late([said], needs))


LESS = "kubelets that do not trust all required authorities: w1"
MORE = "kubelets that trust more than the cluster's authorities: w1"
SIGNER = "kubelets without certificates of the current signer: w1"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (node([FIRST, SECOND], FIRST), ""),
        (node([SECOND, FIRST], SECOND), ""),
        (node([FIRST], FIRST), LESS),
        (node([FIRST, SECOND], FIRST, clients=[FIRST]), LESS),
        (node([FIRST], FIRST, clients=[FIRST, SECOND]), LESS),
        (node([FIRST, OTHER], FIRST), LESS),
    ],
)
def test_another_authority_signs_when_every_kubelet_trusts_both_for_the_api_and_for_clients(
    said: KubeletReport, reason: str
) -> None:
    assert why(said, Needs.to_turn(CA, authorities(BOTH))) == reason


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (node([FIRST, SECOND], SECOND), ""),
        (node([SECOND], SECOND), ""),
        (node([FIRST, SECOND], FIRST), SIGNER),
        (node([FIRST, SECOND], SECOND, serving=FIRST), SIGNER),
        (node([FIRST], SECOND), LESS),
    ],
)
def test_the_former_authority_is_removed_when_no_kubelet_has_a_certificate_from_it(
    said: KubeletReport, reason: str
) -> None:
    assert why(said, Needs.to_drop(CA, authorities(TURNED))) == reason


def test_a_kubelet_that_never_followed_does_not_block_a_rollback() -> None:
    assert why(node([FIRST], FIRST), Needs.to_drop(CA, authorities(BOTH))) == ""
    assert why(node([FIRST, SECOND], FIRST), Needs.to_drop(CA, authorities(BOTH))) == ""
    assert why(node([FIRST, SECOND], SECOND), Needs.to_drop(CA, authorities(BOTH))) == SIGNER


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (node([SECOND], SECOND), ""),
        (node([FIRST, SECOND], SECOND), MORE),
        (node([SECOND], SECOND, clients=[FIRST, SECOND]), MORE),
        (node([FIRST], FIRST), LESS),
        (node([SECOND], FIRST), SIGNER),
    ],
)
def test_the_rotation_ends_when_every_kubelet_trusts_only_the_new_authority(said: KubeletReport, reason: str) -> None:
    assert why(said, Needs.as_now(CA, authorities(SECOND.certificate))) == reason


IGNORANT = "kubelets that do not know the next signer: w1"
OLDER = "kubelets of an older release, which do not report the signers of their serving certificates: w1"
CARRIED, PROMOTED = FIRST.certificate + SERVING.certificate, SERVING.certificate + FIRST.certificate


def older() -> KubeletReport:
    report = json.loads(node([FIRST], FIRST, serving=FIRST).text)
    del report["servers"]
    return KubeletReport("w1", False, json.dumps(report))


@pytest.mark.parametrize(
    ("said", "needs", "reason"),
    [
        (older(), Needs.to_turn(OF_SERVERS, authorities(FIRST.certificate, CARRIED)), OLDER),
        (node([FIRST], FIRST, serving=FIRST, servers=[FIRST]), Needs.to_turn(OF_SERVERS, authorities(FIRST.certificate, CARRIED)), IGNORANT),
        (node([FIRST], FIRST, serving=FIRST, servers=[FIRST, SERVING]), Needs.to_turn(OF_SERVERS, authorities(FIRST.certificate, CARRIED)), ""),
        (node([FIRST], FIRST, serving=FIRST, servers=[FIRST, SERVING]), Needs.to_drop(OF_SERVERS, authorities(FIRST.certificate, PROMOTED)), SIGNER),
        (node([FIRST], FIRST, servers=[FIRST, SERVING]), Needs.to_drop(OF_SERVERS, authorities(FIRST.certificate, PROMOTED)), ""),
        (node([FIRST], FIRST, servers=[FIRST, SERVING]), Needs.as_now(OF_SERVERS, authorities(FIRST.certificate)), "kubelets that know a former signer: w1"),
        (node([FIRST], FIRST), Needs.as_now(OF_SERVERS, authorities(FIRST.certificate)), ""),
        # What it trusts, and who signed its other certificate, belongs to the other ring.
        (node([OTHER], OTHER), Needs.as_now(OF_SERVERS, authorities(FIRST.certificate)), ""),
    ],
)  # fmt: skip
def test_the_signer_of_serving_certificates_changes_when_every_kubelet_knows_it_and_has_its_certificate(
    said: KubeletReport, needs: Needs, reason: str
) -> None:
    assert why(said, needs) == reason


def test_an_older_release_s_kubelet_follows_the_cluster_s_authority_as_before() -> None:
    assert why(older(), Needs.as_now(CA, authorities(FIRST.certificate, CARRIED))) == ""


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"api": 1, "clients": [], "client": "", "serving": ""}'])
def test_a_node_with_no_report_or_an_unreadable_one_does_not_follow(text: str) -> None:
    reason = why(KubeletReport("w1", True, text), Needs.to_drop(CA, authorities(BOTH)))
    expected = f"kubelets whose annotation {ANNOTATION} can't be read" if text else "kubelets that do not report"
    assert reason.startswith(expected)
    assert reason.endswith(": w1")


def test_nodes_are_grouped_by_what_they_lack_and_the_error_says_how_to_continue() -> None:
    silent = [KubeletReport(f"w{number:02}", False, "") for number in range(12)]
    waiting = late([*silent, node([FIRST], FIRST)], Needs.to_turn(CA, authorities(BOTH)))
    text = str(behind("lab", waiting, "./menagerie keys rotate lab kubernetes-ca"))
    assert text.startswith("kubelets that do not report their authorities: w00, w01, ")
    assert f"w09 and 2 more; {LESS}. " in text
    for way in (
        "./menagerie configure lab",
        "kubectl delete node NAME",
        "Then run: ./menagerie keys rotate lab kubernetes-ca",
    ):
        assert way in text


@pytest.mark.parametrize(
    ("more", "reason"),
    [({"cards": 8}, ""), ({"version": 1}, ""), ({"version": 2}, "kubelets of a newer Menagerie, which this")],
)
def test_a_kubelet_s_report_from_a_newer_menagerie_is_read_or_proves_nothing(more: dict[str, int], reason: str) -> None:
    said = node([FIRST, SECOND], FIRST)
    said = KubeletReport(said.node, said.in_region, json.dumps({**json.loads(said.text), **more}))
    assert why(said, Needs.to_turn(CA, authorities(BOTH))).startswith(reason)
    assert bool(why(said, Needs.to_turn(CA, authorities(BOTH)))) is bool(reason)
