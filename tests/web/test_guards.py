"""Who may read: the link of this start on this machine, or a token that the cluster accepts."""

from __future__ import annotations

import base64
import time
from dataclasses import replace

import pytest

from clients.api_errors import ApiSilentError, ApiStatusError
from controllers.web import guards
from controllers.web.facts import Site
from controllers.web.guards import ClusterGuard, LinkGuard, is_loopback, token_of
from tests.web.bills import YESTERDAY, kept
from tests.web.support import HOST, PORT, SECRET, app, ask, facts, read


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
@pytest.mark.parametrize("path", ["", "cluster/lab/", "static/page.css", "nothing/"])
def test_every_method_but_get_and_head_is_405(lab, method, path):
    answer = ask(app(facts(lab)), f"/{SECRET}/{path}", method=method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/", f"/{SECRET}x/", f"/{SECRET[:-1]}/", "//", f"/static/{SECRET}/", "/é/"])
def test_without_the_whole_secret_nothing_is_served(lab, path):
    answer = ask(app(facts(lab)), path)
    assert answer.status == 403
    assert "lab" not in answer.text


def test_the_link_without_its_last_slash_leads_to_the_page(lab):
    answer = ask(app(facts(lab)), f"/{SECRET}")
    assert (answer.status, answer.headers["location"]) == (307, f"/{SECRET}/")


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.evil:{PORT}", ""]
)
def test_another_host_in_the_request_is_refused_even_with_the_secret(lab, host):
    assert ask(app(facts(lab)), f"/{SECRET}/", headers=[("Host", host)]).status == 421
    assert ask(app(facts(lab)), f"/{SECRET}/", headers=[]).status == 421


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
def test_the_names_of_this_machine_are_accepted(lab, host):
    assert ask(app(facts(lab)), f"/{SECRET}/", headers=[("Host", host)]).status == 200


def test_each_start_has_another_secret_and_it_is_long():
    first, second = LinkGuard("127.0.0.1", PORT), LinkGuard("127.0.0.1", PORT)
    assert first.secret != second.secret
    assert len(first.secret) >= 32


@pytest.mark.parametrize("path", [f"/{SECRET}/", f"/{SECRET}/static/page.js", f"/{SECRET}/none/", "/"])
def test_every_answer_forbids_scripts_from_elsewhere_frames_referrers_and_caches(lab, path):
    headers = ask(app(facts(lab)), path).headers
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "set-cookie" not in headers


class Cluster:
    """An API server's answers to reviews. tokens: token -> username. may: username -> what it may list.

    inside: username -> namespaces in which it may list pods.
    """

    def __init__(self, monkeypatch, tokens, may, inside):
        self.tokens, self.may, self.inside, self.asked, self.error = tokens, may, inside, [], None
        monkeypatch.setattr(guards, "Rest", lambda api: self)

    def write(self, method, path, body):
        if self.error:
            raise self.error
        self.asked.append((path, body["spec"]))
        if path.endswith("tokenreviews"):
            name = self.tokens.get(body["spec"]["token"])
            known = {"authenticated": True, "user": {"username": name, "groups": ["g"], "extra": {"k": ["v"]}}}
            return {"status": known if name else {"error": "unknown"}}
        assert body["kind"] == "SubjectAccessReview"
        wish, who = body["spec"]["resourceAttributes"], body["spec"]["user"]
        if space := wish.get("namespace"):
            allowed = wish["resource"] == "pods" and space in self.inside.get(who, ())
        else:
            allowed = wish["resource"] in self.may.get(who, ())
        return {"status": {"allowed": wish["verb"] == "list" and allowed}}


@pytest.fixture
def cluster(monkeypatch):
    tokens = {"good": "mia", "half": "ben", "member": "ana"}
    may = {"mia": ("nodes", "pods"), "ben": ("nodes",)}
    return Cluster(monkeypatch, tokens, may, {"ana": ("team-vision",), "ben": ("user-ben",)})


def bearer(token):
    return [("Authorization", f"Bearer {token}")]


def test_a_token_that_the_cluster_knows_and_allows_reads(lab, cluster):
    guarded = app(facts(lab), guard=ClusterGuard(lambda: None))
    assert ask(guarded, "/cluster/lab/", headers=bearer("good")).status == 200
    assert [spec.get("user") for _, spec in cluster.asked] == [None, "mia", "mia"]
    assert cluster.asked[1][1]["groups"] == ["g"] and cluster.asked[1][1]["extra"] == {"k": ["v"]}


def test_a_browser_sends_the_token_as_a_password(lab, cluster):
    guarded = app(facts(lab), guard=ClusterGuard(lambda: None))
    sent = base64.b64encode(b"anybody:good").decode()
    assert ask(guarded, "/", headers=[("Authorization", f"Basic {sent}")]).status == 200


