"""The result file: files of another kind are not overwritten, and a broken line loses no pair."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from cluster.reading import UnreadableError
from cluster.spec import Cluster
from cluster.writing import ForeignFileError
from network.roce import plan as planning
from network.roce.plan import MeasurementPlan
from network.roce.results import Pair, Results
from tests.roce.support import fabric

ODD = {
    "text": b"the only copy of a thesis\n",
    "key": b"-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n-----END OPENSSH PRIVATE KEY-----\n",
    "CSV": b"rail,sender\n1,2\n",
    "list": b"[1, 2]\n",
    "number": b"1\n",
    "null": b"null\n",
    "words": b'"words"\n',
    "object": b'{"plan": "x"}\n',
    "plan that is a list": b'{"cluster": "a", "plan": [], "options": {}}\n',
    "deep": b"[" * 100_000 + b"\n",
    "binary": bytes(range(256)),
    "UTF-16": "{}\n".encode("utf-16"),
    "NUL": b"\0" * 1000,
    "digits": b"9" * 10_000,
}
PAIRS = [Pair("sjc1/rail-0", f"gpu-{at}", f"gpu-{at + 1}", 390.0, 400.0, 4096) for at in range(6)]
BROKEN = [b"", b"{", b'{"rail": 1}', b"null", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"rail": "a", "sender": "b", "receiver": "c", "gbit_s": NaN}']  # fmt: skip


@pytest.fixture
def plan(build: Callable[..., Cluster]) -> MeasurementPlan:
    return planning.plan(fabric(build), planning.MeasurementOptions())


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("data", ODD.values(), ids=list(ODD))
def test_a_file_of_another_kind_is_refused_and_kept(
    plan: MeasurementPlan, tmp_path: Path, data: bytes, *, fresh: bool
) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(ForeignFileError, match="wasn't changed"):
        Results(path, plan, fresh=fresh)
    assert path.read_bytes() == data
    assert os.listdir(tmp_path) == ["file"]


def test_a_pipe_is_refused(plan: MeasurementPlan, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableError, match="it is a pipe"):
        Results(tmp_path / "pipe", plan)


@pytest.mark.parametrize("line", BROKEN, ids=lambda line: line[:20].decode(errors="replace"))
def test_a_broken_line_in_the_middle_loses_no_pair(plan: MeasurementPlan, tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "r.jsonl"
    begun = Results(path, plan)
    for pair in PAIRS[:3]:
        begun.add(pair)
    before = path.read_bytes() + line + b"\n"
    path.write_bytes(before + "".join(json.dumps(asdict(pair)) + "\n" for pair in PAIRS[3:]).encode())
    held = path.read_bytes()
    again = Results(path, plan)
    assert list(again.pairs.values()) == PAIRS
    assert again.unread == bool(line)
    assert path.read_bytes() == held


def test_a_line_that_a_kill_cut_off_does_not_run_into_the_next(plan: MeasurementPlan, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    Results(path, plan).add(PAIRS[0])
    path.write_bytes(path.read_bytes() + b'{"rail": "sjc1/ra')
    Results(path, plan).add(PAIRS[1])
    again = Results(path, plan)
    assert (list(again.pairs.values()), again.unread) == (PAIRS[:2], 1)


def test_fresh_starts_a_result_file_over(plan: MeasurementPlan, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    Results(path, plan).add(PAIRS[0])
    assert Results(path, plan, fresh=True).pairs == {}
    head: list[Any] = [json.loads(line) for line in path.read_text().splitlines()]
    assert [set(each) for each in head] == [{"cluster", "plan", "options"}]
