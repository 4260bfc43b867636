"""metrics-keys: what it writes into a real API with its rights, what it leaves alone, and what it may not do."""

from __future__ import annotations

import base64
import http
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from cluster.metrics import relay
from cluster.spec import Cluster
from components.control_plane import metrics, metrics_keys, scraper
from components.control_plane.host import bootstrap, scraping
from components.control_plane.host import metrics_keys as program
from components.control_plane.host.api import Api, ApiError
from components.control_plane.objects import applied
from stacks import certificates
from stacks.certificates import Request, Signed, issue, new_authority
from tests.control_plane.real_api import RealApi, plain
from tests.sharing import shared
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("plain_api")
CA = new_authority("kubernetes")
KUBELETS = new_authority("kubelet-serving").certificate
SECRET = program.path("secrets", program.SECRET)
POD = {"containers": [{"name": "metrics-server", "image": "x"}]}
AUTHORITIES = program.path("configmaps", program.AUTHORITIES)
CLIENT = program.path("secrets", scraping.SECRET, scraping.NAMESPACE)
TRUSTED = program.path("configmaps", scraping.AUTHORITIES, scraping.NAMESPACE)
API_SERVICE = f"/apis/apiregistration.k8s.io/v1/apiservices/{program.API_SERVICE}"


class AsProgram:
    """`components.control_plane.host.api.Api` on the real API of the test, with the rights of metrics-keys."""

    apply = Api.apply

    def __init__(self, api: RealApi) -> None:
        self._api = api

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        status, answer = self._api.call(method, path, body, kind, as_user=metrics_keys.USER)
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise ApiError(status, answer["message"])
        return answer


@pytest.fixture
def api(tmp_path_factory: pytest.TempPathFactory, lab: Cluster) -> Iterator[RealApi]:
    ready = shared("api", lambda: plain(tmp_path_factory.mktemp("api")))
    (service,) = [each for each in metrics.objects(lab) if each["kind"] == "APIService"]
    written = (SECRET, AUTHORITIES, CLIENT, TRUSTED, API_SERVICE)
    for path in written:
        ready.call("DELETE", path)
    for thing in (*scraper.objects(), *metrics_keys.objects(), service):
        status, message = ready.apply(applied(thing))
        assert status in (200, 201), message
    # The authorizer reads roles from a watch, which may be later than the answer to a write.
    known = (http.HTTPStatus.OK, http.HTTPStatus.NOT_FOUND)
    for path in written:
        until(lambda path=path: ready.call("GET", path, as_user=metrics_keys.USER)[0] in known)
    yield ready
    # An API that nobody serves would keep namespaces of other tests from ending.
    ready.call("DELETE", API_SERVICE)


SERVING = Request("metrics-server", dns_names=(metrics.HOST,), usages=("server",))
ASKING = Request(scraper.USER, dns_names=(relay.SCRAPER,), usages=("client",))


