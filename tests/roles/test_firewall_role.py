"""Role firewall under the real ansible-playbook with the real nft, in a separate network, tested with packets."""

from __future__ import annotations

import importlib.util
import ipaddress
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from components.flows.hosts import of_sites
from tests.flows.support import CEPH, ROCE
from tests.roles.overlaid import ROOT, Host

PROGRAM = ROOT / "roles" / "firewall" / "files" / "menagerie_firewall.py"
ALLOW = [{"from": ["192.0.2.0/24"], "protocol": "tcp", "ports": ["30000-32767"], "why": "NodePorts for the office."}]
LIST = "nft list table inet menagerie"


@pytest.fixture(scope="module")
def program():
    spec = importlib.util.spec_from_file_location("menagerie_firewall", PROGRAM)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def given(build) -> dict[str, Any]:
    """Return the variables of a cluster with operators, RDMA, storage and workers in the region."""
    site = {"roce": ROCE, "ceph": CEPH}
    plane = {"operators": ["198.51.100.0/24"]}
    pools = {"cpu": {"machine": "lab-small", "max": 2}}
    network = {"node_ports": {"outside": ["198.18.5.0/24"]}}
    return {
        **of_sites(build({"control_plane": plane, "sites": {"onprem": site}, "pools": pools, "network": network})),
        "firewall_allow": ALLOW,
    }


@pytest.fixture
def host(tmp_path: Path) -> Host:
    if os.geteuid() != 0 or not shutil.which("nft"):
        pytest.skip("only root may make networks, with nft")
    host_ = Host(tmp_path, "role: firewall, when: firewall_enabled", ("/etc", "/usr/local/sbin"))
    host_.command("sshd", "#!/bin/sh\necho port 22\n")
    return host_


def test_the_rules_are_loaded_once_and_a_dry_run_reports_drift_without_repairing_it(host: Host, given) -> None:
    rules = host.folder / "rules"
    first = host.play("--check", after=f"{LIST} > {rules}", **given)
    assert (first.code, host.files(), rules.read_text()) == (0, {}, ""), first.out
    second = host.play(after=f"{LIST} > {rules}", **given)
    assert (second.code, second.changed) == (0, 2), second.out
    text = rules.read_text()
    assert "policy drop" in text
    assert "6800-7568" in text
    assert host.systemctl_calls() == ["enable menagerie-firewall.service", "start menagerie-firewall.service"]
    # A new network has no rules, like after a flush.
    load = "nft -f /etc/menagerie/firewall.nft"
    third = host.play(before=load, **given)
    assert (third.code, third.changed) == (0, 0), third.out
    drift = f"{load} && nft add rule inet menagerie input tcp dport 23 accept"
    fourth = host.play("--check", before=drift, after=f"{LIST} > {rules}", **given)
    assert (fourth.code, fourth.changed) == (0, 1), fourth.out
    assert "tcp dport 23 accept" in rules.read_text()
    fifth = host.play(before=drift, after=f"{LIST} > {rules}", **given)
    assert (fifth.code, fifth.changed) == (0, 1), fifth.out
    assert "tcp dport 23 accept" not in rules.read_text()


def test_other_tables_stay_and_a_disabled_role_does_nothing(host: Host, given) -> None:
    other = "nft add table ip kube-proxy && nft add chain ip kube-proxy x '{ type filter hook input priority 0; }'"
    dump = host.folder / "dump"
    ran = host.play(before=other, after=f"nft list tables > {dump}", **given)
    assert ran.code == 0, ran.out
    assert dump.read_text().split("\n")[:2] == ["table ip kube-proxy", "table inet menagerie"]
    off = host.play("--check", **{**given, "firewall_enabled": False})
    assert (off.code, off.changed) == (0, 0), off.out


