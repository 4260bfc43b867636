from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tools import __main__ as command
from tools import build, files


@pytest.mark.parametrize(("requested", "is_built"), [(None, False), (["terraform"], True)])
def test_programs_for_the_bench_are_built_only_on_request(
    monkeypatch: pytest.MonkeyPatch, requested: list[str] | None, is_built: bool
) -> None:
    names: list[str] = []

    def ensure(programs: Iterable[str], progress: build.Progress) -> dict[str, Path]:
        names.extend(programs)
        return {}

    monkeypatch.setattr(build, "ensure", ensure)
    monkeypatch.setattr(files, "ensure", names.append)
    command.main(requested, listing=False, as_json=False)
    assert ("terraform" in names) is is_built
    assert ("kubelet" in names) is not is_built
    assert ("rook-crds.yaml" in names) is not is_built
