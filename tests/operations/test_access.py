from __future__ import annotations

from pathlib import Path

import pytest

from clients.access import Access, forget_runtime, runtime_dir
from tests.operations.conftest import outputs


def reached(endpoint: str, *balancers: str, public: str | None = None) -> str:
    outputs_ = outputs().model_copy(update={"endpoint": endpoint, "balancers": balancers, "public_name": public})
    access = Access(outputs_, "certificate", "key", "certificate", "key", "")
    assert access.kubeconfig()["clusters"][0]["cluster"]["server"] == access.server
    return access.server


def test_the_api_is_called_by_name_if_the_name_resolves() -> None:
    assert reached("localhost:6443", "10.40.0.4") == "https://localhost:6443"


def test_if_the_private_zone_does_not_resolve_the_api_is_called_by_address() -> None:
    """RFC 6761: names under .invalid never resolve."""
    assert reached("api.horus.invalid:6443", "10.40.0.4", "10.40.0.68") == "https://10.40.0.4:6443"


def test_from_outside_the_api_is_called_by_its_public_name_if_that_resolves() -> None:
    assert reached("api.horus.invalid:6443", "10.40.0.4", public="localhost") == "https://localhost:6443"
    assert reached("api.horus.invalid:6443", "10.40.0.4", public="api.invalid") == "https://10.40.0.4:6443"
    assert reached("localhost:6443", "10.40.0.4", public="localhost.localdomain") == "https://localhost:6443"


def test_without_addresses_the_name_is_used_so_that_the_error_shows_it() -> None:
    assert reached("api.horus.invalid:6443") == "https://api.horus.invalid:6443"


def test_folders_of_an_interrupted_run_are_removed_with_the_cluster_and_those_of_other_clusters_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    own, other = runtime_dir("own"), runtime_dir("other")
    forget_runtime("own")
    assert (own.exists(), other.exists()) == (False, True)
    forget_runtime("other")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "menagerie").mkdir()
    forget_runtime("other")
    assert list(tmp_path.iterdir()) == []
