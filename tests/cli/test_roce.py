"""`roce plan` and `roce test`: output and exit codes. No host is contacted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from clients.remote import executor
from operations import ssh
from tests.cli.terminal import Menagerie
from tests.roce.support import Fabric

SPECS = Path(__file__).parents[1] / "specs"


@pytest.fixture
def kestrel() -> str:
    return str(SPECS / "valid-roce.yaml")


@pytest.fixture
def simulate(monkeypatch: pytest.MonkeyPatch) -> Callable[[Fabric], Fabric]:
    """Let a simulated fabric answer in place of SSH."""

    class InPlaceOfSsh:
        def __init__(self, fabric: Fabric) -> None:
            self._fabric = fabric

        def __enter__(self) -> Fabric:
            return self._fabric

        def __exit__(self, *_: object) -> None:
            pass

    def set_(fabric: Fabric) -> Fabric:
        monkeypatch.setattr(ssh, "ssh_to", lambda _: InPlaceOfSsh(fabric))
        return fabric

    return set_


@pytest.fixture(autouse=True)
def no_ssh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(*_: object) -> None:
        raise AssertionError("a host was reached")

    monkeypatch.setattr(executor.subprocess, "Popen", refuse)
    yield


def test_a_plan_has_the_numbers_and_a_snippet_for_every_system(menagerie: Menagerie, kestrel: str) -> None:
    ran = menagerie("roce", "plan", kestrel)
    assert ran.code == 0
    for part in (
        "tos             106",
        "Cumulus Linux (NVUE)",
        "NVIDIA Onyx",
        "SONiC (config_db.json)",
        "Arista EOS",
    ):
        assert part in ran.out


def test_one_system_and_its_ports_can_be_chosen(menagerie: Menagerie, kestrel: str) -> None:
    ran = menagerie("roce", "plan", kestrel, "--switch", "eos", "--ports", "Ethernet7/1", "--json").json
    site = ran["sites"]["sjc1"]
    assert list(site["snippets"]) == ["eos"]
    assert "interface Ethernet7/1\n" in site["snippets"]["eos"]
    assert (site["numbers"]["tos"], site["numbers"]["pfc"], ran["problems"]) == (106, [3], [])


def test_an_unknown_system_is_refused(menagerie: Menagerie, kestrel: str) -> None:
    ran = menagerie("roce", "plan", kestrel, "--switch", "ios")
    assert (ran.code, "is not one of cumulus, onyx, sonic, eos" in ran.err) == (2, True)


def test_switches_that_differ_are_named_and_exit_with_2(menagerie: Menagerie, kestrel: str, tmp_path: Path) -> None:
    facts = tmp_path / "facts.yaml"
    facts.write_text(yaml.safe_dump({"switches": {"leaf-2": {"pfc": [4], "ports": {17: {"mtu": 1500}}}}}))
    ran = menagerie("roce", "plan", kestrel, "--facts", str(facts))
    assert ran.code == 2
    assert "error[ROC-003] PFC priority is 3 on hosts and 4 on leaf-2; they must be equal" in ran.err
    assert "switch leaf-2 port 17 has 1500 (RDMA would drop to 1024)" in ran.err
    document = menagerie("roce", "plan", kestrel, "--facts", str(facts), "--json").json
    assert sorted(problem["code"] for problem in document["problems"]) == ["ROC-002", "ROC-003"]
    facts.write_text("switches: {leaf-1: {pfc: [3], trust: dscp}}\n")
    ran = menagerie("roce", "plan", kestrel, "--facts", str(facts))
    assert (ran.code, ran.out) == (0, "1 switches agree with the hosts of sjc1\n")


@pytest.mark.parametrize("verb", ["plan", "test"])
def test_a_cluster_without_rdma_is_refused(menagerie: Menagerie, verb: str) -> None:
    ran = menagerie("roce", verb, "lab", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (2, "no-rdma")


def test_a_dry_run_shows_rounds_and_time_and_contacts_no_host(menagerie: Menagerie, kestrel: str) -> None:
    ran = menagerie("roce", "test", kestrel, "--dry-run")
    assert ran.code == 0
    assert "rail sjc1/rail-0: 3 hosts, 3 pairs" in ran.out
    assert "  round 1: gpu-001 → gpu-002\n" in ran.out
    assert "about 1 min 0 s, 64 pairs at a time" in ran.out
    document = menagerie("roce", "test", kestrel, "--dry-run", "--json", "--rail", "rail-1").json
    assert document["rails"] == {
        "sjc1/rail-1": [[["gpu-001", "gpu-002"]], [["gpu-003", "gpu-001"]], [["gpu-002", "gpu-003"]]]
    }
    assert document["seconds"] == 30


def test_a_fabric_at_full_speed_passes(
    menagerie: Menagerie, kestrel: str, tmp_path: Path, simulate: Callable[[Fabric], Fabric]
) -> None:
    simulate(Fabric(rails=2))
    ran = menagerie("roce", "test", kestrel, "--results", str(tmp_path / "r.jsonl"))
    assert ran.code == 0
    assert "rail sjc1/rail-0: 3 of 3 pairs measured, threshold 97.0% of the line rate" in ran.out
    assert "every measured pair meets the threshold" in ran.out


def test_a_slow_rail_is_reported_and_a_second_run_measures_nothing_twice(
    menagerie: Menagerie, kestrel: str, tmp_path: Path, simulate: Callable[[Fabric], Fabric]
) -> None:
    slow = Fabric(lambda rail, *_: 0.5 if rail == "rail-0" else 0.98, rails=2)
    simulate(slow)
    ran = menagerie("roce", "test", kestrel, "--json", "--results", str(tmp_path / "r.jsonl"))
    assert ran.code == 1
    assert ran.json["slow"][0]["text"] == "rail sjc1/rail-0: 50.0% of the line (3 of 3 pairs)"
    again = simulate(Fabric(rails=2))
    ran = menagerie("roce", "test", kestrel, "--results", str(tmp_path / "r.jsonl"))
    assert (ran.code, "slow      rail sjc1/rail-0: 50.0% of the line" in ran.out) == (1, True)
    assert [words for _, words in again.calls if words[-1] != "facts"] == []


def test_an_unreachable_host_exits_with_4(
    menagerie: Menagerie, kestrel: str, tmp_path: Path, simulate: Callable[[Fabric], Fabric]
) -> None:
    simulate(Fabric(rails=2, faults={"gpu-002": executor.Done(255, "ssh: No route to host\n")}))
    ran = menagerie("roce", "test", kestrel, "--results", str(tmp_path / "r.jsonl"))
    assert ran.code == 4
    assert "skipped   gpu-002 on sjc1/rail-0: ssh: No route to host" in ran.out


def test_results_of_another_plan_are_refused(
    menagerie: Menagerie, kestrel: str, tmp_path: Path, simulate: Callable[[Fabric], Fabric]
) -> None:
    simulate(Fabric(rails=2))
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({"cluster": "kestrel", "plan": "another", "options": {}}) + "\n")
    ran = menagerie("roce", "test", kestrel, "--results", str(path), "--json")
    assert (ran.code, ran.json["error"]["code"]) == (2, "other-plan")
    assert menagerie("roce", "test", kestrel, "--results", str(path), "--fresh").code == 0


@pytest.mark.parametrize("verb", ["plan", "test"])
def test_the_help_has_examples_that_fit_80_columns(
    menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    page = menagerie("roce", verb, "--help")
    _, examples = page.out.split("Examples")
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    assert page.code == 0
    assert all(line.startswith(f"./menagerie roce {verb} jaguar") for line in lines)
