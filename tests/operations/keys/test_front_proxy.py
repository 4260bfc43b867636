"""The front proxy's authority is rotated while an aggregated API is in use, and the former one disappears."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from cryptography import x509
from kubernetes import client

from cluster.key_rings import Ring
from operations.keys import rings
from tests.operations.keys.aggregated import aggregated, published
from tests.operations.keys.region import Region
from tests.operations.keys.test_rotation import named, rotation, until_done

pytestmark = pytest.mark.timeout(900)

ADDED_AGAIN_S = 75
"""API servers check once a minute whether their authorities are published."""


def names(core: client.CoreV1Api) -> list[str]:
    certificates = x509.load_pem_x509_certificates(published(core).encode())
    return sorted(each.subject.rfc4514_string() for each in certificates)


@pytest.mark.soak
def test_clients_of_an_aggregated_api_are_never_refused_and_the_former_authority_does_not_reappear(
    world: Region, tmp_path: Path
) -> None:
    core = client.CoreV1Api(world.access().api())
    before = world.api.units["kube-apiserver.service"].restarts
    subjects: dict[str, list[str]] = {}
    with aggregated(core, tmp_path) as used:
        states, rotated = until_done(world, "front-proxy-ca", lambda state: subjects.update({state: names(core)}))
        time.sleep(ADDED_AGAIN_S)
    assert states == ["front-proxy-ca 1,2", "front-proxy-ca 2,1", "front-proxy-ca 2"]
    assert rotated.ended == Ring((2,))
    both = ["CN=front-proxy", "CN=front-proxy-2"]
    assert subjects == {states[0]: both, states[1]: both, states[2]: both[1:]}
    assert names(core) == ["CN=front-proxy-2"]
    assert used.failures == []
    assert set(used.issuers) == {"front-proxy", "front-proxy-2"}
    assert used.issuers[-1] == "front-proxy-2"
    assert world.api.units["kube-apiserver.service"].restarts == before, "it reads these again by itself"


def test_a_rotation_that_is_rolled_back_removes_what_it_added(world: Region) -> None:
    core = client.CoreV1Api(world.access().api())

    class Cut(Exception):
        pass

    def once_introduced(step: str) -> None:
        raise Cut

    old = rings.built(world.outputs())["front-proxy-ca"].at_work
    before = names(core)
    with pytest.raises(Cut):
        rotation(world, "front-proxy-ca", once_introduced).run()
    assert names(core) == [*before, f"CN=front-proxy-{old + 1}"]
    assert rotation(world, "front-proxy-ca").run(back=True).ended == Ring((old,))
    assert names(core) == before == [f"CN={named(world, 'front-proxy-ca')}"]
