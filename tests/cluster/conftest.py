"""A valid spec as plain data, for tests to change and write."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.load import Loaded, check_paths
from cluster.problems import Problem

SPECS = Path(__file__).parents[1] / "specs"
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
Check = Callable[..., tuple[list[Loaded], list[Problem]]]


@pytest.fixture
def data() -> dict[str, Any]:
    spec = yaml.safe_load((SPECS / "valid-onprem.yaml").read_text())
    assert isinstance(spec, dict)
    return spec


def dumped(data: Any) -> str:
    return str(yaml.dump(data, Dumper=DUMPER, sort_keys=False, allow_unicode=True))


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Check:
    """check(data): write data as a spec, next to the hosts file of valid-onprem.yaml, and check it.

    check(data, base): the same, but faster if most sections of the data are identical objects in a constant `base`.
    """
    folder = tmp_path_factory.mktemp("spec")
    (folder / "hosts-jaguar.yaml").write_text((SPECS / "hosts-jaguar.yaml").read_text())

    written: dict[tuple[int, str], str] = {}

    def section(key: str, value: Any, base: Mapping[str, Any]) -> str:
        if base.get(key) is not value:
            return dumped({key: value})
        return written.get((id(base), key)) or written.setdefault((id(base), key), dumped({key: value}))

    def run(data: Any, base: Mapping[str, Any] | None = None) -> tuple[list[Loaded], list[Problem]]:
        path = folder / "cluster.yaml"
        path.write_text("".join(section(*each, base) for each in data.items()) if base and data else dumped(data))
        return check_paths([path])

    return run
