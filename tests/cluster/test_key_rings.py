"""The states of a key ring, and their order."""

from __future__ import annotations

import pytest

from cluster.key_rings import Ring


def test_a_rotation_has_three_steps_and_restarts_with_the_next_generation():
    assert [str(step) for step in Ring((1,)).steps()] == ["1,2", "2,1", "2"]
    assert [str(step) for step in Ring((2,)).steps()] == ["2,3", "3,2", "3"]
    assert [Ring(each).state for each in ((1,), (1, 2), (2, 1))] == ["stable", "introduced", "promoted"]


@pytest.mark.parametrize(("now", "way"), [("1,2", ["1"]), ("2,1", ["1,2", "1"]), ("2", []), ("1", [])])
def test_rollback_ends_at_the_former_generation_and_is_impossible_without_it(now, way):
    assert [str(step) for step in Ring.parse(now).steps(back=True)] == way


def test_neighbouring_states_both_have_each_other_s_active_generation():
    """A host one step behind understands what the others sign, and vice versa."""
    now = Ring()
    for step in now.steps():
        assert now.at_work in step.generations
        assert step.at_work in now.generations
        now = step


@pytest.mark.parametrize("text", ["", "0,2", "1,3", "1,1", "1,2,3", "2,", "one", "-1", "1 ,2", "1\n"])
def test_any_other_text_is_refused(text):
    with pytest.raises(ValueError, match="isn't a state of a key ring"):
        Ring.parse(text)


def test_only_a_ring_that_once_used_another_ca_has_a_former_generation_until_it_is_rotated():
    former = Ring.of("kubelet-serving-ca", "0")
    assert [str(step) for step in former.steps()] == ["0,1", "1,0", "1"]
    assert [each.is_carried_over for each in (former, *former.steps())] == [False, False, False, True]
    assert Ring.of("kubelet-serving-ca", None) == Ring((1,)), "a new cluster"
    for text in ("0", "0,1", "1,0"):
        with pytest.raises(ValueError, match="isn't a state of kubernetes-ca"):
            Ring.of("kubernetes-ca", text)


def test_neighbours_are_one_step_apart_in_either_direction():
    states = [Ring(), *Ring().steps()]
    for i, one in enumerate(states):
        for j, other in enumerate(states):
            assert one.is_neighbour(other) == (abs(i - j) == 1)
