"""Totals never go backwards, and nothing is counted twice, whatever the kernel's counters do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from menagerie_traffic import metrics, totals
from menagerie_traffic.attribution import Held
from menagerie_traffic.table import Count
from menagerie_traffic.totals import State, Table, counted, fresh, idle

NAME = "out/pod/team-a"
FIRST = Table("boot-1", 7, "layout")


def read(state: State, bytes_: int, packets: int, table: Table = FIRST) -> State:
    return counted(state, table, {NAME: Count(bytes_, packets)})


def test_a_growing_counter_is_added_once() -> None:
    state = read(read(read(fresh(), 100, 1), 100, 1), 250, 2)
    assert (state.totals, state.resets) == ({NAME: Count(250, 2)}, 0)


def test_a_restart_of_the_program_neither_loses_nor_doubles_anything(tmp_path: Path) -> None:
    totals.write(read(fresh(), 100, 1), str(tmp_path / "t"))
    assert read(totals.read(str(tmp_path / "t")), 250, 2).totals == {NAME: Count(250, 2)}


@pytest.mark.parametrize("table", [Table("boot-2", 7, "layout"), Table("boot-1", 8, "layout")])
def test_after_a_boot_or_another_table_counters_start_at_zero_and_totals_go_on(table: Table) -> None:
    state = read(read(fresh(), 1000, 10), 1500, 15, table)
    assert (state.totals, state.resets) == ({NAME: Count(2500, 25)}, 1)


def test_a_counter_that_somebody_has_reset_goes_on() -> None:
    state = read(read(fresh(), 1000, 10), 30, 1)
    assert (state.totals, state.resets) == ({NAME: Count(1030, 11)}, 1)


def test_a_deleted_table_counts_as_one_reset_until_it_is_made_again() -> None:
    gone = counted(read(fresh(), 1000, 10), Table("boot-1", 0, "layout"), {})
    again = read(gone, 5, 1, Table("boot-1", 9, "layout"))
    assert (again.totals, again.resets) == ({NAME: Count(1005, 11)}, 1)


@given(st.lists(st.tuples(st.sampled_from(["count", "read", "restart", "boot", "flush"]), st.integers(0, 10**9))))
def test_totals_are_what_was_counted_and_never_go_backwards(steps: list[tuple[str, int]]) -> None:
    """Only what is counted after the last reading may be lost, and only with the table."""
    state, boot, handle, kernel, true, unread, kept = fresh(), 1, 1, 0, 0, 0, fresh()
    for what, amount in steps:
        before = state.totals.get(NAME, Count(0, 0)).bytes
        if what == "count":
            kernel, true, unread = kernel + amount, true + amount, unread + amount
        elif what == "restart":
            state = kept
        elif what in ("boot", "flush"):
            true, unread, kernel, handle = true - unread, 0, 0, handle + 1
            boot += what == "boot"
        if what != "count":
            state = counted(state, Table(str(boot), handle, ""), {NAME: Count(kernel, 0)})
            kept, unread = state, 0
            assert state.totals[NAME].bytes == true
        assert state.totals.get(NAME, Count(0, 0)).bytes >= before


def test_a_namespace_is_forgotten_a_day_after_its_last_pod() -> None:
    state = read(fresh(), 100, 1)
    state, unused = idle(state, ["team-a"], 0.0)
    assert (unused, state.left) == ([], {})
    state, unused = idle(state, [], 10.0)
    assert (unused, state.left) == ([], {"team-a": 10.0})
    assert idle(state, ["team-a"], 20.0)[0].left == {}
    state, unused = idle(state, [], 11.0 + totals.FORGET_S)
    assert (unused, state.totals, state.left) == ([NAME], {}, {})


def test_unknown_pods_are_never_forgotten() -> None:
    state = counted(fresh(), FIRST, {"in/site": Count(9, 1)})
    assert idle(state, [], 10.0**9) == (state, [])


def test_everything_that_must_outlive_the_program_is_in_the_file(tmp_path: Path) -> None:
    state = read(fresh(), 100, 1)._replace(held={"10.0.0.5": Held("s", "team-a")}, resets=3, left={"b": 5.0})
    totals.write(state, str(tmp_path / "folder" / "t"))
    assert totals.read(str(tmp_path / "folder" / "t")) == state
    assert [each.name for each in (tmp_path / "folder").iterdir()] == ["t"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 2}', '{"format": 1, "table": 1}'])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "t").write_text(text)
    with pytest.raises(ValueError, match=r"t has format|t is damaged|Expecting"):
        totals.read(str(tmp_path / "t"))


def test_metrics_have_a_series_for_what_was_counted_only() -> None:
    kernel = {NAME: Count(100, 1), "in/pod/team-a": Count(0, 0), "in/site": Count(7, 2)}
    now = metrics.Now(4, 1, {"kube-system": 2}, 12.0)
    text = metrics.text(counted(fresh(), FIRST, kernel), now)
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines == [
        'menagerie_traffic_bytes_total{namespace="team-a",direction="out",class="pod"} 100',
        'menagerie_traffic_unknown_bytes_total{direction="in",class="site"} 7',
        'menagerie_traffic_packets_total{namespace="team-a",direction="out",class="pod"} 1',
        'menagerie_traffic_unknown_packets_total{direction="in",class="site"} 2',
        'menagerie_traffic_host_network_pods{namespace="kube-system"} 2',
        'menagerie_traffic_addresses{state="attributed"} 4',
        'menagerie_traffic_addresses{state="waiting"} 1',
        "menagerie_traffic_resets_total 0",
        "menagerie_traffic_api_timestamp_seconds 12",
    ]


def test_metrics_are_in_the_format_of_prometheus() -> None:
    from prometheus_client.parser import text_string_to_metric_families

    text = metrics.text(read(fresh(), 2**63, 5), metrics.Now(0, 0, {}, 0.0))
    samples = {each.name: each.value for family in text_string_to_metric_families(text) for each in family.samples}
    assert samples["menagerie_traffic_bytes_total"] == 2.0**63


def test_json_says_which_bytes_are_of_unknown_pods() -> None:
    rows = metrics.plain(counted(fresh(), FIRST, {NAME: Count(100, 1), "in/site": Count(7, 2)}))
    assert json.loads(json.dumps(rows)) == [
        {"namespace": None, "direction": "in", "class": "site", "bytes": 7, "packets": 2},
        {"namespace": "team-a", "direction": "out", "class": "pod", "bytes": 100, "packets": 1},
    ]
