"""The rules that keep pods away from the metadata service, for every cloud."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from components.workers import metadata

CLOUDS = {
    "aws": {"region": "us-east-1", "zones": ["us-east-1a"]},
    "azure": {"region": "eastus", "zones": [1]},
    "gcp": {"region": "us-central1", "zones": ["us-central1-a"]},
    "lab": {},
}
MACHINE, WIRE_SERVER = "169.254.169.254", "168.63.129.16"
CLOSED = {"aws": [MACHINE], "azure": [MACHINE, WIRE_SERVER], "gcp": [MACHINE], "lab": [MACHINE]}
DNS = {"gcp": [MACHINE], "azure": [WIRE_SERVER]}
IN, REFUSED, SILENT = "in", "No route to host", "timed out"
needs_iptables = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("iptables") is None, reason="needs root and iptables"
)


@pytest.fixture
def made(build):
    """Return made("aws"), which returns path -> text of the files on the cloud's workers."""

    def of(cloud):
        cluster = build({"control_plane": {"cloud": cloud} | CLOUDS[cloud]})
        return {file.path: file.text for file in metadata.files(cluster)}

    return of


def rules(text, chain):
    return [line.removeprefix(f"-A {chain} ") for line in text.splitlines() if line.startswith(f"-A {chain} ")]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_forwarded_packets_are_refused_and_would_be_dropped_by_a_table_of_their_own(made, cloud):
    guard, refusal = made(cloud)[metadata.GUARD], made(cloud)[metadata.REFUSAL]
    assert "*security\n" in guard
    assert "*filter\n" in refusal
    for text, chain, target in (
        (guard, "FORWARD", "DROP"),
        (refusal, metadata.CHAIN, "REJECT --reject-with icmp-admin-prohibited"),
    ):
        assert [rule for rule in rules(text, chain) if "RETURN" not in rule] == [
            f"-d {address}/32 -j {target}" for address in CLOSED[cloud]
        ]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_only_the_clouds_resolver_and_replies_to_its_probes_stay_open(made, cloud):
    opened = [f"-d {WIRE_SERVER}/32 -m conntrack --ctdir REPLY -j RETURN"] if cloud == "azure" else []
    for address in DNS.get(cloud, ()):
        opened += [f"-d {address}/32 -p {protocol} -m {protocol} --dport 53 -j RETURN" for protocol in ("tcp", "udp")]
    for path, chain in ((metadata.GUARD, "FORWARD"), (metadata.REFUSAL, metadata.CHAIN)):
        listed = rules(made(cloud)[path], chain)
        assert listed[: len(opened)] == opened
        assert not [rule for rule in listed[len(opened) :] if "RETURN" in rule]


def test_the_unit_loads_the_rules_before_any_pod_runs_and_again_after_a_flush(made):
    unit = made("lab")[f"/etc/systemd/system/{metadata.UNIT}"]
    assert f"ExecStart=/usr/sbin/iptables-restore --wait=60 {metadata.GUARD}\n" in unit
    assert f"ExecStart=/usr/sbin/iptables-restore --wait=60 --noflush {metadata.REFUSAL}\n" in unit
    assert "PartOf=nftables.service\n" in unit
    assert "Before=containerd.service kubelet.service\n" in unit


def started(files, folder):
    """Return the commands of the unit, as a shell runs them, with the files in `folder`."""
    for path in (metadata.GUARD, metadata.REFUSAL):
        (folder / path.rpartition("/")[2]).write_text(files[path])
    lines = files[f"/etc/systemd/system/{metadata.UNIT}"].replace("/etc/menagerie", str(folder)).splitlines()
    commands = [line.partition("=")[2] for line in lines if line.startswith("ExecStart=")]
    return "; ".join(f"{line.lstrip('-')} || {'true' if line.startswith('-') else 'exit 1'}" for line in commands)


@needs_iptables
@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_unit_may_start_again_and_leaves_rules_of_others(made, tmp_path, cloud):
    """In a separate network namespace."""
    start = started(made(cloud), tmp_path)
    others = "iptables -A FORWARD -s 10.200.0.0/16 -j ACCEPT"
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", f"{others}; {start}; {start}; iptables -S; iptables -t security -S"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    listed = done.stdout.splitlines()
    assert [line for line in listed if line.startswith("-A FORWARD ") and "/32" not in line] == [
        f"-A FORWARD -j {metadata.CHAIN}",
        "-A FORWARD -s 10.200.0.0/16 -j ACCEPT",
    ]
    assert rules(done.stdout, metadata.CHAIN) == rules(made(cloud)[metadata.REFUSAL], metadata.CHAIN)
    assert [line for line in rules(done.stdout, "FORWARD") if "/32" in line] == rules(
        made(cloud)[metadata.GUARD], "FORWARD"
    )


