from __future__ import annotations

import pytest

from inventories.batches import SHARE, Amount, AmountError, batches, stops

HOSTS = tuple(f"w{n}" for n in range(10))


@pytest.mark.parametrize(
    ("size", "sizes"),
    [(None, [10]), ("3", [3, 3, 3, 1]), ("50%", [5, 5]), ("1%", [1] * 10), ("100", [10]), ("100%", [10])],
)
def test_every_host_is_in_one_batch_and_in_order(size, sizes):
    parts = list(batches(HOSTS, Amount.parse(size) if size else None))
    assert [len(batch) for batch in parts] == sizes
    assert tuple(host for batch in parts for host in batch) == HOSTS


def test_a_large_fleet_runs_in_default_batches():
    many = tuple(map(str, range(SHARE * 2 + 1)))
    assert [len(batch) for batch in batches(many, None)] == [SHARE, SHARE, 1]


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "1.5", "101%", "0%", "5 %", "9999999"])
def test_an_invalid_number_of_hosts_is_refused_with_a_hint(text):
    with pytest.raises(AmountError, match=r"neither .* write 50 or 10%"):
        Amount.parse(text, least=1)


@pytest.mark.parametrize(
    ("failed", "limit", "last", "stopped"),
    [
        (0, None, (0, 5), False),
        (4, None, (4, 5), False),
        (5, None, (5, 5), True),
        (2, "2", (2, 5), False),
        (3, "2", (1, 5), True),
        (1, "0", (1, 5), True),
        (10, "10%", (0, 5), False),
        (11, "10%", (0, 5), True),
        (5, "50", (5, 5), False),
    ],
)
def test_no_batch_starts_above_the_limit_of_failures(failed, limit, last, stopped):
    given = Amount.parse(limit) if limit else None
    assert bool(stops(failed, 100, given, last)) is stopped
