"""Parsing of etcdctl's output, with a fake etcdctl."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from clients import etcd_client as etcd
from clients.etcd_client import EtcdClient, EtcdError
from tests.operations.conftest import FakeAccess, outputs

MAIN = "https://10.77.0.21:2379,https://10.77.0.22:2379,https://10.77.0.23:2379"


@pytest.fixture
def etcdctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], EtcdClient]:
    """Return a client of etcd main whose etcdctl is a shell script, with its arguments in $*."""

    def client(script: str) -> EtcdClient:
        program = tmp_path / "etcdctl"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(etcd, "ensure", lambda names: dict.fromkeys(names, program))
        return EtcdClient(FakeAccess(outputs()), "main")  # type: ignore[arg-type]

    return client


def test_each_member_has_its_own_ailment(etcdctl: Callable[[str], EtcdClient]) -> None:
    answer = (
        '[{"endpoint":"https://10.77.0.22:2379","health":true,"took":"3ms"},'
        '{"endpoint":"https://10.77.0.21:2379","health":false,"took":"3s","error":"context deadline exceeded"}]'
    )
    ailments = etcdctl(f"echo '{answer}'; echo 'Error: unhealthy cluster' >&2; exit 1").ailments()
    assert ailments == {
        "etcd-main-1": "context deadline exceeded",
        "etcd-main-2": "",
        "etcd-main-3": "Error: unhealthy cluster",
    }


def test_a_member_without_a_result_is_unhealthy(etcdctl: Callable[[str], EtcdClient]) -> None:
    ailments = etcdctl("exit 0").ailments()
    assert list(ailments) == ["etcd-main-1", "etcd-main-2", "etcd-main-3"]
    assert all(ailments.values())


def test_each_responding_member_reports_the_leader_and_its_size(etcdctl: Callable[[str], EtcdClient]) -> None:
    """Return a status as etcdctl 3.6 prints it; zeros are omitted."""
    header = '"header":{"cluster_id":9,"member_id":255,"revision":7,"raft_term":4}'
    status = f'{{{header},"version":"3.6.14","dbSize":4096,"leader":255,"dbSizeInUse":1024,"dbSizeQuota":8589934592}}'
    answer = f'[{{"Endpoint":"https://10.77.0.22:2379","Status":{status}}}]'
    alone = "--endpoints=https://10.77.0.22:2379 "
    statuses = etcdctl(f"""case "$*" in *"{alone}"*) echo '{answer}';; *) exit 1;; esac""").statuses()
    assert list(statuses) == ["etcd-main-2"]
    member = statuses["etcd-main-2"]
    assert (member.id, member.leads, member.term) == ("ff", True, 4)
    assert (member.size, member.size_in_use, member.quota, member.errors) == (4096, 1024, 8 * 2**30, ())


def test_a_member_reports_its_progress_and_whether_a_downgrade_is_enabled(etcdctl: Callable[[str], EtcdClient]) -> None:
    """Output of etcdctl 3.6.14 after a downgrade was enabled."""
    header = '"header":{"cluster_id":9,"member_id":255,"revision":7,"raft_term":4}'
    log = '"raftIndex":6,"raftAppliedIndex":5,"downgradeInfo":{"enabled":true,"targetVersion":"3.5.0"}'
    answer = f'[{{"Endpoint":"https://10.77.0.22:2379","Status":{{{header},"version":"3.6.14",{log}}}}}]'
    member = etcdctl(f"echo '{answer}'").statuses()["etcd-main-2"]
    assert (member.index, member.applied, member.downgrade) == (6, 5, "3.5.0")


def test_a_request_uses_all_members_so_that_a_dead_one_does_not_block_it(
    etcdctl: Callable[[str], EtcdClient],
) -> None:
    client = etcdctl(f"""case "$*" in *"--endpoints={MAIN} "*) echo '"Count" : 7';; esac""")
    assert client.count("/registry/events/") == 7


def test_the_value_of_a_key_is_its_bytes_and_a_missing_key_has_none(etcdctl: Callable[[str], EtcdClient]) -> None:
    assert etcdctl("""echo '{"kvs":[{"value":"azhzOg=="}]}'""").read("/a") == b"k8s:"
    assert etcdctl("echo '{}'").read("/a") == b""


def test_an_error_has_the_etcd_s_name_and_etcdctl_s_text(etcdctl: Callable[[str], EtcdClient]) -> None:
    with pytest.raises(EtcdError, match="etcd main: Error: context deadline exceeded"):
        etcdctl("echo 'Error: context deadline exceeded' >&2; exit 1").count("/")


def test_a_hanging_etcdctl_is_killed(etcdctl: Callable[[str], EtcdClient], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etcd, "TIMEOUT_S", 0.1)
    with pytest.raises(EtcdError, match="etcd main: no answer within"):
        etcdctl("exec sleep 60").ailments()
