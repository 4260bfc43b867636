"""A real API server with the controllers that tenancy needs, and people with their own tokens."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client

from cluster.tenancy import Tenancy
from controllers.tenancy.directory import Roster
from controllers.tenancy.sync.objects import NAME, OWNER_ROLE
from controllers.tenancy.sync.run import NOTEBOOK, Applied, Sync, SyncReview
from tests.control_plane.real_api import TOKEN, RealApi, running, started
from tests.operations.conftest import outputs
from tests.programs import program
from tests.waiting import patience, until

PEOPLE = ("ana", "bo", "cleo")
_CONTROLLERS = (
    "clusterrole-aggregation-controller,resourcequota-controller,namespace-controller,"
    "deployment-controller,replicaset-controller,cronjob-controller,job-controller"
)
"""Controllers that aggregate `edit`, count quotas, end namespaces and create pods."""
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@dataclass
class Given:
    """A directory that returns a given roster, or raises a given error."""

    says: Roster | Exception
    name: str = "a directory of this test"

    def read(self) -> Roster:
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


@dataclass
class Server:
    """An operator's access to the API."""

    real: RealApi
    folder: Path

    def __post_init__(self) -> None:
        self.outputs = outputs()

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.real.port}"

    def api(self, *, once: bool = False, connections: int | None = None) -> client.ApiClient:
        configuration = client.Configuration(host=self.server)
        configuration.ssl_ca_cert = str(self.folder / "certificates" / "apiserver.crt")
        configuration.assert_hostname = False
        configuration.api_key = {"authorization": f"Bearer {TOKEN}"}
        return client.ApiClient(configuration)

    def as_(self, person: str, method: str, path: str, body: Any = None, **headers: str) -> int:
        """Send a request as a person. Return the HTTP status; `said` is the API's answer."""
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", self.real.port, timeout=patience(30), context=tls)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        sent = {"Authorization": f"Bearer token-of-{person}", "Content-Type": kind}
        sent |= {key.replace("_", "-"): value for key, value in headers.items()}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), sent)
            answer = connection.getresponse()
            self.said = answer.read().decode()
            return answer.status
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        return self.real.call("GET", path)[1]

    def sync(self, roster: Roster, settings: Tenancy, *, accept_loss: bool = True) -> tuple[SyncReview, Applied]:
        sync_ = Sync(self, Given(roster), settings)
        review = sync_.look(accept_loss=accept_loss)
        return review, sync_.apply(review)

    def versions(self) -> Mapping[str, str]:
        """Return path -> version of everything that a sync may write."""
        paths = ["/api/v1/namespaces", "/api/v1/resourcequotas", "/api/v1/limitranges", f"{RBAC}/rolebindings"]
        paths += [f"{RBAC}/clusterroles", "/apis/apps/v1/deployments", "/apis/batch/v1/cronjobs"]
        versions_ = {}
        for path in paths:
            for each in self.get(path)["items"]:
                # Controllers write counts into the status; the generation covers only the spec.
                version = json.dumps(
                    {key: value for key, value in each.items() if key not in ("status", "metadata")}
                    | {key: each["metadata"].get(key) for key in ("labels", "annotations", "uid", "generation")}
                )
                versions_[f"{path}/{each['metadata'].get('namespace', '')}/{each['metadata']['name']}"] = version
        book = self.real.call("GET", f"/api/v1/namespaces/kube-system/configmaps/{NOTEBOOK}")[1]
        versions_[NOTEBOOK] = book["metadata"].get("resourceVersion", "")
        return versions_

    def clear(self) -> None:
        """Delete our namespaces, and wait until they are gone."""
        self.real.call("DELETE", f"/api/v1/namespaces/kube-system/configmaps/{NOTEBOOK}")
        self.real.call("DELETE", f"{RBAC}/clusterroles/{OWNER_ROLE}")
        names = [
            each["metadata"]["name"]
            for each in self.get("/api/v1/namespaces")["items"]
            if NAME in (each["metadata"].get("annotations") or {}) or each["metadata"]["name"].startswith("team-")
        ]
        for name in names:
            self.real.call("DELETE", f"/api/v1/namespaces/{name}")
            self.real.call("DELETE", f"/api/v1/namespaces/{name}/pods", {"gracePeriodSeconds": 0})
        until(lambda: not [name for name in names if self.real.call("GET", f"/api/v1/namespaces/{name}")[0] != 404])


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    tokens = folder / "people.csv"
    lines = [f"{TOKEN},tester,1,system:masters", *(f"token-of-{id},{id},{id}" for id in (*PEOPLE, "dan"))]
    tokens.write_text("".join(f"{line}\n" for line in lines))
    with running(program, folder, "--token-auth-file", str(tokens)) as real:
        kubeconfig = folder / "kubeconfig"
        cluster = {"server": f"https://127.0.0.1:{real.port}", "insecure-skip-tls-verify": True}
        kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": {"token": TOKEN}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        }))  # fmt: skip
        command = [program("kube-controller-manager"), "--kubeconfig", kubeconfig, "--leader-elect=false"]
        command += ["--secure-port=0", f"--controllers={_CONTROLLERS}", "--concurrent-deployment-syncs=1"]
        # Controllers create pods as their ServiceAccounts, as in a cluster, not as the tester, who may do everything.
        command += ["--use-service-account-credentials"]
        with started("kube-controller-manager", command, folder):
            server = Server(real, folder)
            until(lambda: bool(server.get(f"{RBAC}/clusterroles/edit").get("rules")))
            yield server


class Cut(BaseException):
    """Stands for the death of the process."""


def cut_after(number: int, sync: Sync) -> bool:
    """Run a sync that dies after so many changes. Return whether it finished."""
    remaining = [number]

    def tell(_: object) -> None:
        if not remaining[0]:
            raise Cut
        remaining[0] -= 1

    with suppress(Cut):
        sync.apply(sync.look(accept_loss=True), tell)
        return True
    return False
