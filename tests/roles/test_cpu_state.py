"""When the CPU manager's state file blocks the kubelet, and which pods would lose their CPUs."""

from __future__ import annotations

import http.server
import json
import ssl
import threading

import pytest

from stacks import certificates
from stacks.certificates import Request

STATIC = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,4"}
ONLINE = list(range(8))


@pytest.fixture
def state(host, tmp_path, monkeypatch):
    """Return a function that writes the state file and returns the module: state({...})."""
    module = host("cpu_state")
    monkeypatch.setattr(module, "PATH", str(tmp_path / "cpu_manager_state"))

    def left(content):
        (tmp_path / "cpu_manager_state").write_text(content if isinstance(content, str) else json.dumps(content))
        return module

    return left


@pytest.mark.parametrize(
    ("content", "configuration", "reason"),
    [
        ({"policyName": "none", "defaultCpuSet": ""}, STATIC, "changes from none to static"),
        ({"policyName": "static", "defaultCpuSet": "0-7"}, {}, "changes from static to none"),
        ({"policyName": "static", "defaultCpuSet": "0-7"}, STATIC, ""),
        ({"policyName": "static", "defaultCpuSet": "0,4", "entries": {"u": {"c": "1-3,5-7"}}}, STATIC, ""),
        ({"policyName": "static", "defaultCpuSet": "0-3", "entries": {"u": {"c": "4-7"}}}, STATIC, "pods have some"),
        ({"policyName": "static", "defaultCpuSet": "0-15"}, STATIC, "CPUs have changed"),
        ({"policyName": "static", "defaultCpuSet": ""}, STATIC, ""),
        ("not JSON", STATIC, ""),
    ],
)
def test_the_file_is_a_conflict_if_the_kubelet_would_not_start(state, content, configuration, reason):
    conflict = state(content).conflict(configuration, ONLINE)
    assert reason in conflict if reason else conflict == ""


def test_a_host_without_the_file_has_no_conflict(host, tmp_path, monkeypatch):
    module = host("cpu_state")
    monkeypatch.setattr(module, "PATH", str(tmp_path / "none"))
    assert module.conflict(STATIC, ONLINE) == ""


def pod(name, owner="", phase="Running", **annotations):
    owners = [{"kind": owner, "name": "x"}] if owner else []
    metadata = {"namespace": "ns", "name": name, "ownerReferences": owners, "annotations": annotations}
    return {"metadata": metadata, "status": {"phase": phase}}


PODS = [
    pod("daemon", "DaemonSet"),
    pod("mirror", **{"kubernetes.io/config.mirror": "1"}),
    pod("done", "Job", "Succeeded"),
    pod("training", "Job"),
    pod("bare"),
]


@pytest.fixture
def api(tmp_path):
    """Provide (endpoint, CA, client certificate, handler) of an API that identifies its client. `status` can be changed."""
    authority = certificates.new_authority("kubernetes")
    leaf = certificates.issue(authority, Request("api", addresses=("127.0.0.1",)))
    client = certificates.issue(authority, Request("system:node:w1"))
    (tmp_path / "leaf").write_text(leaf.certificate + leaf.private_key)
    (tmp_path / "client").write_text(client.certificate + client.private_key)

    class Api(http.server.BaseHTTPRequestHandler):
        status = 200

        def do_GET(self):
            subject = dict(part[0] for part in self.connection.getpeercert()["subject"])
            is_allowed = subject["commonName"] == "system:node:w1" and self.path.endswith("=spec.nodeName%3Dw1")
            self.send_response(self.status if is_allowed else 403)
            self.end_headers()
            self.wfile.write(json.dumps({"items": PODS}).encode())

        def log_message(self, *_):
            pass

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "leaf")
    tls.load_verify_locations(cadata=authority.certificate)
    tls.verify_mode = ssl.CERT_REQUIRED
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"127.0.0.1:{server.server_port}", authority.certificate, str(tmp_path / "client"), Api
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_nodes_own_identity_can_list_the_pods_that_a_drain_would_move(host, api):
    endpoint, ca, client, _ = api
    assert host("cpu_state").pods(endpoint, ca, client, "w1") == ["ns/bare", "ns/training"]


def test_an_api_that_does_not_answer_is_a_refusal(host, api):
    module = host("cpu_state")
    endpoint, ca, client, served = api
    served.status = 503
    with pytest.raises(module.Refused, match="doesn't say which pods w1 has: HTTP 503"):
        module.pods(endpoint, ca, client, "w1")
    with pytest.raises(module.Refused, match="doesn't say which pods w1 has: .*refused"):
        module.pods("127.0.0.1:1", ca, client, "w1")
