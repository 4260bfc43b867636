from __future__ import annotations

import ipaddress
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from components.control_plane import sizing
from components.control_plane.kube_apiserver import flags as rendered
from network.addresses import plan
from tests.bench import load, scale, simulated, storms
from tests.bench.load import Timed
from tests.bench.loopback import ADVERTISED, Shape, _delayed, api_server, cluster_of, companions, etcd
from tests.bench.loopback_files import USERS, write
from tests.bench.readings import Usage

FOLDER = Path("/work")


def flags(words: list[str]) -> dict[str, str]:
    return dict(word.removeprefix("--").split("=", 1) for word in words)


def command(shape: Shape) -> dict[str, str]:
    cluster = cluster_of(shape)
    return flags(api_server(shape, cluster, plan(cluster), FOLDER))


def test_everything_listens_on_loopback_and_two_control_planes_share_no_address() -> None:
    listening_on = []
    for number in (0, 1):
        shape = Shape(300, number)
        cluster = cluster_of(shape)
        plan_ = plan(cluster)
        words = [
            *api_server(shape, cluster, plan_, FOLDER),
            *(word for role in shape.roles for word in etcd(shape, cluster, plan_, role, FOLDER)),
        ]
        words += [word for address in companions(shape, cluster, plan_, FOLDER).values() for word in address]
        listening = [word for word in words if re.match(r"--(listen-|bind-address)", word)]
        addresses = {address for word in listening for address in re.findall(r"\d+\.\d+\.\d+\.\d+", word)}
        assert all(ipaddress.ip_address(address).is_loopback for address in addresses)
        listening_on.append(addresses)
    assert listening_on[0] & listening_on[1] == set()


def test_the_split_differs_from_one_etcd_only_by_the_overrides() -> None:
    split, one = command(Shape(300, 0)), command(Shape(300, 0, split=False))
    assert set(split) - set(one) == {"etcd-servers-overrides"}
    assert {name: split[name] for name in one} == one


def test_the_rendered_flags_are_used_except_for_konnectivity_and_paths_of_this_machine() -> None:
    shape = Shape(300, 0)
    cluster = cluster_of(shape)
    table, used = rendered(cluster, plan(cluster)), command(shape)
    assert set(table) - set(used) == {"egress-selector-config-file"}
    assert set(used) - set(table) == {"bind-address"}
    changed = {name for name in used if name in table and used[name] != table[name]}
    assert all(used[name] == f"{FOLDER}{table[name]}" for name in changed - {"advertise-address"})
    assert used["advertise-address"] == ADVERTISED


def test_kubernetes_defaults_are_the_same_command_without_settings_by_size() -> None:
    ours, theirs = Shape(7500, 0), Shape(7500, 0, defaults=True)
    assert set(command(ours)) - set(command(theirs)) == {
        s.flag for s in sizing.SETTINGS if s.program == "kube-apiserver"
    }
    cluster = cluster_of(theirs)
    for words in companions(theirs, cluster, plan(cluster), FOLDER).values():
        assert not {"kube-api-qps", "kube-api-burst"} & set(flags(words))


def test_a_cluster_on_loopback_has_a_pod_range_for_every_node() -> None:
    network = cluster_of(Shape(7500, 0)).spec.network
    assert 2 ** (network.node_prefix - network.pods.prefixlen) >= 7500


def test_every_file_that_a_flag_names_is_written(tmp_path: Path) -> None:
    shape = Shape(300, 0)
    cluster = cluster_of(shape)
    plan_ = plan(cluster)
    write(cluster, plan_, tmp_path)
    words = [
        *api_server(shape, cluster, plan_, tmp_path),
        *(word for role in shape.roles for word in etcd(shape, cluster, plan_, role, tmp_path)),
    ]
    words += [word for each in companions(shape, cluster, plan_, tmp_path).values() for word in each]
    named = {word.partition("=")[2] for word in words if str(tmp_path) in word}
    made_by_the_program = {name for name in named if "/var/" in name}
    assert [name for name in sorted(named - made_by_the_program) if not Path(name).is_file()] == []
    assert {path.stem for path in (tmp_path / "users").glob("*.conf")} == {user.name for user in USERS}


def test_a_slow_disk_delays_only_fdatasync() -> None:
    assert "inject=fdatasync:delay_enter=2000" in _delayed(2000)
    assert storms.SPLIT.shape(0, 2000).fsync_delays == {"events": 2000}
    assert storms.ONE.shape(0, 2000).fsync_delays == {"main": 2000}
    assert storms.ONE.shape(0, 0).fsync_delays == {}


def test_a_percentile_is_by_nearest_rank_and_needs_values() -> None:
    timed = Timed(tuple(number / 100 for number in range(100, 0, -1)), Counter())
    assert (timed.percentile(0.5), timed.percentile(0.99), timed.percentile(1.0)) == (0.5, 0.99, 1.0)
    with pytest.raises(ValueError, match="503"):
        Timed((), Counter({"503": 4})).percentile(0.5)


