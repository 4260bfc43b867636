"""A valid spec as plain data, to be changed and written out again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.load import Loaded, check_paths
from cluster.problems import Problem

SPECS = Path(__file__).parents[1] / "specs"
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
Check = Callable[[Any], tuple[list[Loaded], list[Problem]]]


@pytest.fixture
def data() -> dict[str, Any]:
    found = yaml.safe_load((SPECS / "valid-onprem.yaml").read_text())
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Check:
    """Write data as a spec, beside the hosts file of valid-onprem.yaml, and check it."""
    folder = tmp_path_factory.mktemp("spec")
    (folder / "hosts-jaguar.yaml").write_text((SPECS / "hosts-jaguar.yaml").read_text())

    def run(data: Any) -> tuple[list[Loaded], list[Problem]]:
        path = folder / "cluster.yaml"
        path.write_text(yaml.dump(data, Dumper=DUMPER, sort_keys=False, allow_unicode=True))
        return check_paths([path])

    return run