def signed(authority: Signed = CA, age: timedelta = timedelta(), request: Request = SERVING) -> Signed:
    """Return a certificate of metrics-server that was issued so long ago."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "BACKDATE", certificates.BACKDATE + age)
        return issue(authority, request)


SCRAPER = signed(request=ASKING)


def keeper(
    api: RealApi,
    own: Signed,
    authorities: str = CA.certificate,
    kubelets: str = KUBELETS,
    asking: Signed = SCRAPER,
) -> program.Keeper:
    pems = {
        program.CERTIFICATE: own.certificate,
        program.KEY: own.private_key,
        program.CA: authorities,
        program.KUBELETS: kubelets,
        scraping.CERTIFICATE: asking.certificate,
        scraping.KEY: asking.private_key,
    }
    return program.Keeper(AsProgram(api), program.desired(pems))  # type: ignore[arg-type]


def read(api: RealApi, path: str) -> Any:
    status, thing = api.call("GET", path)
    assert status == http.HTTPStatus.OK
    return thing


def text(data: str) -> str:
    return base64.b64decode(data).decode()


def test_it_creates_what_is_missing_and_leaves_the_rest_of_the_api_service_to_cluster_bootstrap(api: RealApi) -> None:
    own = signed()
    keeper(api, own).look()
    held = read(api, SECRET)["data"]
    assert (text(held["tls.crt"]), text(held["tls.key"])) == (own.certificate, own.private_key)
    assert read(api, AUTHORITIES)["data"] == {"ca.crt": KUBELETS}
    held = read(api, CLIENT)["data"]
    assert (text(held["tls.crt"]), text(held["tls.key"])) == (SCRAPER.certificate, SCRAPER.private_key)
    assert read(api, TRUSTED)["data"] == {"ca.crt": CA.certificate, "kubelet-serving-ca.crt": KUBELETS}
    service = read(api, API_SERVICE)["spec"]
    assert text(service["caBundle"]) == CA.certificate
    assert (service["service"]["name"], service.get("insecureSkipTLSVerify", False)) == (metrics.NAME, False)


def test_a_second_look_writes_nothing_and_brings_back_what_somebody_deleted(
    api: RealApi, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = keeper(api, signed())
    mine.look()
    assert capsys.readouterr().out.count(": written") == 5
    mine.look()
    assert capsys.readouterr().out == ""
    api.call("DELETE", SECRET)
    mine.look()
    assert capsys.readouterr().out == f"{SECRET}: written\n"


def test_a_boot_keeps_the_keys(api: RealApi, lab: Cluster) -> None:
    keeper(api, signed()).look()
    (service,) = [each for each in metrics.objects(lab) if each["kind"] == "APIService"]
    assert api.apply(applied(service))[0] == http.HTTPStatus.OK
    assert text(read(api, API_SERVICE)["spec"]["caBundle"]) == CA.certificate


def test_an_operators_own_flag_for_no_verification_is_replaced(api: RealApi, lab: Cluster) -> None:
    patch = {"spec": {"insecureSkipTLSVerify": True}}
    assert api.call("PATCH", API_SERVICE, patch, "application/merge-patch+json")[0] == http.HTTPStatus.OK
    (service,) = [each for each in metrics.objects(lab) if each["kind"] == "APIService"]
    assert api.apply(applied(service))[0] == http.HTTPStatus.OK
    keeper(api, signed()).look()
    assert not read(api, API_SERVICE)["spec"].get("insecureSkipTLSVerify")


class AsBootstrap:
    """The same with all rights, which cluster-bootstrap has."""

    apply = Api.apply

    def __init__(self, api: RealApi) -> None:
        self._api = api

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        status, answer = self._api.call(method, path, body, kind)
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise ApiError(status, answer["message"])
        return answer


def test_a_metrics_server_that_an_operator_installed_by_a_chart_is_replaced(
    api: RealApi, lab: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its selector is another, and selectors are immutable. A refusal would keep the API server from booting."""
    (ours,) = [each for each in metrics.objects(lab) if each["kind"] == "Deployment"]
    labels, where = {"app.kubernetes.io/name": "metrics-server"}, applied(ours)["path"]
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": POD}}
    theirs = {"metadata": {"name": metrics.NAME}, "spec": spec}
    assert api.call("POST", where.rpartition("/")[0], theirs)[0] == http.HTTPStatus.CREATED
    try:
        bootstrap.apply(AsBootstrap(api), applied(ours))  # type: ignore[arg-type]
        assert f"{where}: replaced" in capsys.readouterr().out
        assert read(api, where)["spec"]["selector"] == ours["spec"]["selector"]
        bootstrap.apply(AsBootstrap(api), applied(ours))  # type: ignore[arg-type]
        assert capsys.readouterr().out == ""
    finally:
        api.call("DELETE", where)


