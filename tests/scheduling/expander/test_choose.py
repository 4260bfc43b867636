"""Which of cluster-autoscaler's offers are chosen."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.expander.choose import Choice, Offer, Waiting, choose
from controllers.planner.resources import Resources

DOLLAR = 1_000_000


def offer(id_: str, count: int, dollars: float | None, cpu: int, *pods: str, gpus: int = 0, **more: object) -> Offer:
    room = Resources.of({"cpu": cpu * 1000, "memory": cpu * 4096, "pods": 110, "nvidia.com/gpu": gpus})
    price = None if dollars is None else round(dollars * DOLLAR)
    return Offer(id_, count, price, room, frozenset(pods), **more)  # type: ignore[arg-type]


def waiting(count: int, prefix: str, cpu: int, gpus: int = 0) -> dict[str, Waiting]:
    requests = Resources.of({"cpu": cpu * 1000, "memory": cpu * 1024, "nvidia.com/gpu": gpus})
    return {f"{prefix}-{number}": Waiting(requests) for number in range(count)}


def chosen(choice: Choice) -> tuple[str, ...]:
    assert choice.decided
    return choice.ids


def test_the_cheapest_of_hosts_for_the_same_pods_is_chosen() -> None:
    pods = waiting(4, "web", 4)
    offers = [offer("small", 4, 0.25, 4, *pods), offer("large", 1, 0.8, 16, *pods), offer("dear", 1, 3.0, 16, *pods)]
    assert chosen(choose(offers, pods)) == ("large",)


def test_gpu_hosts_are_not_filled_with_pods_that_fit_elsewhere() -> None:
    gpu, cpu = waiting(8, "train", 8, gpus=1), waiting(100, "web", 4)
    both = {**gpu, **cpu}
    offers = [offer("h100", 5, 55.0, 96, *both, gpus=8), offer("cpu", 7, 1.5, 64, *cpu)]
    choice = choose(offers, both)
    assert chosen(choice) == ("cpu",)
    assert "times the cost of the cheapest plan for them" in choice.reasons["h100"]
    assert chosen(choose(offers[:1], gpu | {key: cpu[key] for key in cpu})) == ("h100",)


def test_a_cheap_host_for_one_pod_is_not_chosen_if_a_larger_host_is_needed_anyway() -> None:
    pods = waiting(10, "web", 2)
    one = {"web-0": pods["web-0"]}
    # 0.10 for a pod that costs 0.06 as part of the large host.
    offers = [offer("tiny", 1, 0.10, 2, *one), offer("large", 1, 0.60, 20, *pods)]
    assert chosen(choose(offers, pods)) == ("large",)


def test_equally_good_offers_are_all_left_to_the_next_expander() -> None:
    pods = waiting(2, "web", 4)
    offers = [offer("zone-a", 1, 0.5, 8, *pods), offer("zone-b", 1, 0.5, 8, *pods), offer("dear", 1, 0.6, 8, *pods)]
    assert chosen(choose(offers, pods)) == ("zone-a", "zone-b")


def test_spot_hosts_count_with_the_cost_of_interruptions() -> None:
    pods = waiting(2, "web", 4)
    risky = offer("spot", 1, 0.45, 8, *pods, spot=True, interruptions=0.5)
    assert chosen(choose([risky, offer("kept", 1, 0.6, 8, *pods)], pods)) == ("kept",)
    assert chosen(choose([risky, offer("kept", 1, 0.7, 8, *pods)], pods)) == ("spot",)


def test_without_a_price_all_offers_are_returned_with_the_reason() -> None:
    pods = waiting(2, "web", 4)
    choice = choose([offer("known", 1, 0.5, 8, *pods), offer("unknown", 1, None, 8, *pods)], pods)
    assert (choice.decided, choice.ids) == (False, ("known", "unknown"))
    assert choice.reasons["known"] == "the price of unknown is unknown"


def test_an_offer_without_pods_decides_nothing() -> None:
    pods = waiting(1, "web", 4)
    assert not choose([offer("a", 1, 0.5, 8, *pods), offer("b", 1, 0.5, 8)], pods).decided


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_answer_contains_offered_groups_and_the_cheapest_of_equals(data: st.DataObject) -> None:
    pods = waiting(data.draw(st.integers(1, 12)), "web", data.draw(st.integers(1, 4)))
    prices = data.draw(st.lists(st.integers(1, 50), min_size=1, max_size=4))
    count = len(pods)
    offers = [offer(f"group-{number}", count, price / 10, 8, *pods) for number, price in enumerate(prices)]
    ids = chosen(choose(offers, pods))
    assert ids and set(ids) <= {each.id for each in offers}
    # The offers differ only in the price of a node.
    assert {prices[int(id_.rpartition("-")[2])] for id_ in ids} == {min(prices)}
