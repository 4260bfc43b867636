"""`configure` over many hosts: what is configured, when it stops, what the journal has. Ansible is a fake."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest

from clients.access import ROOT
from cluster.artefacts import catalogue
from cluster.load import load_cluster
from cluster.outputs import ArtefactOutput, ClusterOutputs, SshOutput
from inventories.batches import Amount
from inventories.report import Failure, HostReport, Progress, RunReport, TaskStatus
from operations import configure as operation
from operations.configure import PlaybookRequest, configure, plan, workers_error
from stacks.errors import StackLockedError
from stacks.run_lock import turn

DONE, BROKEN, LOST = HostReport(11, 1), HostReport(3, 0, 1), HostReport(0, 0, 0, 1)
EVERYTHING = PlaybookRequest()


class Ansible:
    """Substitute for `inventories.run.run`: each host ends as in `ends`, by default successfully."""

    def __init__(self):
        self.ends: dict[str, HostReport] = {}
        self.batches: list[tuple[str, ...]] = []
        self.tokens: list[dict[str, str]] = []
        self.cut_after: int | None = None

    def __call__(self, inventory, *, on_progress, check, **_):
        self.batches.append(inventory.hosts)
        tokens = {host: values.get("kubelet_token") for host, values in inventory.data["all"]["hosts"].items()}
        self.tokens.append({host: token for host, token in tokens.items() if token})
        hosts, failures = {}, []
        for host in inventory.hosts:
            if self.cut_after is not None and sum(map(len, self.batches[:-1])) + len(hosts) == self.cut_after:
                return RunReport(hosts, tuple(failures), canceled=True)
            hosts[host] = end = self.ends.get(host, DONE)
            status = TaskStatus.OK
            if not end.succeeded:
                status = TaskStatus.FAILED if end.failed else TaskStatus.UNREACHABLE
                failures.append(Failure(host, "base", "t", f"{host} has no space", status is TaskStatus.UNREACHABLE))
            on_progress(Progress(host, "kubelet", "t", status, 11, 11, is_last=True))
        return RunReport(hosts, tuple(failures))


@pytest.fixture
def ansible(monkeypatch, tmp_path):
    made = Ansible()
    monkeypatch.setattr(operation, "run", made)
    monkeypatch.setattr(operation, "STATE", tmp_path)
    return made


@pytest.fixture
def access():
    sums = {artefact.source: f"{number:064x}" for number, artefact in enumerate(catalogue().values())}
    outputs = ClusterOutputs(
        cluster="lab",
        endpoint="10.77.0.10:6443",
        konnectivity="10.77.0.10:8132",
        ca_pem="ca",
        api_servers=(),
        etcds={},
        artefacts=ArtefactOutput(mirror="http://10.79.1.10/mirror", sha256=sums, registry=""),
        ssh=SshOutput(known_hosts={}),
    )
    return SimpleNamespace(outputs=outputs, ssh_key_file=nullcontext)


@pytest.fixture
def go(lab, access, ansible):
    """go(Request): a whole run. Returns the hosts that Ansible got, and the report."""

    def act(request=EVERYTHING, cluster=lab, tokens=operation.no_tokens):
        ansible.batches.clear()
        report, why = configure(plan(cluster, access, request), tokens)
        return [host for batch in ansible.batches for host in batch], report, why

    return act


@pytest.fixture
def lab():
    """Six workers."""
    lab_cluster = load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml")
    first = lab_cluster.hosts["workers"][0]
    hosts = tuple(
        first.model_copy(update={"name": f"w{n}", "address": first.address + n, "rack": "r1"}) for n in range(1, 7)
    )
    return lab_cluster.model_copy(update={"hosts": {**lab_cluster.hosts, "workers": hosts}})


ALL = [f"w{n}" for n in range(1, 7)]


def test_without_resume_every_host_is_checked_each_time(go):
    assert go()[0] == ALL
    assert go()[0] == ALL


def test_with_resume_a_host_that_is_done_is_left_alone(go):
    go()
    touched, report, _ = go(PlaybookRequest(resume=True))
    assert touched == []
    assert report.left_out == tuple(ALL)
    assert report.succeeded


def test_an_interrupted_run_resumes_with_the_hosts_that_were_not_done(go, ansible):
    ansible.cut_after = 2
    _, report, _ = go()
    assert report.canceled
    assert report.not_begun == ("w3", "w4", "w5", "w6")
    ansible.cut_after = None
    assert go(PlaybookRequest(resume=True))[0] == ["w3", "w4", "w5", "w6"]


def test_with_resume_only_failed_hosts_are_retried(go, ansible):
    ansible.ends = {"w2": BROKEN, "w5": LOST}
    go()
    ansible.ends = {}
    assert go(PlaybookRequest(resume=True))[0] == ["w2", "w5"]


def test_a_host_that_fails_later_is_no_longer_known_as_done(go, ansible, lab):
    go()
    changed = _with_address(lab, "w3")
    ansible.ends = {"w3": BROKEN}
    assert go(PlaybookRequest(resume=True), changed)[0] == ["w3"]
    assert go(PlaybookRequest(resume=True))[0] == ["w3"]  # rolled back: the host may be between the two states


def test_adding_or_changing_one_host_configures_only_that_host(go, lab):
    go()
    workers = lab.hosts["workers"]
    more = (*workers, workers[0].model_copy(update={"name": "w7", "address": workers[0].address + 50}))
    bigger = lab.model_copy(update={"hosts": {**lab.hosts, "workers": more}})
    assert go(PlaybookRequest(resume=True), bigger)[0] == ["w7"]
    assert go(PlaybookRequest(resume=True), _with_address(lab, "w4"))[0] == ["w4"]


def _with_address(cluster, name):
    """Return the cluster with another address for one host."""
    hosts = [
        host.model_copy(update={"address": host.address + 60}) if host.name == name else host
        for host in cluster.hosts["workers"]
    ]
    return cluster.model_copy(update={"hosts": {**cluster.hosts, "workers": tuple(hosts)}})


def test_a_check_writes_no_journal(go):
    go(PlaybookRequest(check=True))
    assert go(PlaybookRequest(resume=True))[0] == ALL


def test_a_run_of_one_role_does_not_count_as_a_run_of_all(go):
    go(PlaybookRequest(tags=("base",)))
    assert go(PlaybookRequest(tags=("base",), resume=True))[0] == []
    assert go(PlaybookRequest(resume=True))[0] == ALL


def test_batches_stop_after_too_many_failures_and_list_hosts_that_were_not_started(go, ansible):
    ansible.ends = {"w1": BROKEN, "w3": LOST}
    _, report, why = go(PlaybookRequest(batch=Amount(2), max_failures=Amount(1)))
    assert ansible.batches == [("w1", "w2"), ("w3", "w4")]
    assert report.not_begun == ("w5", "w6")
    assert "more than --max-failures allows (1)" in why
    assert not report.succeeded
    text = str(workers_error(report, why))
    assert "2 of 4 hosts done" in text
    assert "not started: w5, w6" in text


def test_each_joining_host_has_its_own_token_and_a_run_without_joining_hosts_has_none(go, ansible):
    asked = []

    @contextmanager
    def tokens(hosts):
        asked.append(tuple(hosts))
        yield {host: f"abcde{host[1]}.0123456789abcdef" for host in hosts if host != "w2"}

    go(PlaybookRequest(batch=Amount(3)), tokens=tokens)
    assert asked == [("w1", "w2", "w3"), ("w4", "w5", "w6")]
    assert ansible.tokens == [
        {"w1": "abcde1.0123456789abcdef", "w3": "abcde3.0123456789abcdef"},
        {host: f"abcde{host[1]}.0123456789abcdef" for host in ("w4", "w5", "w6")},
    ]
    ansible.tokens.clear()
    go(PlaybookRequest(check=True), tokens=tokens)
    go(PlaybookRequest(tags=("base",)), tokens=tokens)
    assert ansible.tokens == [{}, {}]


def test_the_journal_contains_no_part_of_a_token(go, tmp_path):
    go(tokens=lambda hosts: nullcontext(dict.fromkeys(hosts, "abcdef.0123456789abcdef")))
    kept = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert kept
    assert [text for text in kept if "abcdef" in text or "0123456789abcdef" in text] == []


def test_a_second_run_on_the_same_workers_is_refused_at_once(go, tmp_path):
    (tmp_path / "lab").mkdir()
    with (
        turn(tmp_path / "lab" / "workers-turn"),
        pytest.raises(StackLockedError, match="being configured by another run: process"),
    ):
        go()


def test_the_same_failure_on_400_hosts_is_one_line(go):
    hosts = {f"gpu-{n:03}": BROKEN for n in range(400)}
    failures = tuple(
        Failure(host, "base", "t", f"{host}: no space at 10.0.0.{n % 200}") for n, host in enumerate(hosts)
    )
    text = str(workers_error(RunReport(hosts, failures)))
    assert len(text.splitlines()) == 3
    assert "400 hosts (gpu-000, gpu-001, gpu-002 …): base: t: gpu-000: no space at 10.0.0.0" in text