WORLD = """
set -e
ip link set lo up
ip netns add $N-pod; ip netns add $N-cloud
trap 'ip netns del $N-pod; ip netns del $N-cloud' EXIT
ip link add cni0 type veth peer name eth0 netns $N-pod
ip link add eth0 type veth peer name eth0 netns $N-cloud
ip addr add 10.200.1.1/24 dev cni0; ip addr add 10.77.0.130/24 dev eth0
ip -n $N-pod addr add 10.200.1.5/24 dev eth0
for address in 10.77.0.1/24 169.254.169.254/32 168.63.129.16/32; do ip -n $N-cloud addr add $address dev eth0; done
for each in pod cloud; do ip -n $N-$each link set eth0 up; ip -n $N-$each link set lo up; done
ip link set cni0 up; ip link set eth0 up
ip route add default via 10.77.0.1; ip -n $N-pod route add default via 10.200.1.1
ip -n $N-cloud route add 10.200.1.0/24 via 10.77.0.130
sysctl -qw net.ipv4.ip_forward=1
"""
TRY = """
import json, os, socket, subprocess, sys
SERVE = '''
import socket, sys
kept = [socket.create_server((address, int(port))) for address, port in (each.split(":") for each in sys.argv[1:])]
print("up", flush=True); sys.stdin.read()
'''
CONNECT = '''
import socket, sys
try:
    socket.create_connection((sys.argv[2], int(sys.argv[3])), 1, (sys.argv[1], 0)).close(); print("in")
except OSError as error: print(error.strerror or error)
'''
def inside(room, *words):
    prefix = ["ip", "netns", "exec", f"{os.environ['N']}-{room}"] if room else []
    return subprocess.Popen([*prefix, sys.executable, "-c", *words], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
ports = [f"{address}:{port}" for address in ("169.254.169.254", "168.63.129.16") for port in (53, 80)]
servers = [inside("cloud", SERVE, *ports), inside("pod", SERVE, "10.200.1.5:8080")]
for server in servers: server.stdout.readline()
results = []
for step in json.loads(sys.argv[1]):
    if isinstance(step, str): subprocess.run(step, shell=True, check=True)
    else: results.append(inside(step[0], CONNECT, *map(str, step[1:])).communicate()[0].strip())
for server in servers: server.kill(); server.wait()
print(json.dumps(results))
"""
POD, HOST = ("pod", "10.200.1.5"), ("", "10.77.0.130")


def results(tmp_path, before, steps):
    (tmp_path / "try.py").write_text(TRY)
    script = f'{WORLD}{before}\n{sys.executable} {tmp_path / "try.py"} "$STEPS"'
    done = subprocess.run(
        ["unshare", "--net", "bash", "-c", script],
        env={**os.environ, "N": f"guard-{os.getpid()}", "STEPS": json.dumps(steps)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@needs_iptables
def test_no_rule_of_others_brings_a_pod_to_the_metadata_service(made, tmp_path):
    """With real packets. An address that is rewritten on its way is met too: it is what kube-proxy does."""
    rewrite = f"iptables -t nat -A PREROUTING -d 198.51.100.1 -j DNAT --to-destination {MACHINE}"
    steps = [
        [*POD, MACHINE, 80],
        [*HOST, MACHINE, 80],
        rewrite,
        [*POD, "198.51.100.1", 80],
        "iptables -I FORWARD -j ACCEPT",
        [*POD, MACHINE, 80],
        [*POD, WIRE_SERVER, 80],
        "iptables -t security -F FORWARD",
        [*POD, "198.51.100.1", 80],
    ]
    assert results(tmp_path, f"({started(made('aws'), tmp_path)})", steps) == [REFUSED, IN, REFUSED, SILENT, IN, IN]


@needs_iptables
def test_on_azure_dns_and_replies_to_probes_pass(made, tmp_path):
    steps = [
        [*POD, WIRE_SERVER, 80],
        [*POD, WIRE_SERVER, 53],
        [*POD, MACHINE, 80],
        ["cloud", WIRE_SERVER, "10.200.1.5", 8080],
        [*HOST, WIRE_SERVER, 80],
    ]
    assert results(tmp_path, f"({started(made('azure'), tmp_path)})", steps) == [REFUSED, IN, REFUSED, IN, IN]