def test_no_two_events_of_a_storm_belong_to_one_object() -> None:
    many = [next_ for next_, _ in zip(load.events("x"), range(100), strict=False)]
    assert len({call[2]["involvedObject"]["name"] for call in many}) == 100


def test_a_probe_reads_only_existing_objects() -> None:
    made = {simulated.node(number)[2]["metadata"]["name"] for number in range(70)}
    pods = {simulated.pod(number, 0)[2]["metadata"]["name"] for number in range(70)}
    for method, path, _, _ in scale.single_calls(70, 500):
        last = path.rpartition("/")[2]
        assert method == "POST" or last in made | pods | {"kube-root-ca.crt"}


def test_a_node_is_settled_when_it_is_ready_untainted_and_has_its_range() -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    taint = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    items = [
        {"spec": {"podCIDR": "10.64.0.0/24"}, "status": ready},
        {"spec": {}, "status": ready},
        {"spec": {"podCIDR": "10.64.1.0/24", "taints": taint}, "status": ready},
        {"spec": {"podCIDR": "10.64.2.0/24"}, "status": {}},
    ]

    class Answers:
        def get(self, path: str) -> object:
            return {"items": items}

    assert simulated.unsettled_nodes(Answers()) == 3  # type: ignore[arg-type]


def test_the_stages_of_kwok_cover_nodes_and_pods() -> None:
    stages = list(yaml.safe_load_all(simulated.STAGES.read_text()))
    kinds = Counter(stage["spec"]["resourceRef"]["kind"] for stage in stages)
    assert kinds == {"Node": 2, "Pod": 1}


def test_the_figure_nearest_to_its_limit_is_reported() -> None:
    usage = Usage(
        p99={"GET": (0.1, 900), "PUT": (0.8, 120)},
        writes_s={"main": 100.0},
        fsync_p99={},
        refused=0.0,
        cores={},
        busy=0.5,
        rss_mb=100.0,
        databases={"main": 0.1},
    )
    size = scale.Size(300, 1.0, 1.0, 1.0, 1.0, Timed((0.1,), Counter()), {"nodes": Timed((0.2,), Counter())}, usage)
    assert scale.nearest(size) == ("single calls against 1 s", pytest.approx(0.8))
    figures = {figure.name: figure for figure in scale.summary([size], [], 10)}
    assert figures["300 nodes: PUT p99 of 120, API server's histogram"].met


def test_lists_are_timed_by_the_client_and_counted() -> None:
    usage = Usage({}, {"main": 100.0}, {}, 0.0, {}, 0.5, 100.0, {"main": 0.1})
    listed = Timed((2.0, 31.0, 3.0), Counter())
    size = scale.Size(300, 1.0, 1.0, 1.0, 1.0, Timed((0.1,) * 600, Counter()), {"pods": listed}, usage)
    assert scale.nearest(size) == ("lists against 30 s", pytest.approx(31 / 30))
    figures = {figure.name: figure for figure in scale.summary([size], [], 10)}
    assert figures["300 nodes: list of all pods, slowest of 3, client"].met is False
    assert figures["300 nodes: single calls p99 of 600, client"].met


def test_a_storm_that_affects_main_misses_its_aims() -> None:
    def turn(stormy_ms: float, main: float, failed: int) -> storms.Round:
        quiet = Timed((0.01,) * 100, Counter())
        return storms.Round(quiet, Timed((stormy_ms / 1000,) * 100, Counter({"503": failed})), 100.0, main, 500.0)

    def met(split: storms.Round, one: storms.Round) -> set[bool | None]:
        rounds = {storms.SPLIT.name: [split], storms.BOTH_SLOW.name: [turn(50, 100, 0)], storms.ONE.name: [one]}
        turns = storms.Turns(rounds, dict.fromkeys(rounds, 5.0))
        compared = [
            f
            for f in storms.summary(storms.STORMS[0], turns)
            if storms.BOTH_SLOW.name not in f.name and f.aim is not None
        ]
        return {figure.met for figure in compared if not figure.name.endswith("one etcd: failed")}

    assert met(turn(10, 100, 0), turn(200, 9000, 0)) == {True}
    assert met(turn(150, 200, 1), turn(200, 9000, 0)) == {False}


def test_every_renewal_of_a_lease_is_different() -> None:
    calls = [*load.ordinary("a", 40, ["node-1"]), *load.ordinary("b", 40, ["node-1"])]
    renewals = [body["spec"]["renewTime"] for method, _, body, _ in calls if method == "PATCH"]
    assert len(set(renewals)) == len(renewals) == 40


def test_storms_are_chosen_by_disk_delay_and_event_rate() -> None:
    assert [storms.Storm.parsed(text) for text in ("2", "20:150")] == list(storms.STORMS)
    assert [str(each) for each in storms.STORMS] == ["fsync of 2 ms, all Events/s", "fsync of 20 ms, 150 Events/s"]
    with pytest.raises(ValueError, match="could not convert"):
        storms.Storm.parsed("fast")
