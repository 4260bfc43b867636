"""A whole test of a fabric, with simulated hosts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from clients.remote.executor import Done, Ssh
from cluster.errors import RefusedError
from cluster.spec import Cluster
from network.roce.plan import MeasurementOptions, MeasurementPlan, plan
from network.roce.results import Pair, Results
from network.roce.verdict import Cause
from operations import roce as running
from operations.roce import FabricReport, run
from tests.roce.support import Fabric, fabric

Build = Callable[..., Cluster]


def planned(
    build: Build, hosts: int = 4, rails: int = 1, options: MeasurementOptions | None = None, **roce: object
) -> MeasurementPlan:
    return plan(fabric(build, hosts, rails, **roce), options or MeasurementOptions())


def ran(schedule: MeasurementPlan, executor: Fabric, path: Path, **more: bool) -> FabricReport:
    return run(schedule, executor, Results(path / "r.jsonl", schedule, **more), sleep=lambda _: None)


def sends(executor: Fabric) -> list[tuple[str, str]]:
    """Return (sender, address) of every measured pair."""
    return [(host, words[-1]) for host, words in executor.calls if words[-1].startswith("10.")]


def test_a_healthy_fabric_is_fully_measured_and_reported_healthy(build: Build, tmp_path: Path) -> None:
    executor = Fabric(rails=2)
    report = ran(planned(build, 6, 2), executor, tmp_path)
    assert report.ok
    assert report.measured == {"sjc1/rail-0": 15, "sjc1/rail-1": 15}
    assert (len(sends(executor)), executor.busy) == (30, set())


def test_no_more_pairs_than_allowed_run_at_once(build: Build, tmp_path: Path) -> None:
    executor = Fabric()
    ran(planned(build, 8, options=MeasurementOptions(parallel=2)), executor, tmp_path)
    assert executor.most_busy <= 2


def test_a_slow_host_is_named_with_its_speed(build: Build, tmp_path: Path) -> None:
    report = ran(planned(build, 6), Fabric(lambda _, *pair: 0.5 if "h3" in pair else 0.98), tmp_path)
    assert [str(blame) for blame in report.blames] == [
        "port or cable of h3 on rail sjc1/rail-0: 50.0% of the line (5 of 5 pairs)"
    ]


def test_a_port_with_a_slow_link_is_measured_against_the_fabrics_speed(build: Build, tmp_path: Path) -> None:
    schedule = planned(build, 4, gbit_s=200)
    report = ran(schedule, Fabric(gbit_s=100), tmp_path)
    assert [blame.cause for blame in report.blames] == [Cause.RAIL]
    assert ran(planned(build, 4), Fabric(gbit_s=100), tmp_path / "b").ok


def test_the_mark_depends_on_the_fabrics_mtu(build: Build, tmp_path: Path) -> None:
    schedule = planned(build, 4, mtu=1024)
    report = ran(schedule, Fabric(lambda *_: 0.92), tmp_path)
    assert report.ok
    assert report.marks["sjc1/rail-0"] == pytest.approx(0.916, abs=0.001)
    assert not ran(planned(build, 4), Fabric(lambda *_: 0.92), tmp_path / "b").ok


def test_a_pair_that_loses_packets_is_named_with_the_reason(build: Build, tmp_path: Path) -> None:
    lost = " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\n"
    report = ran(planned(build, 6), Fabric(lambda _, *pair: lost if {"h2", "h5"} == set(pair) else 0.98), tmp_path)
    (blame,) = report.blames
    assert (blame.cause, set(blame.who), blame.share) == (Cause.PAIR, {"h2", "h5"}, None)
    assert "transport retries ran out" in str(blame)


def test_a_sender_waits_until_its_receiver_listens(build: Build, tmp_path: Path) -> None:
    executor = Fabric(refuse=3)
    assert ran(planned(build, 2), executor, tmp_path).ok
    assert len(sends(executor)) == 4


def test_a_sender_gives_up_on_a_receiver_that_never_listens(build: Build, tmp_path: Path) -> None:
    executor = Fabric(refuse=10**6)
    (blame,) = ran(planned(build, 2), executor, tmp_path).blames
    assert "can't reach each other on TCP port" in blame.detail
    assert len(sends(executor)) == running.ATTEMPTS


@pytest.mark.parametrize(
    ("done", "reason", "unreachable"),
    [
        (Done(255, "ssh: connect to host 10.6.0.3 port 22: No route to host\n"), "No route to host", True),
        (Done(127, "bash: /usr/local/libexec/menagerie-roce: No such file\n"), "--tags roce", False),
        (Done(0, '{"rail-0": {"refused": "ens0: Intel X710 has no RDMA"}}'), "Intel X710 has no RDMA", False),
        (Done(0, "{}"), "the host has no such rail", False),
        (Done(0, "no json"), "no json", False),
        (
            Done(0, json.dumps({"rail-0": {"interface": "ens0", "state": "DOWN", "gbit_s": None}})),
            "ens0 is DOWN, not ACTIVE: check cable and switch",
            False,
        ),
    ],
)
def test_a_host_that_can_not_take_part_is_left_out_and_reported(
    build: Build, tmp_path: Path, done: Done, reason: str, unreachable: bool
) -> None:
    report = ran(planned(build, 5), Fabric(faults={"h2": done}), tmp_path)
    (port,) = report.unfit
    assert (port.host, port.unreachable) == ("h2", unreachable)
    assert reason in port.reason
    assert (report.blames, report.measured["sjc1/rail-0"], report.ok) == ((), 6, False)


def test_an_interrupted_run_resumes(build: Build, tmp_path: Path) -> None:
    class CutError(Exception):
        pass

    def until_the_tenth(*_: str) -> float:
        if len(first.calls) > 30:
            raise CutError
        return 0.98

    schedule = planned(build, 6, options=MeasurementOptions(parallel=1))
    first = Fabric(until_the_tenth)
    with pytest.raises(CutError):
        ran(schedule, first, tmp_path)
    done = len((tmp_path / "r.jsonl").read_text().splitlines()) - 1
    assert 0 < done < 15
    with (tmp_path / "r.jsonl").open("a") as file:
        file.write('{"rail": "sjc1/rail-0", "sen')
    second = Fabric()
    assert ran(schedule, second, tmp_path).measured == {"sjc1/rail-0": 15}
    assert len(sends(second)) == 15 - done
    third = Fabric()
    assert ran(schedule, third, tmp_path).ok
    assert sends(third) == []


def test_failed_pairs_are_measured_again(build: Build, tmp_path: Path) -> None:
    schedule = planned(build, 4)
    assert not ran(schedule, Fabric(lambda _, *pair: "oh" if {"h1", "h2"} == set(pair) else 0.98), tmp_path).ok
    again = Fabric()
    assert ran(schedule, again, tmp_path).ok
    assert len(sends(again)) == 1


def test_results_of_another_plan_are_neither_used_nor_lost(build: Build, tmp_path: Path) -> None:
    ran(planned(build, 4), Fabric(), tmp_path)
    before = (tmp_path / "r.jsonl").read_text()
    other = planned(build, 4, options=MeasurementOptions(message=4096))
    with pytest.raises(RefusedError, match="--fresh"):
        ran(other, Fabric(), tmp_path)
    assert (tmp_path / "r.jsonl").read_text() == before
    assert ran(other, Fabric(), tmp_path, fresh=True).measured == {"sjc1/rail-0": 6}


def test_a_run_with_more_rounds_measures_no_pair_twice(build: Build, tmp_path: Path) -> None:
    quick, rest = Fabric(), Fabric()
    ran(planned(build, 6, options=MeasurementOptions(most=2)), quick, tmp_path)
    ran(planned(build, 6), rest, tmp_path)
    assert (len(sends(quick)), len(sends(rest))) == (6, 9)
    assert set(sends(quick)).isdisjoint(sends(rest))


def test_commands_on_hosts_end_automatically_and_mark_their_packets(build: Build, tmp_path: Path) -> None:
    executor = Fabric()
    ran(planned(build, 3, dscp=40), executor, tmp_path)
    tests = [words for _, words in executor.calls if words[-1] != "facts"]
    assert {words[:3] for words in tests} == {("timeout", "35", "ib_write_bw")}
    assert {words[words.index("--tclass") + 1] for words in tests} == {"162"}


def test_each_round_uses_its_own_port(build: Build, tmp_path: Path) -> None:
    executor = Fabric()
    ran(planned(build, 4), executor, tmp_path)
    assert {words[words.index("-p") + 1] for _, words in executor.calls if "-p" in words} == {"18515", "18516", "18517"}


def test_the_file_has_one_line_per_pair(build: Build, tmp_path: Path) -> None:
    ran(planned(build, 2), Fabric(), tmp_path)
    head, line = map(json.loads, (tmp_path / "r.jsonl").read_text().splitlines())
    assert head["cluster"] == "kestrel"
    pair = Pair(**line)
    assert (pair.key, pair.gbit_s, pair.line_gbit_s, pair.mtu) == (("sjc1/rail-0", "h1", "h2"), 98.01, 100.0, 4096)


def test_rails_and_hosts_can_be_chosen(build: Build) -> None:
    cluster = fabric(build, 12, 2)
    chosen = plan(cluster, MeasurementOptions(), only_rails=["sjc1/rail-1"], limit=["h1", "h1?"])
    assert [(rail.name, [host.name for host in rail.hosts]) for rail in chosen.rails] == [
        ("rail-1", ["h1", "h10", "h11", "h12"])
    ]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"limit": ["gpu-99"]}, "--limit gpu-99 matches no host with RDMA; there are h1, h2, h3, h4"),
        ({"only_rails": ["rail-7"]}, "there is no rail rail-7; there are sjc1/rail-0"),
        ({"limit": ["h1"]}, "no rail has two of the selected hosts"),
    ],
)
def test_a_selection_without_pairs_is_refused(build: Build, more: dict[str, list[str]], message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        plan(fabric(build, 4), MeasurementOptions(), **more)


def test_a_cluster_without_rdma_has_nothing_to_test(lab: Cluster) -> None:
    with pytest.raises(RefusedError, match="lab has no RDMA"):
        plan(lab, MeasurementOptions())


def test_the_duration_is_that_of_its_rounds(build: Build) -> None:
    assert planned(build, 8, 2).seconds() == 2 * 7 * 10
    assert planned(build, 8, 1, MeasurementOptions(most=3)).seconds() == 3 * 10


def test_ssh_connects_as_the_spec_says(build: Build) -> None:
    cluster = fabric(build, 2)
    changed = cluster.model_dump(mode="json")
    changed["spec"]["sites"]["sjc1"]["ssh"] = {"user": "ops", "port": 2222, "private_key": "/keys/ops"}
    with Ssh(Cluster.model_validate(changed, strict=False)) as executor:
        words = executor.command("h2", ["timeout", "5", "echo", "a b"])
    assert words[-7:] == ("-p", "2222", "-l", "ops", "10.6.0.3", "--", "sudo -n timeout 5 echo 'a b'")
    assert {"BatchMode=yes", "StrictHostKeyChecking=yes", 'IdentityFile="/keys/ops"'} <= set(words)


def test_ssh_trusts_the_given_host_keys_and_leaves_no_file(build: Build) -> None:
    with Ssh(fabric(build, 2), "10.6.0.3 ssh-ed25519 AAAA\n", Path("/keys/ours")) as executor:
        options = [word.partition("=") for word in executor.command("h2", ["true"]) if "=" in word]
        given = {name: value for name, _, value in options}
        known_hosts = Path(given["UserKnownHostsFile"].strip('"'))
        assert known_hosts.read_text() == "10.6.0.3 ssh-ed25519 AAAA\n"
    assert given["IdentityFile"] == '"/keys/ours"'
    assert not known_hosts.parent.exists()


def test_a_process_is_killed_if_it_takes_too_long_or_is_not_needed() -> None:
    from clients.remote.executor import _Process

    assert _Process(["sh", "-c", "echo out; echo err >&2; exit 3"]).wait(5) == Done(3, "out\nerr\n")
    assert _Process(["sleep", "60"]).wait(0.05).code == 124
    waiting = _Process(["sleep", "60"])
    waiting.stop()
    assert waiting._process.returncode != 0