def test_a_deployment_that_the_api_finds_wrong_is_not_deleted(api: RealApi, lab: Cluster) -> None:
    (ours,) = [each for each in metrics.objects(lab) if each["kind"] == "Deployment"]
    item = applied(ours)
    bootstrap.apply(AsBootstrap(api), item)  # type: ignore[arg-type]
    try:
        wrong = {**item, "object": {**ours, "spec": {**ours["spec"], "replicas": -1}}}
        with pytest.raises(ApiError) as refused:
            bootstrap.apply(AsBootstrap(api), wrong)  # type: ignore[arg-type]
        assert refused.value.status == http.HTTPStatus.UNPROCESSABLE_ENTITY
        assert read(api, item["path"])["spec"]["replicas"] == 2
    finally:
        api.call("DELETE", item["path"])


def test_a_host_with_an_older_certificate_leaves_the_younger_one(api: RealApi) -> None:
    """While a stack's certificate is renewed, hosts have different ones for some minutes."""
    young, old = signed(), signed(age=timedelta(days=240))
    keeper(api, old).look()
    keeper(api, young).look()
    assert text(read(api, SECRET)["data"]["tls.crt"]) == young.certificate
    keeper(api, old, asking=signed(age=timedelta(days=240), request=ASKING)).look()
    assert text(read(api, SECRET)["data"]["tls.crt"]) == young.certificate
    assert text(read(api, CLIENT)["data"]["tls.crt"]) == SCRAPER.certificate


def test_a_certificate_that_nobody_can_read_is_replaced(api: RealApi) -> None:
    own = signed()
    keeper(api, own).look()
    broken = {"data": {"tls.crt": base64.b64encode(b"no certificate").decode()}}
    assert api.call("PATCH", SECRET, broken, "application/merge-patch+json")[0] == http.HTTPStatus.OK
    keeper(api, own).look()
    assert text(read(api, SECRET)["data"]["tls.crt"]) == own.certificate


def test_authorities_are_replaced_as_a_rotation_goes_on(api: RealApi) -> None:
    own, next_ = signed(), new_authority("kubernetes-2").certificate
    keeper(api, own).look()
    keeper(api, own, CA.certificate + next_, KUBELETS + next_).look()
    assert text(read(api, API_SERVICE)["spec"]["caBundle"]) == CA.certificate + next_
    assert read(api, AUTHORITIES)["data"] == {"ca.crt": KUBELETS + next_}
    assert read(api, TRUSTED)["data"] == {"ca.crt": CA.certificate + next_, "kubelet-serving-ca.crt": KUBELETS + next_}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/namespaces/kube-system/secrets"),
        ("GET", "/api/v1/namespaces/kube-system/secrets/another"),
        ("POST", "/api/v1/namespaces/kube-system/secrets"),
        ("DELETE", SECRET),
        ("POST", "/api/v1/namespaces/kube-system/configmaps"),
        ("GET", "/api/v1/namespaces/default/secrets/metrics-server-serving"),
        ("PATCH", "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps"),
        ("DELETE", API_SERVICE),
        ("GET", "/api/v1/namespaces/menagerie-monitoring/secrets"),
        ("GET", "/api/v1/namespaces/menagerie-monitoring/secrets/another"),
        ("DELETE", CLIENT),
        ("DELETE", "/api/v1/namespaces/menagerie-monitoring"),
        ("GET", "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices"),
        ("GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"),
        ("PATCH", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x"),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"),
    ],
)
def test_it_may_do_nothing_else(api: RealApi, method: str, path: str) -> None:
    body = {"metadata": {"name": "x"}} if method in ("POST", "PATCH") else None
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    with pytest.raises(ApiError) as refused:
        AsProgram(api).call(method, path, body, kind)
    assert refused.value.status == http.HTTPStatus.FORBIDDEN


def test_it_may_create_no_other_secret_by_server_side_apply(api: RealApi) -> None:
    other = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "another", "namespace": program.NAMESPACE}}
    with pytest.raises(ApiError) as refused:
        AsProgram(api).apply(program.path("secrets", "another"), other, program.MANAGER, force=True)
    assert refused.value.status == http.HTTPStatus.FORBIDDEN
