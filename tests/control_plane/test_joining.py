"""node-join-approver: which claims to be a node it accepts."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.quantities import parse_name
from components.control_plane import joining, units
from components.control_plane.host import joining as program
from components.control_plane.host import tokens
from components.control_plane.host.api import WATCH_S
from components.control_plane.host.following import NotYet
from components.control_plane.host.joining import Approver, Claim, Refused, claim, unattested
from network.addresses import plan
from tests.control_plane.joins import CLIENT, asked_pem, new_key

KEY = new_key()
NODE = "system:node:worker-1"
OWN = joining.group_of("worker-1")
ASKED = 1_000_000.0

STAMP = "1970-01-12T13:46:40Z"


def request(pem: str = "", groups: tuple[str, ...] = (OWN,), name: str = "csr-1", **changes: Any) -> dict[str, Any]:
    spec = {
        "signerName": CLIENT,
        "username": "system:bootstrap:abcdef",
        "groups": ["system:bootstrappers", joining.TOKENS, *groups, "system:authenticated"],
        "usages": ["digital signature", "client auth"],
        "request": pem or asked_pem(KEY, NODE),
    }
    return {"metadata": {"name": name, "uid": name, "creationTimestamp": STAMP}, "spec": spec | changes, "status": {}}


def test_a_claim_is_the_node_that_a_kubelet_requests_with_the_token_of_its_host() -> None:
    claimed = claim(request())
    assert (claimed.name, claimed.in_region, claimed.asked) == ("worker-1", False, ASKED)
    assert claimed.key == claim(request(asked_pem(KEY, "system:node:worker-1"))).key
    assert claimed.key != claim(request(asked_pem(new_key(), NODE))).key


def test_a_machine_of_the_region_gets_no_second_name_with_an_unchecked_domain() -> None:
    pem = asked_pem(KEY, "system:node:i-0123456789abcdef0.invented")
    with pytest.raises(Refused, match="a name without a domain"):
        claim(request(pem, groups=(joining.REGION,)))


def test_the_regions_token_can_claim_any_name_and_proves_none() -> None:
    assert claim(request(groups=(joining.REGION,))).in_region


WRONG = {
    "another host's token": (request(groups=(joining.group_of("worker-2"),)), "is for worker-2, and asks to be worker-1"),
    "a longer name": (request(groups=(joining.group_of("worker-11"),)), "is for worker-11"),
    "two hosts' token": (request(groups=(OWN, joining.group_of("worker-2"))), "names worker-1 and worker-2"),
    "a host's and the region's": (request(groups=(OWN, joining.REGION)), "names worker-1 and the region"),
    "a token of an earlier release": (request(groups=()), "names no host"),
    "a person": (request(username="alice"), "not a bootstrap token"),
    "a node": (request(username="system:node:worker-1", groups=("system:nodes",)), "not a bootstrap token"),
    "a token's name alone": (request(groups=(OWN,)) | {"spec": request()["spec"] | {"groups": [OWN]}}, "not a bootstrap"),
    "another signer": (request(signerName="kubernetes.io/kube-apiserver-client"), "signer"),
    "a server's usage": (request(usages=["digital signature", "client auth", "server auth"]), "usages"),
    "a usage twice": (request(usages=["digital signature", "client auth", "client auth"]), "usages"),
    "no usages": (request(usages=[]), "usages"),
    "masters": (request(asked_pem(KEY, NODE, "system:masters")), "organizations system:masters"),
    "a person's name": (request(asked_pem(KEY, "alice")), "the name alice"),
    "no name": (request(asked_pem(KEY, "system:node:")), "the name system:node:"),
    "a name with a slash": (request(asked_pem(KEY, "system:node:a/b")), "the name system:node:a/b"),
    "alternative names": (request(asked_pem(KEY, NODE, names=["worker-1"])), "alternative names"),
    "nonsense": (request("bm90IGEgcmVxdWVzdA=="), "unreadable"),
    "bad base64": (request("%"), "unreadable"),
}  # fmt: skip


@pytest.mark.parametrize(("csr", "reason"), WRONG.values(), ids=WRONG)
def test_any_other_request_is_refused(csr: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused, match=re.escape(reason)):
        claim(csr)


@given(st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True))
def test_every_host_name_fits_into_a_group_that_kubernetes_accepts(name: str) -> None:
    """k8s.io/cluster-bootstrap/token/api, BootstrapGroupPattern."""
    assert parse_name(name) == name
    assert re.fullmatch(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]", joining.group_of(name))


def test_the_programs_on_hosts_know_the_groups_of_tokens() -> None:
    assert (joining.group_of("") + "x", joining.REGION) == (program.ONE + "x", program.REGION)
    assert joining.groups(joining.REGION) == tokens.GROUPS


MINE = Claim("region-1", b"mine", True, ASKED)
LATER, BEFORE = ASKED + 3600, ASKED - 30


def rival(**changes: Any) -> list[tuple[str, Claim]]:
    return [("csr-9", MINE._replace(key=b"theirs")._replace(**changes))]


@pytest.mark.parametrize(
    ("machine", "node", "rivals", "reason"),
    [
        (BEFORE, None, [], None),
        (None, None, [], "the cloud has no machine region-1"),
        (LATER, None, [], "before the machine region-1 was created"),
        (BEFORE, BEFORE + 20, [], "kubectl delete node region-1"),
        (BEFORE, BEFORE - 20, [], None),
        (BEFORE, None, rival(), "kubectl delete csr csr-9"),
        (BEFORE, None, rival(key=b"mine"), None),
        (BEFORE, None, rival(name="region-2"), None),
        (BEFORE, None, rival(in_region=False), None),
        (BEFORE, None, rival(asked=BEFORE - 3600), None),
        (0.0, None, [], None),
        (0.0, 5.0, [], "already joined after its machine was created"),
        (0.0, None, rival(asked=5.0), "with another key"),
    ],
    ids=[
        "a machine of the cloud", "no machine", "requested too early", "a node already", "the node of an earlier machine",
        "two keys", "the same key", "another name", "with its own token", "of an earlier machine",
        "by its name alone", "by name, a node already", "by name, two keys",
    ],
)  # fmt: skip
def test_the_regions_token_is_enough_for_a_machine_without_a_node_and_without_a_rival(
    machine: float | None, node: float | None, rivals: list[tuple[str, Claim]], reason: str | None
) -> None:
    refused_because = unattested(MINE, machine, node, rivals)
    assert refused_because is None if reason is None else reason in (refused_because or "")


def test_without_an_answer_of_the_cloud_nobody_is_let_in(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "menagerie-machine"
    monkeypatch.setattr(program, "MACHINE", str(path))
    for text in (None, "#!/bin/sh\necho busy >&2; exit 69\n", "#!/bin/sh\necho nonsense\n", "#!/bin/sh\necho '[]'\n"):
        if text:
            path.write_text(text)
            path.chmod(0o755)
        with pytest.raises(Refused, match="can't ask the cloud about region-1"):
            program.machine_of("region-1")
    path.write_text("""#!/bin/sh\n[ "$*" = region-1 ] && echo '{"made": 7.5}' || echo '{"made": null}'\n""")
    assert (program.machine_of("region-1"), program.machine_of("region-2")) == (7.5, None)


