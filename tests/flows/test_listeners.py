"""The table against the configuration of hosts: ports that listen, and ports that are dialled."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from hypothesis import given

from cluster.network import NODE_PORTS
from components.control_plane import konnectivity, kubeadm, units
from components.control_plane.ports import NODE_METRICS_PORT
from components.flows.flow import Protocol, Role, roles
from components.flows.table import flows
from etcd.flags import flags
from etcd.members import agent_port, members
from network.addresses import ROLES, plan
from network.flannel import net_conf
from tests.flows.support import ETCDS, SHAPES, WORKERS, between, ports_into

ROOT = Path(__file__).parents[2]

# Program -> (flag of a port, its default, flag of the address, its default). Port 0 is off, and "" is every address.
LISTENERS = {
    "kube-apiserver": [("secure-port", "6443", "bind-address", "0.0.0.0")],
    "kube-controller-manager": [("secure-port", "10257", "bind-address", "0.0.0.0")],
    "kube-scheduler": [("secure-port", "10259", "bind-address", "0.0.0.0")],
    "konnectivity-server": [
        ("server-port", "8090", "server-bind-address", ""),
        ("agent-port", "8091", "agent-bind-address", ""),
        ("admin-port", "8095", "admin-bind-address", "127.0.0.1"),
        ("health-port", "8092", "health-bind-address", ""),
    ],
    "proxy-agent": [
        ("health-server-port", "8093", "health-server-host", ""),
        ("admin-server-port", "8094", "admin-bind-address", "127.0.0.1"),
    ],
    "flanneld": [("healthz-port", "0", "healthz-ip", "0.0.0.0")],
    "python3": [],
}
KUBE_PROXY_HEALTH = 10256


def reachable(program, words):
    """Return the ports of a command line that listen on more than 127.0.0.1."""
    given = dict(word.removeprefix("--").split("=", 1) for word in words if word.startswith("--") and "=" in word)
    listening = {
        int(given.get(port, default))
        for port, default, address, any_address in LISTENERS[program]
        if given.get(address, any_address) != "127.0.0.1"
    }
    return listening - {0}


def api_server_listeners(cluster):
    api_units = units.units(cluster, plan(cluster))
    return set().union(*(reachable(Path(unit.words[0]).name, unit.words[1:]) for unit in api_units))


def etcd_listeners(cluster):
    """Return host name -> ports of its members that listen on more than 127.0.0.1."""
    listening = defaultdict(set)
    for role in ROLES:
        for member in members(cluster, role, plan(cluster)):
            listening[member.host].add(agent_port(cluster))
            for flag in flags(cluster, role, member.name, plan(cluster)):
                if flag.startswith("--listen-"):
                    urls = map(urlsplit, flag.split("=", 1)[1].split(","))
                    listening[member.host] |= {url.port for url in urls if url.hostname != "127.0.0.1"}
    return listening


def worker_listeners(cluster):
    """Return the TCP ports of programs on every worker; sshd belongs to the site."""
    kubelet = kubeadm.kubelet_configuration(cluster, plan(cluster))
    proxy = kubeadm.kube_proxy_configuration(cluster)
    agent = konnectivity.agent(cluster, plan(cluster))["spec"]["template"]["spec"]["containers"][0]["args"]
    flanneld = (ROOT / "roles/flannel/templates/flanneld.service.j2").read_text().split()
    exporter = (ROOT / "roles/node_metrics/templates/node-exporter.service.j2").read_text()
    assert "--web.listen-address=:{{ node_metrics_port }}" in exporter
    assert kubelet["readOnlyPort"] == 0
    assert "healthzBindAddress" not in kubelet  # the default is 127.0.0.1
    assert "healthzBindAddress" not in proxy  # the default is 0.0.0.0:10256
    assert proxy["metricsBindAddress"].startswith("127.0.0.1:")
    return (
        {kubelet.get("port", 10250), KUBE_PROXY_HEALTH, NODE_METRICS_PORT}
        | reachable("proxy-agent", agent)
        | reachable("flanneld", flanneld)
    )


@given(SHAPES)
def test_ports_that_listen_on_an_api_server_match_the_flows(build, changes):
    cluster = build(changes)
    assert ports_into(flows(cluster), Role.API_SERVER) == api_server_listeners(cluster)


@given(SHAPES)
def test_ports_that_listen_on_a_members_host_match_the_flows(build, changes):
    cluster = build(changes)
    table = flows(cluster)
    for host, ports in etcd_listeners(cluster).items():
        role = Role.ETCD_MAIN if host.startswith("etcd-main") else Role.ETCD_EVENTS
        assert ports_into(table, role) == ports


@given(SHAPES)
def test_ports_that_listen_on_a_worker_match_the_flows_except_for_kube_proxys_health(build, changes):
    cluster = build(changes)
    table = flows(cluster)
    own = {Role.WORKER_IN_REGION: set(), Role.WORKER_AT_SITE: {cluster.spec.sites["onprem"].ssh.port}}
    services = set(NODE_PORTS)  # kube-proxy redirects them; nothing listens
    vxlan = {port for key, port in net_conf(cluster)["Backend"].items() if key == "Port"}
    for worker in set(WORKERS) & set(roles(table)):
        assert ports_into(table, worker) - services | {KUBE_PROXY_HEALTH} == worker_listeners(cluster) | own[worker]
        assert KUBE_PROXY_HEALTH not in ports_into(table, worker)
        assert ports_into(table, worker, Protocol.UDP) - services == vxlan


def test_a_listener_outside_of_127_0_0_1_is_noticed():
    assert reachable("kube-scheduler", ["--bind-address=127.0.0.1"]) == set()
    assert reachable("kube-scheduler", ["--profiling=false"]) == {10259}
    assert reachable("konnectivity-server", ["--server-port=0", "--agent-port=8132"]) == {8132, 8092}


@given(SHAPES)
def test_api_servers_dial_the_etcds_of_the_flows(build, changes):
    cluster = build(changes)
    words = next(unit.words for unit in units.units(cluster, plan(cluster)) if unit.name == "kube-apiserver.service")
    urls = [url for word in words if word.startswith("--etcd-servers") for url in re.findall(r"https://[\d.:]+", word)]
    table, hosts = flows(cluster), {str(host.address): host.name for host in plan(cluster).hosts()}
    for url in map(urlsplit, urls):
        role = Role.ETCD_MAIN if hosts[url.hostname].startswith("etcd-main") else Role.ETCD_EVENTS
        assert url.port in between(table, Role.API_SERVER, role)
    dialled = {url.port for url in map(urlsplit, urls)}
    assert dialled == set().union(*(between(table, Role.API_SERVER, role) for role in ETCDS))


@given(SHAPES)
def test_workers_dial_the_load_balancer_on_the_ports_of_the_flows(build, changes):
    cluster = build(changes)
    table = flows(cluster)
    agent = konnectivity.agent(cluster, plan(cluster))["spec"]["template"]["spec"]["containers"][0]["args"]
    tunnels = {int(word.split("=")[1]) for word in agent if word.startswith("--proxy-server-port=")}
    documents = {document["kind"]: document for document in yaml.safe_load_all(kubeadm.render(cluster, plan(cluster)))}
    api = {int(documents["ClusterConfiguration"]["controlPlaneEndpoint"].split(":")[1])}
    for worker in set(WORKERS) & set(roles(table)):
        assert between(table, worker, Role.LOAD_BALANCER) == tunnels | api
    assert between(table, Role.OPERATOR, Role.LOAD_BALANCER) == api
