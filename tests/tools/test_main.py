from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tools import __main__ as command
from tools import build, files


@pytest.mark.parametrize(("asked", "built"), [(None, False), (["terraform"], True)])
def test_what_only_the_bench_needs_is_built_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, asked: list[str] | None, built: bool
) -> None:
    wanted: list[str] = []

    def ensure(programs: Iterable[str], progress: build.Progress) -> dict[str, Path]:
        wanted.extend(programs)
        return {}

    monkeypatch.setattr(build, "ensure", ensure)
    monkeypatch.setattr(files, "ensure", wanted.append)
    command.main(asked, listing=False, as_json=False)
    assert ("terraform" in wanted) is built
    assert ("kubelet" in wanted) is not built
    assert ("rook-crds.yaml" in wanted) is not built
