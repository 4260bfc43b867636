"""Two real charons that authenticate with certificates: a router with its role's files, and an end of a gateway."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from network import swanctl
from network.gateway import Joined, Line, RouterConfig, certificate_name, routers, settings
from operations.router_certificates import load
from tests.vpn.authority import Signed, chain, signed
from tests.vpn.machines import Machine, wait, wire
from tests.vpn.world import PROGRAM, RACK, ROUTER, USER_SPACE

pytestmark = [pytest.mark.engine, pytest.mark.timed, pytest.mark.xdist_group("vpn")]

END = "203.0.113.31"
NAME = "C=US, ST=WA, L=Seattle, O=Amazon.com, OU=AWS, CN=vpn-0123456789abcdef0.endpoint-{end}"
NAMES = (NAME.format(end=0), NAME.format(end=1))
ARN = "arn:aws:acm:us-east-1:123456789012:certificate/1"
SYSTEMCTL = "#!/bin/sh\necho ExecMainStartTimestampMonotonic=1\n"
KEYS = f"""
import sys
sys.path.insert(0, {str(PROGRAM.parent)!r})
from menagerie_vpn import host, keys
try: print(keys.apply(host.settings(), False))
except host.Failed as error: raise SystemExit(str(error))
"""


@dataclass(frozen=True)
class Authorities:
    sub: Signed
    root: Signed
    router: Signed

    def gateway(self, name: str = NAMES[0], days: tuple[int, int] = (-1, 90)) -> Signed:
        return signed(name, self.sub, days=days)


@pytest.fixture(scope="module")
def pki() -> Authorities:
    sub, root = chain("example")
    return Authorities(sub, root, signed("CN=sjc1-edge-1", sub))


def lay(folder: Path, pki: Authorities, router: Signed) -> Path:
    (folder / "edge-1.pem").write_text(router.pem)
    (folder / "ca.pem").write_text(pki.sub.pem + pki.root.pem)
    return folder


def router_of(build, folder: Path) -> RouterConfig:
    certificate = {"arn": ARN, "ca": "ca.pem", "file": "edge-1.pem"}
    vpn = {
        "asn": 65010,
        "inside": "169.254.6.0/29",
        "routers": {"edge-1": {"address": ROUTER, "host": "10.8.1.1", "certificate": certificate}},
    }
    sites = {"onprem": None, "sjc1": {"racks": {"r1": RACK}, "vpn": vpn}}
    cluster = build({"name": "horus", "control_plane": {"cloud": "aws"}, "sites": sites}, {})
    own = cluster.spec.sites["sjc1"].vpn.routers["edge-1"].certificate
    gateways = {"sjc1/edge-1": (END, "203.0.113.32")}
    (router,) = routers([Joined(cluster, gateways, {"sjc1/edge-1": NAMES}, {"sjc1/edge-1": load(own, folder)})])
    return router


class Pair:
    """A router and an end of a gateway, connected by a cable."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.site, self.end = Machine("site", folder, programs), Machine("end", folder, programs)
        wire(self.site, "wan", self.end, "wan")
        for machine, address in ((self.site, ROUTER), (self.end, END)):
            machine.run("ip", "address", "add", f"{address}/24", "dev", "wan")

    def router(self, router: RouterConfig, key: Signed) -> Line:
        """Configure the router as its role does, except for the interface."""
        line = router.lines[0]
        site = self.site
        site.write("/usr/local/sbin/systemctl", SYSTEMCTL, mode="0755")
        site.write("/usr/local/sbin/verbs", '#!/bin/sh\necho "$PLUTO_VERB" >> /run/verbs\n', mode="0755")
        site.write("/etc/menagerie/vpn.json", json.dumps(settings(replace(router, lines=(line,)))))
        text = re.sub(r"\n *(if_id_\w+) = .*", "", swanctl.connections([line], "/usr/local/sbin/verbs"))
        self.texts(router, text)
        site.write(f"/etc/swanctl/private/{certificate_name(line)}", key.key_pem, mode="0600")
        self._start(site, swanctl.daemon([line]))
        return line

    def texts(self, router: RouterConfig, connections: str) -> None:
        self.site.write("/etc/swanctl/conf.d/menagerie.conf", connections)
        self.site.write("/etc/swanctl/conf.d/menagerie-keys.conf", swanctl.secrets(router.lines, {}), mode="0600")
        for path, text in swanctl.certificates(router.lines).items():
            self.site.write(path, text)

    def gateway(self, pki: Authorities, own: Signed, *, authorities: Authorities | None = None) -> None:
        """Configure the gateway's end. own: its certificate. pki: the authorities of routers that it trusts. authorities: the signers of `own`."""
        text = f"""\
connections {{
  end {{
    version = 2
    proposals = {swanctl.IKE}
    unique = replace
    local {{
      auth = pubkey
      certs = end.pem
    }}
    remote {{
      auth = pubkey
      cacerts = believed-0.pem
    }}
    remote_addrs = {ROUTER}
    children {{
      end {{
        local_ts = 0.0.0.0/0
        remote_ts = 0.0.0.0/0
        esp_proposals = {swanctl.ESP["AES-256-GCM-16"]}
      }}
    }}
  }}
}}
"""
        self.end.write("/etc/swanctl/conf.d/end.conf", text)
        for name, chain_ in (("believed", pki), ("own", authorities or pki)):
            self.end.write(f"/etc/swanctl/x509ca/{name}-0.pem", chain_.sub.pem)
            self.end.write(f"/etc/swanctl/x509ca/{name}-1.pem", chain_.root.pem)
        self.end.write("/etc/swanctl/x509/end.pem", own.pem)
        self.end.write("/etc/swanctl/private/end.pem", own.key_pem, mode="0600")
        self._start(self.end, swanctl.daemon())
        self.end.run("swanctl", "--load-all", "--noprompt")

    def _start(self, machine: Machine, daemon: str) -> None:
        machine.write("/etc/strongswan.d/menagerie.conf", daemon)
        machine.write("/etc/strongswan.d/zz-test.conf", USER_SPACE)
        machine.start("/usr/sbin/charon-systemd")
        wait(lambda: machine.ask("swanctl", "--stats").returncode == 0, 10, f"{machine.name} runs strongSwan")

    def apply(self) -> str:
        """Run strongSwan's part of `menagerie-vpn apply`."""
        done = self.site.ask("python3", "-c", KEYS)
        return done.stdout + done.stderr

    def sas(self) -> list[tuple[str, str]]:
        """Return (number, state) of the router's IKE_SAs."""
        output = self.site.run("swanctl", "--list-sas", "--raw")
        return re.findall(r"list-sa event \{\S+ \{uniqueid=(\d+) .*?\bstate=(\w+)", output)

    def up(self) -> bool:
        return "ESTABLISHED" in [state for _, state in self.sas()]

    def log(self, machine: Machine) -> str:
        return machine.run("cat", "/var/log/charon.log")