def test_no_token_and_an_unknown_one_are_401_and_a_browser_is_asked_for_one(lab, cluster):
    guarded = app(facts(lab), guard=ClusterGuard(lambda: None))
    for headers in ([], bearer("bad"), [("Authorization", "Basic !!!")], [("Authorization", "Digest x")]):
        answer = ask(guarded, "/", headers=headers)
        assert answer.status == 401
        assert "Basic realm=" in answer.headers["www-authenticate"]
        assert "lab" not in answer.text


def test_who_may_list_nodes_but_not_pods_is_403_with_what_is_lacking(lab, cluster):
    answer = ask(app(facts(lab), guard=ClusterGuard(lambda: None)), "/", headers=bearer("half"))
    assert answer.status == 403
    lacks = "ben may not list pods in the whole cluster, nor list pods in the namespace of a team in the ledger\n"
    assert answer.text == lacks


TEAMS = {"robotics": "team-robotics", "vision": "team-vision"}


def of_teams(teams=lambda: TEAMS, clock=time.monotonic):
    return ClusterGuard(lambda: None, clock, teams)


def test_who_may_list_pods_in_a_teams_namespace_reads_the_teams_bill_and_no_other_page(lab, cluster):
    guarded = app(facts(lab, bills=read(kept("lab"))), guard=of_teams())
    answer = ask(guarded, "/bill/", headers=bearer("member"))
    assert (answer.status, "of team vision" in answer.text, "robotics" in answer.text) == (200, True, False)
    assert ask(guarded, f"/bill/{YESTERDAY}/team/vision/", headers=bearer("member")).status == 200
    assert ask(guarded, f"/bill/{YESTERDAY}/team/robotics/", headers=bearer("member")).status == 404
    refused = ask(guarded, "/cluster/lab/", headers=bearer("member"))
    assert (refused.status, "ana may not list nodes and list pods in the whole cluster" in refused.text) == (403, True)
    assert ask(guarded, "/static/page.css", headers=bearer("member")).status == 200


def test_each_teams_namespace_is_asked_about_once_a_minute_and_only_for_who_does_not_see_all(lab, cluster):
    now = [0.0]
    guarded = app(facts(lab, bills=read(kept("lab"))), guard=of_teams(clock=lambda: now[0]))
    for _ in range(3):
        ask(guarded, "/bill/", headers=bearer("member"))
    spaces = [spec["resourceAttributes"].get("namespace") for path, spec in cluster.asked if "access" in path]
    assert sorted(filter(None, spaces)) == ["team-robotics", "team-vision"]
    ask(guarded, "/bill/", headers=bearer("good"))
    assert len(cluster.asked) == 5 + 3
    cluster.inside["ana"] = ()
    now[0] = guards.ACCEPTED_S + 1
    assert ask(guarded, "/bill/", headers=bearer("member")).status == 403


def test_a_namespace_of_somebody_else_opens_no_bill(lab, cluster):
    assert ask(app(facts(lab), guard=of_teams()), "/bill/", headers=bearer("half")).status == 403


def test_teams_and_their_namespaces_are_those_of_the_ledger_and_of_the_spec(build):
    cluster = build({"tenancy": {"directory": {"file": "people.yaml"}, "teams": {"prefix": "t-"}}})
    own = facts(cluster, bills=read(kept(cluster.name)))
    assert Site(lambda: (own,), lambda: 0.0).team_namespaces() == {"robotics": "t-robotics", "vision": "t-vision"}
    assert facts(build({}), bills=read(kept("lab"))).team_namespaces() == {}
    assert replace(own, bills=read(None)).team_namespaces() == {}


@pytest.mark.parametrize("error", [ApiSilentError(OSError("silent")), ApiStatusError(403, "Forbidden", "")])
def test_an_api_that_does_not_answer_lets_nobody_in_and_is_asked_again(lab, cluster, error):
    guarded = app(facts(lab), guard=ClusterGuard(lambda: None))
    cluster.error = error
    assert ask(guarded, "/", headers=bearer("good")).status == 503
    cluster.error = None
    assert ask(guarded, "/", headers=bearer("good")).status == 200


def test_answers_are_used_again_for_a_while_and_then_the_api_is_asked_again(lab, cluster):
    now = [0.0]
    guarded = app(facts(lab), guard=ClusterGuard(lambda: None, lambda: now[0]))
    for _ in range(3):
        assert ask(guarded, "/", headers=bearer("good")).status == 200
    assert len(cluster.asked) == 3
    del cluster.tokens["good"]
    now[0] = guards.ACCEPTED_S - 1
    assert ask(guarded, "/", headers=bearer("good")).status == 200
    now[0] = guards.ACCEPTED_S + 1
    assert ask(guarded, "/", headers=bearer("good")).status == 401


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer x", "x"),
        ("bearer  x ", "x"),
        ("Basic YTpi", "b"),
        ("Basic YTpiOmM=", "b:c"),
        ("Basic YQ==", ""),
        ("x", ""),
        ("", ""),
    ],
)
def test_a_token_is_read_from_the_header(header, token):
    assert token_of(header) == token


def test_loopback_addresses_are_known_and_names_are_not():
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "localhost.evil", "")))
    assert HOST