class Api:
    """Lists the given requests, and records approvals."""

    def __init__(self, *listed: dict[str, Any]) -> None:
        self.listed = list(listed)
        self.coming: list[dict[str, Any]] = []
        self.approved: list[str] = []
        self.watched: list[int] = []

    def call(self, method: str, path: str, body: Any = None) -> Any:
        if path.startswith("/api/v1/nodes/"):
            raise program.ApiError(404, "no such node")
        if method == "PUT":
            self.approved.append(path.split("/")[-2])
        return {"items": self.listed, "metadata": {"resourceVersion": "1"}}

    def watch(self, path: str, version: str, wait_s: int) -> Any:
        self.watched.append(wait_s)
        yield from self.coming


def in_region(name: str, pem: str) -> dict[str, Any]:
    return request(pem, (joining.REGION,), name)


def test_a_machine_that_the_cloud_does_not_know_yet_is_looked_up_again_less_and_less_often() -> None:
    api, now, queries = Api(in_region("csr-1", asked_pem(KEY, NODE))), [0.0], []
    answers: list[float | None] = [None] * 6 + [BEFORE]

    def machine(name: str) -> float | None:
        queries.append(now[0])
        return answers.pop(0)

    approver = Approver(api, machine, lambda: now[0])  # type: ignore[arg-type]
    while answers:
        approver.follow()
        now[0] += 1.0 if now[0] < 20 else 60.0
    assert queries[:4] == [0.0, 5.0, 10.0, 15.0]
    assert api.approved == ["csr-1"]
    assert set(api.watched) == {program.LOOK_S, WATCH_S}