@pytest.fixture
def pair(tmp_path: Path, programs: Path) -> Iterator[Pair]:
    machines = Pair(tmp_path, programs)
    yield machines
    machines.site.end()
    machines.end.end()


@pytest.fixture
def line(pair: Pair, pki: Authorities, build, tmp_path: Path) -> Line:
    """Return the router's line, with its own certificate; nothing is loaded yet."""
    return pair.router(router_of(build, lay(tmp_path, pki, pki.router)), pki.router)


def numbered(pair: Pair, line: Line) -> None:
    for machine, address in ((pair.site, line.tunnel.edge.address), (pair.end, line.tunnel.cloud.address)):
        machine.run("ip", "link", "set", "ipsec0", "mtu", "1400", "up")
        machine.run("ip", "address", "add", str(address), "dev", "ipsec0")


def renew(pair: Pair, router: RouterConfig) -> None:
    for path, text in swanctl.certificates(router.lines).items():
        pair.site.write(path, text)


def test_the_gateway_gets_a_new_certificate_and_the_interface_keeps_its_keys(pair, pki, build, line, tmp_path) -> None:
    pair.gateway(pki, pki.gateway())
    assert "horus-0 was not loaded" in pair.apply()
    wait(pair.up, 10, "both ends know each other")
    assert pair.apply() == "[]\n"
    numbered(pair, line)
    gateway = str(line.tunnel.cloud.address.ip)
    wait(lambda: pair.site.pings(gateway), 5, "packets cross")
    (before,) = pair.sas()
    new = signed("CN=sjc1-edge-1", pki.sub, key=pki.router.key)
    renew(pair, router_of(build, lay(tmp_path, pki, new)))
    pinging = pair.site.start("ping", "-n", "-q", "-i", "0.02", "-c", "250", gateway)
    time.sleep(1)
    assert "menagerie-horus.pem is newer" in pair.apply()
    wait(
        lambda: [number for number, _ in pair.sas()] not in ([before[0]], []) and len(pair.sas()) == 1,
        5,
        "only the new",
    )
    output = pinging.communicate(timeout=30)[0]
    print(output)
    received = re.search(r"250 packets transmitted, (\d+) received", output)
    assert received
    assert int(received[1]) >= 245
    # The interface has keys the whole time.
    assert pair.site.run("cat", "/run/verbs").split() == ["up-client", "up-client", "down-client"]
    shown = pair.end.run("swanctl", "--list-certs", "--subject", "CN=sjc1-edge-1")
    assert f"{new.certificate.serial_number:x}"[-16:] in shown.replace(":", "")
    certificates = pair.site.run("swanctl", "--list-certs", "--subject", "CN=sjc1-edge-1")
    assert certificates.count("serial:") == 1


