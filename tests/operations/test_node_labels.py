"""The published table of a site's hosts, with a real API server."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kubernetes import client

from cluster import node_labels as names
from cluster.pools import TRUSTED_POOL
from cluster.spec import Cluster
from components.control_plane import nodes
from components.control_plane.objects import applied
from operations import node_labels
from tests.control_plane.real_api import TOKEN, RealApi, plain
from tests.sharing import shared

pytestmark = pytest.mark.xdist_group("plain_api")
PATH = f"/api/v1/namespaces/{names.NAMESPACE}/configmaps/{names.TABLE}"


@pytest.fixture
def real(tmp_path_factory: pytest.TempPathFactory) -> RealApi:
    return shared("api", lambda: plain(tmp_path_factory.mktemp("api")))


@pytest.fixture
def api(real: RealApi) -> client.ApiClient:
    configuration = client.Configuration(host=f"https://127.0.0.1:{real.port}")
    configuration.verify_ssl = False
    configuration.api_key = {"authorization": f"Bearer {TOKEN}"}
    return client.ApiClient(configuration)


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_the_table_is_the_specs_before_and_after_api_servers_know_of_it(
    real: RealApi, api: client.ApiClient, lab: Cluster
) -> None:
    assert (node_labels.publish(lab, api), node_labels.publish(lab, api)) == (True, False)
    # What API servers apply at boot does not remove the lines.
    made = next(thing for thing in nodes.objects() if thing["metadata"]["name"] == names.TABLE)
    assert real.apply(applied(made, yields=True)) == (200, "")
    table = real.call("GET", PATH)[1]["data"]
    kinds = {name: table[name] for name in ("worker-1", "worker-2", "worker-3")}
    assert f"{TRUSTED_POOL}=workers" in table[kinds["worker-1"]].split("\n")
    assert table[f"{kinds['worker-1']}.taints"] == "menagerie.dev/preflight=:NoSchedule"

    fewer = lab.model_copy(update={"hosts": {"workers": lab.hosts["workers"][:1]}})
    assert node_labels.publish(fewer, api)
    assert "worker-3" not in real.call("GET", PATH)[1]["data"]


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_a_pool_without_a_trusted_node_is_reported(real: RealApi, api: client.ApiClient) -> None:
    text = node_labels.missing(api, "workers")
    assert text == f"no node has the label {TRUSTED_POOL}=workers yet; API servers give it to the nodes of pool workers"
    node = {"metadata": {"name": "worker-1", "labels": {TRUSTED_POOL: "workers"}}}
    assert real.call("POST", "/api/v1/nodes", node)[0] == 201
    assert node_labels.missing(api, "workers") == ""


def test_ten_thousand_hosts_fit_into_a_config_map(lab: Cluster, many: Callable[[int], Cluster]) -> None:
    data = names.table(many(10_000))
    assert len(data) >= 10_000
    # core/v1, MaxSecretSize, which also applies to ConfigMaps.
    assert sum(len(key) + len(value) for key, value in data.items()) < 2**20


@pytest.fixture
def many(lab: Cluster) -> Callable[[int], Cluster]:
    host = lab.hosts["workers"][0]
    racks = [f"rack-{number}" for number in range(256)]

    def made(count: int) -> Cluster:
        hosts = tuple(
            host.model_copy(update={"name": f"a-host-with-a-long-name-{number:05}", "rack": racks[number % 256]})
            for number in range(count)
        )
        return lab.model_copy(update={"hosts": {"workers": hosts}})

    return made
