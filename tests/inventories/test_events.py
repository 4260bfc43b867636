from __future__ import annotations

import pytest

from inventories.events import Collector, failure_message
from inventories.report import TaskStatus, merged


def event(kind, host="w1", task="a task", second=0, **data):
    created = f"2026-01-01T00:00:{second:02}+00:00"
    return {"event": kind, "created": created, "event_data": {"host": host, "task": task, "role": "base", **data}}


def gathered(*events):
    progress = []
    collector = Collector(3, progress.append)
    for each in events:
        assert collector.event(each) is False
    return collector.report(1.5, False), progress


def test_counts_are_kept_by_host_and_changes_by_task():
    report, _ = gathered(
        event("runner_on_ok", res={"changed": False}),
        event("runner_on_ok", task="writes", res={"changed": True}),
        event("runner_on_skipped"),
        event("runner_on_ok", host="w2", res={}),
    )
    one = report.hosts["w1"]
    assert (one.ok, one.changed, one.skipped, one.tasks) == (2, 1, 1, 3)
    assert report.changes == {"w1": ("writes",)}
    assert report.changed == 1
    assert report.exit_code == 0


def test_failed_and_unreachable_hosts_are_told_apart():
    report, _ = gathered(
        event("runner_on_failed", res={"msg": "no space"}),
        event("runner_on_unreachable", host="w2", res={"msg": "lost"}),
    )
    assert (report.failed, report.unreachable) == (("w1",), ("w2",))
    assert [(f.host, f.message, f.unreachable) for f in report.failures] == [
        ("w1", "no space", False),
        ("w2", "lost", True),
    ]
    assert report.exit_code == 2


def test_only_unreachable_hosts_give_exit_code_4():
    report, _ = gathered(event("runner_on_unreachable", res={"msg": "lost"}))
    assert report.exit_code == 4


def test_an_ignored_failure_does_not_count():
    report, _ = gathered(event("runner_on_failed", ignore_errors=True, res={"msg": "fine"}))
    assert report.succeeded


def test_progress_counts_the_tasks_of_each_host():
    _, updates = gathered(
        event("runner_on_start"),
        event("runner_on_ok", second=2, res={"changed": True}),
        event("runner_on_start", task="next", second=2),
    )
    assert [(p.status, p.number, p.total, p.seconds) for p in updates] == [
        (TaskStatus.STARTED, 1, 3, 0.0),
        (TaskStatus.CHANGED, 1, 3, 2.0),
        (TaskStatus.STARTED, 2, 3, 2.0),
    ]


def test_the_number_of_a_task_never_exceeds_the_total():
    _, updates = gathered(*[event("runner_on_ok", res={}) for _ in range(5)])
    assert [(p.number, p.total) for p in updates][-1] == (5, 5)


def test_differences_are_unified_text_under_their_headers():
    diff = [
        {"before": "a\n", "after": "b\n", "before_header": "/etc/x", "after_header": "/etc/x"},
        {"prepared": "live\n"},
    ]
    report, _ = gathered(event("runner_on_ok", res={"changed": True, "diff": diff}))
    assert report.diffs["w1"] == "--- /etc/x\n+++ /etc/x\n@@ -1 +1 @@\n-a\n+b\nlive\n"


def test_a_warning_of_a_module_is_kept_once():
    report, _ = gathered(*[event("runner_on_ok", res={"warnings": ["not settable here"]})] * 2)
    assert report.notes == {"w1": ("not settable here",)}


def test_the_report_is_plain_data_for_json():
    report, _ = gathered(event("runner_on_failed", res={"msg": "no space"}))
    assert report.to_json()["failures"][0]["message"] == "no space"
    assert report.to_json()["hosts"]["w1"]["failed"] == 1


def test_a_task_is_timed_on_every_host_and_names_the_slowest():
    report, _ = gathered(
        event("runner_on_start"),
        event("runner_on_start", host="w2"),
        event("runner_on_ok", second=2, res={}),
        event("runner_on_ok", host="w2", second=6, res={}),
        event("runner_on_skipped", task="other", second=7),
    )
    (time,) = report.times
    assert (time.task, time.hosts, time.seconds, time.mean, time.longest, time.slowest) == ("a task", 2, 8, 4, 6, "w2")
    assert report.slowest(1) == (("w1", 7.0),)


def test_failures_that_only_differ_in_the_host_s_name_and_address_are_grouped():
    report, _ = gathered(
        event("runner_on_failed", res={"msg": "w1 at 10.0.0.1: no space"}),
        event("runner_on_failed", host="w2", res={"msg": "w2 at 10.0.0.2: no space"}),
        event("runner_on_failed", host="w3", res={"msg": "another"}),
    )
    first, second = report.groups
    assert (first.message, first.hosts) == ("w1 at 10.0.0.1: no space", ("w1", "w2"))
    assert (second.message, second.hosts) == ("another", ("w3",))


def test_reports_of_batches_are_merged():
    one, _ = gathered(event("runner_on_start"), event("runner_on_ok", second=1, res={"changed": True}))
    start, end = event("runner_on_start", host="w2"), event("runner_on_failed", host="w2", second=3, res={"msg": "x"})
    both = merged([one, gathered(start, end)[0]])
    assert (tuple(both.hosts), both.failed, both.changed, both.seconds) == (("w1", "w2"), ("w2",), 1, 3.0)
    (time,) = both.times
    assert (time.hosts, time.seconds, time.slowest) == (2, 4.0, "w2")


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"msg": "non-zero return code", "stderr": "ip is missing"}, "ip is missing"),
        ({"msg": "Task failed: The command exited with a non-zero return code.", "stdout": "no disk"}, "no disk"),
        ({"msg": "can't be fetched", "stderr": "noise"}, "can't be fetched"),
        ({"argument_errors": ["a is wrong", "b is missing"], "msg": "Validation failed"}, "a is wrong; b is missing"),
        ({"censored": "hidden"}, "hidden"),
        ({}, "no reason given"),
        (
            {"msg": "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!\nSHA256:abc.\nHost key verification failed."},
            "its SSH host key SHA256:abc has changed: the address belongs to another machine, or this one was reinstalled",
        ),
        (
            {"msg": "No ED25519 host key is known for 10.1.1.1.\nHost key verification failed."},
            "its SSH host key isn't known; log in once with ssh, compare the fingerprint, then run again",
        ),
    ],
)
def test_a_failure_has_the_most_specific_message(result, expected):
    assert failure_message(result) == expected
