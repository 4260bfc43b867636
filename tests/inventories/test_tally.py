from __future__ import annotations

import pytest

from inventories.report import Progress, TaskStatus
from inventories.tally import Tally, duration, words


def progress(host, status=TaskStatus.OK, is_last=False, message=""):
    return Progress(host, "base", "a task", status, 1, 2, 0.0, message, is_last)


def test_hosts_are_waiting_then_running_then_ended():
    tally = Tally(4)
    tally.hear(progress("w1", TaskStatus.STARTED), 0)
    tally.hear(progress("w2", TaskStatus.STARTED), 0)
    assert (tally.count.waiting, tally.count.running, tally.count.ended) == (2, 2, 0)
    tally.hear(progress("w1", TaskStatus.CHANGED), 1)
    tally.hear(progress("w1", TaskStatus.OK, is_last=True), 2)
    tally.hear(progress("w2", TaskStatus.UNREACHABLE, is_last=True, message="lost"), 3)
    tally.hear(progress("w3", TaskStatus.FAILED, is_last=True, message="no space"), 4)
    count = tally.count
    assert (count.done, count.changed, count.failed, count.unreachable) == (1, 1, 1, 1)
    assert (count.running, count.waiting) == (0, 1)


def test_a_host_that_failed_after_a_change_is_counted_once():
    tally = Tally(1)
    tally.hear(progress("w1", TaskStatus.CHANGED), 0)
    tally.hear(progress("w1", TaskStatus.FAILED, is_last=True, message="x"), 1)
    assert (tally.count.changed, tally.count.failed, tally.count.done) == (0, 1, 0)


def test_the_time_left_follows_from_the_hosts_that_have_ended():
    tally = Tally(10)
    tally.hear(progress("w1", TaskStatus.STARTED), 0)
    tally.hear(progress("w2", TaskStatus.STARTED), 0)
    assert tally.left_s() is None
    tally.hear(progress("w1", is_last=True), 10)
    # 10 s per host, two at a time: 8 waiting hosts, and one that counts as half done.
    assert tally.left_s() == pytest.approx(10 * 8.5 / 2)
    tally.hear(progress("w2", is_last=True), 10)
    assert tally.left_s() == pytest.approx(10 * 8 / 2)


def test_the_same_failure_on_many_hosts_is_counted_together():
    tally = Tally(400)
    for number in range(400):
        tally.hear(progress(f"gpu-{number}", TaskStatus.FAILED, True, f"gpu-{number} has no space\nmore"), 0)
    assert dict(tally.failures) == {"base: the host has no space": 400}


def test_the_line_omits_empty_counts():
    tally = Tally(3)
    tally.hear(progress("w1", is_last=True), 0)
    assert words(tally.count, None) == "1 of 3 hosts done"
    tally.hear(progress("w2", TaskStatus.FAILED, True, "x"), 5)
    tally.hear(progress("w3", TaskStatus.STARTED), 5)
    assert words(tally.count, 200.0) == "1 of 3 hosts done, 1 failed, 1 running, about 3 min left"


@pytest.mark.parametrize(("seconds", "text"), [(3.4, "3 s"), (119, "119 s"), (150, "2 min"), (7300, "2 h 2 min")])
def test_durations_are_rounded_for_people(seconds, text):
    assert duration(seconds) == text
