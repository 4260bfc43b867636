"""Helpers for tests of `doctor`."""

from __future__ import annotations

from pathlib import Path

from cluster.load import load_cluster
from cluster.spec import Cluster
from operations.doctor.choose import cloud_questions
from operations.doctor.model import Answer, State
from operations.doctor.run import ask

ROOT = Path(__file__).resolve().parents[2]


def example(name: str, **changes: object) -> Cluster:
    """Return an example. changes: of its control plane."""
    cluster = load_cluster(ROOT / f"examples/{name}/cluster.yaml")
    plane = cluster.spec.control_plane.model_copy(update=changes)
    return cluster.model_copy(update={"spec": cluster.spec.model_copy(update={"control_plane": plane})})


def answers(cluster: Cluster, *names: str) -> dict[str, Answer]:
    """Ask the cloud's questions of these names, all if there are none. Return group and name of the row -> answer."""
    questions = [each for each in cloud_questions(cluster, "") if not names or each.name in names]
    rows = ask(questions, lambda _: None)
    return {f"{row.group}: {row.name}": row.answer for row in rows}


def rights_of(cluster: Cluster) -> set[str]:
    return {right for question in cloud_questions(cluster, "") for right in question.rights}


def not_ok(outcomes: dict[str, Answer]) -> dict[str, str]:
    return {
        name: f"{answer.state}: {answer.finding}" for name, answer in outcomes.items() if answer.state is not State.OK
    }