def test_an_sshd_on_a_closed_port_stops_the_run_before_anything_is_loaded(host: Host, given) -> None:
    host.command("sshd", "#!/bin/sh\necho port 2222\n")
    dump = host.folder / "dump"
    ran = host.play(after=f"nft list ruleset > {dump}", **given)
    assert ran.code != 0
    assert "sshd listens on port 2222, which no rule opens" in ran.out
    assert dump.read_text() == ""


def test_rules_that_nft_rejects_are_refused_as_a_whole(host: Host, given) -> None:
    wrong = [{"from": ["192.0.2.0/24"], "protocol": "tcp", "ports": ["70000"], "why": "No such port."}]
    dump = host.folder / "dump"
    ran = host.play(after=f"nft list ruleset > {dump}", **{**given, "firewall_allow": wrong})
    assert ran.code != 0
    assert "nft does not accept" in ran.out
    assert dump.read_text() == ""


# A host with the rules, its pod behind cni0, another pod behind a tunnel, and an outside with everybody's addresses.
PACKETS = """
set -e
ip link set lo up
ip netns add $N-out; ip netns add $N-pod; ip netns add $N-far
trap 'ip netns del $N-out; ip netns del $N-pod; ip netns del $N-far' EXIT
ip link add eth0 type veth peer name eth0 netns $N-out
ip link add cni0 type veth peer name eth0 netns $N-pod
ip link add flannel.1 type veth peer name eth0 netns $N-far
ip addr add 10.78.1.11/24 dev eth0; ip addr add 10.200.1.1/24 dev cni0; ip addr add 10.200.9.0/32 dev flannel.1
for link in eth0 cni0 flannel.1; do ip link set $link up; done
ip route add default via 10.78.1.12; ip route add 10.200.2.0/24 dev flannel.1
for address in 10.78.1.12/24 198.51.100.5/32 203.0.113.9/32 192.0.2.7/32 198.18.5.5/32 10.77.0.130/32 10.77.0.5/32 10.200.3.4/32
do ip -n $N-out addr add $address dev eth0; done
ip -n $N-pod addr add 10.200.1.5/24 dev eth0; ip -n $N-far addr add 10.200.2.6/32 dev eth0
for each in out pod far; do ip -n $N-$each link set eth0 up; ip -n $N-$each link set lo up; done
ip -n $N-out route add 10.200.1.0/24 via 10.78.1.11
ip -n $N-pod route add default via 10.200.1.1
ip -n $N-far route add default dev eth0
ip netns exec $N-far sysctl -qw net.ipv4.conf.eth0.proxy_arp=1 net.ipv4.neigh.eth0.proxy_delay=0
sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.flannel/1.proxy_arp=1 net.ipv4.neigh.flannel/1.proxy_delay=0 net.ipv4.conf.all.rp_filter=0
nft -f $RULES
nft 'add table ip nodeport; add chain ip nodeport c { type nat hook prerouting priority dstnat; }; add rule ip nodeport c ip daddr 10.78.1.11 tcp dport 30080 dnat to 10.200.1.5:8080'
nft 'add rule ip nodeport c ip daddr 10.78.1.11 tcp dport 30090 dnat to 10.78.1.11:23'
exec PYTHON TRY
"""
TRY = """
import concurrent.futures, ctypes, json, os, socket, subprocess, sys, time
NAME = os.environ["N"]
SERVE = '''
import socket, sys
for port in map(int, sys.argv[1:]):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("", port)); s.listen(9); globals()[f"s{port}"] = s
print("up", flush=True); sys.stdin.read()
'''
CONNECT = '''
import socket, sys
try:
    socket.create_connection((sys.argv[2], int(sys.argv[3])), 2, (sys.argv[1], 0)).close(); print("in")
except TimeoutError: print("dropped")
except OSError as error: print(error)
'''
def inside(netns, *words, **more):
    prefix = ["ip", "netns", "exec", f"{NAME}-{netns}"] if netns else []
    return subprocess.Popen([*prefix, sys.executable, "-c", *words], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more)
servers = [inside("", SERVE, "22", "23", "9100", "10250", "18515", "6800", "9000"), inside("pod", SERVE, "8080")]
for server in servers: server.stdout.readline()
def tried(case):
    netns, source, target, port = case
    return inside(netns, CONNECT, source, target, str(port)).communicate()[0].strip()
with concurrent.futures.ThreadPoolExecutor(32) as pool:
    results = list(pool.map(tried, json.load(open(sys.argv[1]))))
for server in servers: server.kill(); server.wait()
print(json.dumps(results))
"""
HOST, POD = "10.78.1.11", "10.200.1.5"
CASES = [
    # (from namespace, source address, target, port), result
    (("out", "198.51.100.5", HOST, 22), "in"),  # operator
    (("out", "203.0.113.9", HOST, 22), "dropped"),  # anybody
    (("out", "198.51.100.5", HOST, 10250), "dropped"),
    (("out", "10.78.1.12", HOST, 10250), "in"),  # a worker of the rack
    (("out", "10.77.0.130", HOST, 10250), "in"),  # a worker in the region
    (("out", "10.77.0.5", HOST, 10250), "dropped"),  # an API server
    (("out", "10.78.1.12", HOST, 9100), "in"),  # metrics of the host, for pods of workers
    (("out", "10.77.0.130", HOST, 9100), "in"),
    (("out", "10.77.0.5", HOST, 9100), "dropped"),
    (("out", "198.51.100.5", HOST, 9100), "dropped"),
    (("pod", POD, HOST, 9100), "in"),
    (("out", "10.78.1.12", HOST, 22), "dropped"),
    (("out", "10.78.1.12", HOST, 9000), "dropped"),
    (("out", "10.78.1.12", HOST, 18515), "in"),  # menagerie roce test
    (("out", "10.78.1.12", HOST, 6800), "in"),  # Ceph
    (("out", "10.77.0.130", HOST, 6800), "dropped"),
    (("pod", POD, HOST, 10250), "in"),
    (("pod", POD, HOST, 22), "dropped"),
    (("out", "10.78.1.12", POD, 8080), "in"),  # native routes
    (("out", "10.200.3.4", POD, 8080), "in"),
    (("out", "203.0.113.9", POD, 8080), "dropped"),
    (("far", "10.200.2.6", POD, 8080), "in"),  # from a tunnel
    (("out", "192.0.2.7", HOST, 30080), "in"),  # firewall_allow
    (("out", "203.0.113.9", HOST, 30080), "dropped"),
    (("out", "10.78.1.12", HOST, 30080), "in"),  # a worker of the rack, at a port of a Service
    (("out", "10.77.0.130", HOST, 30080), "in"),  # a worker in the region
    (("out", "10.77.0.5", HOST, 30080), "dropped"),  # an API server
    (("out", "198.51.100.5", HOST, 30080), "dropped"),  # operator
    (("out", "198.18.5.5", HOST, 30080), "in"),  # network.node_ports.outside
    (("out", "198.18.5.5", POD, 8080), "dropped"),
    (("out", "10.78.1.12", HOST, 30100), "[Errno 111] Connection refused"),  # a port without a Service
    (("out", "203.0.113.9", HOST, 30100), "dropped"),
    (("out", "10.78.1.12", HOST, 30090), "in"),  # a Service whose pod is in the host's network
    (("pod", POD, HOST, 30090), "in"),
    (("out", "203.0.113.9", HOST, 30090), "dropped"),
    (("out", "10.78.1.12", HOST, 23), "dropped"),
]