def test_a_request_that_arrives_during_the_watch_is_compared_with_the_known_ones() -> None:
    first, second = (in_region(f"csr-{n}", asked_pem(new_key(), NODE)) for n in (1, 2))
    decided = first | {"status": {"conditions": [{"type": "Approved"}]}}
    api = Api(decided)
    api.coming = [second]
    approver = Approver(api, lambda name: BEFORE)  # type: ignore[arg-type]
    approver.follow()
    assert api.approved == []
    denied = first | {"status": {"conditions": [{"type": "Denied"}]}}
    other = Api(denied)
    other.coming = [second]
    Approver(other, lambda name: BEFORE).follow()  # type: ignore[arg-type]
    assert other.approved == ["csr-2"]


def test_two_approvers_that_decide_at_once_do_not_both_approve() -> None:
    """Each starts without the other's request, and one approves before the other checks."""
    first, second = (in_region(f"csr-{n}", asked_pem(new_key(), NODE)) for n in (1, 2))
    server = Api(first)
    here, there = (Approver(server, lambda name: BEFORE) for _ in range(2))  # type: ignore[arg-type]
    server.listed = [first, second]
    for approver, csr in ((here, first), (there, second)):
        with pytest.raises(NotYet):
            approver.decide(csr)
    assert server.approved == []


def test_a_host_that_proves_its_name_with_a_token_does_not_wait_for_the_cloud() -> None:
    api, order = Api(in_region("csr-1", asked_pem(KEY, NODE)), request(name="csr-2")), []

    def machine(name: str) -> float | None:
        order.extend(api.approved)
        return None

    Approver(api, machine).follow()  # type: ignore[arg-type]
    assert order == ["csr-2"]


def test_a_refusal_is_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    approver = Approver(Api(request(username="alice")))  # type: ignore[arg-type]
    for _ in range(3):
        approver.follow()
    assert capsys.readouterr().out.count("csr-1 is left pending") == 1


class Refusing(Api):
    """error: the answer to an approval of csr-1."""

    def __init__(self, error: Exception, *listed: dict[str, Any]) -> None:
        super().__init__(*listed)
        self.error = error

    def call(self, method: str, path: str, body: Any = None) -> Any:
        if method == "PUT" and "/csr-1/" in path:
            raise self.error
        return super().call(method, path, body)


def test_a_lost_race_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    api = Refusing(program.ApiError(409, "no"), request())
    Approver(api).follow()  # type: ignore[arg-type]
    assert (api.watched, capsys.readouterr().out) == ([WATCH_S], "")


@pytest.mark.parametrize("status", [403, 422, 500])
def test_a_request_that_the_api_refuses_to_approve_does_not_stop_others(
    status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    api = Refusing(program.ApiError(status, "no"), request(), request(name="csr-2"))
    api.coming = [request(), request(name="csr-3")]
    approver = Approver(api)  # type: ignore[arg-type]
    approver.follow()
    approver.follow()
    assert api.approved == ["csr-2", "csr-3"] * 2
    assert api.watched == [program.LOOK_S] * 2
    assert capsys.readouterr().out.count(f"csr-1: HTTP {status}: no\n") == 1


def test_an_unreadable_request_does_not_stop_others() -> None:
    api = Api(request(usages=7), request(name="csr-2"))
    Approver(api).follow()  # type: ignore[arg-type]
    assert api.approved == ["csr-2"]


@pytest.mark.parametrize("error", [ConnectionRefusedError(), program.ApiError(401, "who?")], ids=["gone", "unknown"])
def test_an_api_that_does_not_answer_or_authenticate_ends_the_round(error: Exception) -> None:
    api = Refusing(error, request())
    with pytest.raises(type(error)):
        Approver(api).follow()  # type: ignore[arg-type]
    assert api.watched == []


def test_its_unit_has_its_own_user_and_reads_only_its_kubeconfig(lab: Any) -> None:
    (unit,) = (each for each in units.units(lab, plan(lab)) if each.name == f"{joining.NAME}.service")
    assert unit.user == joining.NAME
    assert unit.credentials == (("kubeconfig", f"/etc/kubernetes/{joining.NAME}.conf"),)
    assert subprocess.list2cmdline(unit.words).endswith("-m menagerie_host.joining")