def test_a_certificate_of_another_key_is_not_loaded_and_the_tunnel_stays(pair, pki, build, line, tmp_path) -> None:
    pair.gateway(pki, pki.gateway())
    pair.apply()
    wait(pair.up, 10, "both ends know each other")
    before = pair.sas()
    renew(pair, router_of(build, lay(tmp_path, pki, signed("CN=sjc1-edge-1", pki.sub))))
    assert "does not match the key /etc/swanctl/private/menagerie-horus.pem" in pair.apply()
    assert pair.sas() == before


@pytest.mark.parametrize(
    ("days", "foreign", "log_line"),
    [
        ((-30, -1), False, "subject certificate invalid (valid from"),
        ((-1, 90), True, "no issuer certificate found for"),
    ],
    ids=["expired", "of another authority"],
)
def test_a_router_refuses_a_gateway_s_certificate(pair, pki, line, days, foreign, log_line) -> None:
    theirs = Authorities(*chain("other"), pki.router) if foreign else pki
    pair.gateway(pki, theirs.gateway(days=days), authorities=theirs)
    pair.apply()
    wait(lambda: log_line in pair.log(pair.site), 6, log_line)
    assert not pair.up()


@pytest.mark.parametrize("name", [NAMES[1], "CN=sjc1-edge-2"], ids=["of the other end", "of another router"])
def test_a_gateway_of_another_name_does_not_answer(pair, pki, line, name) -> None:
    """The right authority signed it, but the router expects another name."""
    pair.gateway(pki, pki.gateway(name))
    pair.apply()
    wait(lambda: "received AUTHENTICATION_FAILED notify error" in pair.log(pair.site), 6, "refused")
    assert not pair.up()


@pytest.mark.parametrize(
    ("name", "taken"),
    [(NAMES[0], True), (NAMES[1], False), ("CN=sjc1-edge-2", False)],
    ids=["its own", "of the other end", "of another router"],
)
def test_a_router_answers_only_a_gateway_with_the_expected_name(pair, pki, line, name, taken) -> None:
    pair.gateway(pki, pki.gateway(name))
    pair.site.run("sed", "-i", "/_action = /d", "/etc/swanctl/conf.d/menagerie.conf")
    pair.apply()
    pair.end.start("swanctl", "--initiate", "--child", "end")
    if taken:
        wait(pair.up, 6, "the gateway's call is taken")
    else:
        wait(lambda: "no matching peer config found" in pair.log(pair.site), 6, "the gateway's call is refused")
        assert not pair.up()


@pytest.mark.parametrize("days", [(-30, -1), (-1, 90)], ids=["expired", "of another authority"])
def test_a_gateway_refuses_a_router_s_certificate(pair, pki, line, days) -> None:
    """`vpn configure` refuses both earlier, so normally neither gets this far."""
    pair.gateway(pki, pki.gateway())
    bad = signed("CN=sjc1-edge-1", pki.sub if days[1] < 0 else chain("other")[0], days=days, key=pki.router.key)
    pair.site.write("/etc/swanctl/x509/menagerie-horus.pem", bad.pem)
    pair.apply()
    wait(lambda: "received AUTHENTICATION_FAILED notify error" in pair.log(pair.site), 6, "refused")
    assert not pair.up()
