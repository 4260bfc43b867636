"""When hosts' reports prove that they use the stack's current values."""

from __future__ import annotations

from dataclasses import replace

from operations.keys.reports import KeyReport, unproven
from stacks.cloud_store import API_SERVERS

DIGESTS = {API_SERVERS: {"ca.crt": "new", "never-asked-for": "x"}, "etcd-main-1": {"ca.crt": "new"}}
MEMBER = KeyReport("etcd-main-1", "etcd-main-1", 0, {"ca.crt": "new"}, {}, (), {}, "main", 7)
API = replace(MEMBER, host="ip-10-0-0-7", reader=API_SERVERS)
ALL = (MEMBER, API)
LIVE = frozenset({"ip-10-0-0-7"})


def test_every_member_s_host_and_every_live_api_server_must_have_reported():
    assert unproven(DIGESTS, ALL, LIVE) == ""
    assert "no report from etcd-main-1;" in unproven(DIGESTS, (API,), LIVE)
    assert "no report from ip-10-0-0-8;" in unproven(DIGESTS, ALL, LIVE | {"ip-10-0-0-8"})


def test_a_report_from_before_the_update_proves_nothing():
    assert unproven(DIGESTS, ALL, LIVE, {"main": 6}) == ""
    assert "no report from etcd-main-1, ip-10-0-0-7 since then" in unproven(DIGESTS, ALL, LIVE, {"main": 7})


def test_differing_values_are_named():
    other = replace(MEMBER, digests={"ca.crt": "old"})
    assert unproven(DIGESTS, (other, API), LIVE) == "etcd-main-1 does not use the new ca.crt yet"


def test_a_lagging_program_or_a_failed_round_proves_nothing():
    lags = replace(MEMBER, lagging={"etcd-main.service": "is not running"})
    failed = replace(API, failures=("kubeadm failed with 1",))
    assert unproven(DIGESTS, (lags, API), LIVE) == "etcd-main-1: etcd-main.service is not running"
    assert unproven(DIGESTS, (MEMBER, failed), LIVE) == "ip-10-0-0-7: kubeadm failed with 1"


def test_an_api_server_that_reported_and_is_not_alive_now_is_waited_for():
    starting = replace(API, host="ip-10-0-0-9", revision=5)
    assert unproven(DIGESTS, (*ALL, starting), LIVE) == ""
    reason = unproven(DIGESTS, (*ALL, starting), LIVE, {"main": 6})
    assert "no report from ip-10-0-0-9 since then" in reason
    assert "the API server on ip-10-0-0-9 is not alive; a removed host is forgotten after an hour" in reason


def test_without_a_live_api_server_nothing_is_proven():
    assert unproven(DIGESTS, ALL, frozenset()) == "no API server has a current lease"