def test_only_packets_that_the_table_allows_come_in(host: Host, given, tmp_path: Path) -> None:
    assert host.play(**given).code == 0
    (tmp_path / "rules.nft").write_text(host.files()["/etc/menagerie/firewall.nft"])
    (tmp_path / "try.py").write_text(textwrap.dedent(TRY))
    (tmp_path / "cases.json").write_text(json.dumps([case for case, _ in CASES]))
    run = f"{sys.executable} {tmp_path / 'try.py'} {tmp_path / 'cases.json'}"
    script = PACKETS.replace("exec PYTHON TRY", run)
    environment = {**os.environ, "N": f"base-fw-{os.getpid()}", "RULES": str(tmp_path / "rules.nft")}
    done = subprocess.run(
        ["unshare", "--net", "bash", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    assert {case: result for (case, _), result in zip(CASES, results, strict=True)} == dict(CASES)


def test_a_logged_in_operator_must_be_able_to_log_in_again(program, tmp_path: Path) -> None:
    header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    v4 = "   0: 0B014E0A:0016 0564a8c0:D431 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0 20 4 30 10 -1\n"
    listening = "   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 20 4 30 10 -1\n"
    loopback = "   2: 0100007F:0016 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0 20 4 30 10 -1\n"
    mapped = "0000000000000000FFFF00000664a8c0"
    v6 = f"   0: {mapped}:0016 {mapped}:D432 01 0:0 00:0 0     0        0 1 1 0 20 4 30 10 -1\n"
    (tmp_path / "tcp").write_text(header + v4 + listening + loopback)
    (tmp_path / "tcp6").write_text(header + v6)
    sessions = program.sessions({22}, (tmp_path / "tcp", tmp_path / "tcp6", tmp_path / "none"))
    assert {(str(address), port) for address, port in sessions} == {("192.168.100.5", 22), ("192.168.100.6", 22)}
    rules = [("22", [ipaddress.ip_network("192.168.100.5/32")])]
    assert program.locked_out(sessions, rules) == ["192.168.100.6 (port 22)"]
    assert program.locked_out(sessions, [*rules, ("20-30", [])]) == []
    assert program.locked_out(sessions, [("23", [])]) == ["192.168.100.5 (port 22)", "192.168.100.6 (port 22)"]


def test_without_operators_anybody_may_log_in(build) -> None:
    (login,) = [rule for rule in of_sites(build())["firewall_rules"] if rule["login"]]
    assert (login["from"], login["ports"]) == ([], ["22"])


def test_storage_hosts_reach_each_other_on_their_second_network_too(build) -> None:
    ceph = {**CEPH, "networks": {"cluster": ["10.90.0.0/24"], "public": ["10.78.1.0/24"]}}
    rules = of_sites(build({"sites": {"onprem": {"ceph": ceph}}}))["firewall_rules"]
    (storage,) = [rule for rule in rules if "10.90.0.0/24" in rule["from"]]
    assert storage["ports"] == ["3300", "6789", "6800-7568"]
    assert storage["from"].count("10.78.1.0/24") == 1


def test_a_cluster_without_workers_at_sites_has_no_rules(build) -> None:
    assert of_sites(build({"pools": {"workers": None, "cpu": {"machine": "lab-small", "max": 1}}})) == {}


def test_without_native_routes_pods_are_reached_only_through_tunnels(build) -> None:
    assert of_sites(build({"network": {"flannel": {"direct_routing": False}}}))["firewall_pod_sources"] == []


def test_ports_of_services_are_open_to_the_cluster_and_to_ranges_in_the_spec(build) -> None:
    def opened(**node_ports: Any) -> list[tuple[str, list[str], bool]]:
        rules = of_sites(build({"network": {"node_ports": node_ports}}))["firewall_rules"]
        of_services = [rule for rule in rules if rule["services"]]
        assert {tuple(rule["ports"]) for rule in of_services} <= {("30000-32767",)}
        return [(rule["protocol"], rule["from"], rule["pods"]) for rule in of_services]

    racks = ["10.78.1.0/24", "10.78.2.0/24"]
    assert opened() == [("tcp", racks, True), ("udp", racks, True)]
    assert opened(cluster=False) == []
    assert opened(cluster=False, outside=["192.0.2.0/25", "192.0.2.128/25"]) == [
        ("tcp", ["192.0.2.0/24"], False),
        ("udp", ["192.0.2.0/24"], False),
    ]
