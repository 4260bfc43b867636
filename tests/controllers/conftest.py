"""A real API server with the controllers' objects, and the lab's spec with people, teams and allocations."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.load import load_cluster
from cluster.pools import TRUSTED_POOL
from controllers.apply import Controllers
from controllers.gather import files_of
from controllers.kinds import KINDS
from controllers.manifests import NAMESPACE, Desired
from operations.record import store
from tests.controllers.account import DIRECTORY, TENANCY
from tests.sharing import shared
from tests.tenancy import hosts
from tests.tenancy.real import Server, serving
from tests.waiting import until

LAB = Path(__file__).parents[2] / "inventories" / "lab"


@pytest.fixture(autouse=True)
def _records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "STATE", tmp_path / "kept")


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """The lab's cluster.yaml, with people, teams and allocations."""
    folder = tmp_path / "lab"
    shutil.copytree(LAB, folder)
    text: dict[str, Any] = yaml.safe_load((folder / "cluster.yaml").read_text())
    (folder / "cluster.yaml").write_text(yaml.safe_dump({**text, "tenancy": TENANCY}))
    (folder / "people.yaml").write_text(DIRECTORY)
    return folder / "cluster.yaml"


@pytest.fixture
def desired(spec: Path) -> Desired:
    cluster = load_cluster(spec)
    assert cluster.spec.tenancy
    files = files_of(cluster.spec, spec)
    bucket = {"bucket": "{}", "key": "of nobody", "ca": ""}
    kinds = tuple(KINDS.values())
    return Desired("registry.test/menagerie:1", files, cluster.spec.tenancy, kinds, bucket=bucket, pages=bucket)


@pytest.fixture
def _server(tmp_path_factory: pytest.TempPathFactory) -> Server:
    return shared("controllers", lambda: serving(tmp_path_factory.mktemp("controllers")))


@pytest.fixture
def bare(_server: Server) -> Iterator[Server]:
    """The API server with the lab's three workers and nothing else."""
    hosts.join(_server, "worker-1", "worker-2", "worker-3")
    for name in ("worker-1", "worker-2", "worker-3"):
        # Label nodes as node-labels does.
        label = {"metadata": {"labels": {TRUSTED_POOL: "workers"}}}
        _server.real.call("PATCH", f"/api/v1/nodes/{name}", label, hosts.STRATEGIC)
    yield _server
    controllers = Controllers(_server.api())
    controllers.remove(controllers.to_remove(tuple(KINDS.values())))
    # Namespaces first: while a Deployment exists, it creates its pods again.
    _server.clear()
    hosts.clear(_server)
    until(lambda: _server.real.call("GET", f"/api/v1/namespaces/{NAMESPACE}")[0] == 404)


@pytest.fixture
def server(bare: Server, desired: Desired) -> Server:
    """The API server with the controllers' objects, as `controllers apply` creates them."""
    controllers = Controllers(bare.api())
    controllers.apply(desired, controllers.look(desired))
    return bare
