"""The verbs with real Redfish: sushy-emulator, one BMC per machine."""

from __future__ import annotations

import http.client
import importlib.util
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cluster.spec import Cluster
from operations import bmcs
from operations import machines as operation
from operations.provisioning import install
from operations.provisioning.bmc import Bmc, BootTarget
from operations.provisioning.machines import SiteMachine, machines
from operations.provisioning.redfish import BmcError, BmcErrorKind, Patience, Redfish
from operations.provisioning.render import tree, write
from operations.provisioning.trust import Login, Trust
from tests.cli.terminal import Menagerie
from tests.ports import free_port
from tests.provisioning.emulator import Emulated, emulated
from tests.provisioning.support import KEYS, LOGIN, certificate, local_cluster

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("sushy_tools") is None, reason="sushy-tools is not installed; `make setup` installs it"
)
Bmcs = dict[str, Emulated]
QUICK = Patience(tries=2, backoff_s=0.1)


@contextmanager
def served(folder: Path, port: int) -> Iterator[None]:
    """A site's web server."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield
        server.shutdown()


class Site:
    """A cluster, its BMCs, its web server, and what its machines do."""

    def __init__(self, cluster: Cluster, all_: Bmcs, folder: Path) -> None:
        self.cluster = cluster
        self.bmcs = all_
        self.folder = folder
        self.booted_from: dict[str, str] = {}
        self.keys = {machine.name: key for machine, key in zip(machines(cluster), KEYS, strict=True)}

    @property
    def machines(self) -> tuple[SiteMachine, ...]:
        return machines(self.cluster)

    def render(self) -> None:
        write(tree(self.machines), self.folder)

    def install(self, name: str, finish: Callable[[SiteMachine], None] | None = None) -> None:
        """Act as a machine that boots its installer: report its key and turn off, or do what `finish` does."""
        one = self.bmcs[name]
        one.until("Off")
        one.until("On")
        self.booted_from[name] = one.system()["Boot"]["BootSourceOverrideTarget"]
        if finish:
            finish(one.machine)
            return
        assert tell(one.machine, "PUT", f"/key/{one.machine.hyphened}", f"{self.keys[name]} root@{name}\n") == 204
        one.power_off()


def tell(machine: SiteMachine, method: str, path: str, body: str = "", source: str = "") -> int:
    """Send a report to `operations.provisioning.reports` from the machine's address."""
    assert machine.settings.reports
    parts = urlsplit(machine.settings.reports)
    connection = http.client.HTTPConnection(
        parts.netloc, timeout=10, source_address=(source or str(machine.address), 0)
    )
    connection.request(method, path, body.encode())
    return connection.getresponse().status


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Site]]:
    """site(): three machines with real BMCs; everything that the verbs use is on this machine."""
    stack = []

    def made(macs: dict[str, list[str]] | None = None, **replaced: str) -> Site:
        web = free_port()
        reports = free_port()
        values = {
            "server": f"http://127.0.0.1:{web}",
            "reports": f"http://127.0.0.1:{reports}",
            **{key: value.replace("WEB", str(web)) for key, value in replaced.items()},
        }
        cluster = local_cluster(free_port(), **values)
        folder = tmp_path / "web"
        folder.mkdir()
        for context in (served(folder, web), emulated(cluster, tmp_path, macs)):
            stack.append(context)
            entered = context.__enter__()
        assert isinstance(entered, dict)
        pins = "".join(f"{one.machine.bmc} sha256:{one.certificate.sha256}\n" for one in entered.values())
        (tmp_path / "bmc-pins.txt").write_text(pins)
        there = Site(cluster, entered, folder)
        there.render()
        for module in ("cli.verbs.machines", "cli.verbs.status"):
            monkeypatch.setattr(f"{module}.checked", lambda _: cluster)
            monkeypatch.setattr(f"{module}.cluster_folder", lambda _: tmp_path)
        monkeypatch.setattr(install, "scanned_key", lambda machine: there.keys[machine.name])
        return there

    monkeypatch.setattr("operations.machines_journal.STATE", tmp_path / "state")
    monkeypatch.setattr(operation, "nodes", lambda _: frozenset())
    monkeypatch.setattr(bmcs, "secret_of", lambda *_: LOGIN)
    monkeypatch.setattr(install, "Waits", partial(install.Waits, power=30, install=60, first_boot=5, poll=0.3))
    yield made
    for context in reversed(stack):
        context.__exit__(None, None, None)


def connected(one: Emulated, login: str = LOGIN, **trust: object) -> Redfish:
    pins = {one.machine.bmc: one.certificate.sha256}
    assert one.machine.bmc and one.machine.settings.bmc
    return Redfish(
        one.machine.bmc,
        one.machine.settings.bmc.port,
        Login.parse(login, "bmc"),
        Trust(**(trust or {"pins": pins})),  # type: ignore[arg-type]
        patience=QUICK,
    )


def test_machines_are_installed_from_the_network_and_started_from_their_disks(
    site: Callable[..., Site],
    menagerie: Menagerie,
    tmp_path: Path,
) -> None:
    there = site()
    hosts = tmp_path / "known_hosts"
    hosts.write_text("127.9.1.11 ssh-ed25519 AAAAold\nexample.org ssh-ed25519 AAAAother\n")
    with ThreadPoolExecutor() as pool:
        installers = [pool.submit(there.install, name) for name in there.bmcs]
        ran = menagerie("machines", "install", "lynx", "--yes", "--json", "--known-hosts", str(hosts))
        for installer in installers:
            installer.result()
    assert ran.code == 0, ran.err
    assert {one["name"]: one["stage"] for one in ran.json["machines"]} == dict.fromkeys(there.bmcs, "done")
    assert there.booted_from == dict.fromkeys(there.bmcs, "Pxe")
    for one in there.bmcs.values():
        assert one.system()["PowerState"] == "On"
        assert one.system()["Boot"]["BootSourceOverrideTarget"] == "Hdd"
    assert hosts.read_text().splitlines() == [
        "example.org ssh-ed25519 AAAAother",
        *sorted((f"{one.address} {there.keys[one.name]}" for one in there.machines), key=hosts.read_text().index),
    ]

    again = menagerie("machines", "install", "lynx", "--json")
    assert again.code == 0
    assert (again.json["machines"], sorted(again.json["left_out"])) == ([], sorted(there.bmcs))


def test_an_image_is_attached_for_the_installer_and_ejected_afterwards(
    site: Callable[..., Site],
    menagerie: Menagerie,
    tmp_path: Path,
) -> None:
    there = site(media="http://127.0.0.1:WEB/ipxe.iso")
    (there.folder / "ipxe.iso").write_bytes(b"an image" * 1000)
    attached = []

    def finish(machine: SiteMachine) -> None:
        one = there.bmcs[machine.name]
        attached.append(one.media()["Image"])
        tell(machine, "PUT", f"/key/{machine.hyphened}", there.keys[machine.name])
        one.power_off()

    with ThreadPoolExecutor() as pool:
        installer = pool.submit(there.install, "lynx-gpu-2", finish)
        ran = menagerie(
            "machines", "install", "lynx", "--limit", "lynx-gpu-2", "--yes", "--known-hosts", str(tmp_path / "hosts")
        )
        installer.result()
    assert ran.code == 0, ran.err
    assert there.booted_from == {"lynx-gpu-2": "Cd"}
    assert attached == [there.machines[0].settings.media]
    assert there.bmcs["lynx-gpu-2"].media()["Inserted"] is False


def test_a_machine_that_refuses_its_disk_does_not_block_others_and_a_second_run_installs_only_it(
    site: Callable[..., Site],
    menagerie: Menagerie,
    tmp_path: Path,
) -> None:
    there = site()

    def refuse(machine: SiteMachine) -> None:
        assert tell(machine, "GET", f"/refused/{machine.hyphened}/holds-something", source="127.9.9.9") == 403
        assert tell(machine, "GET", f"/refused/{machine.hyphened}/holds-something") == 204

    command = ["machines", "install", "lynx", "--limit", "r1", "--yes", "--known-hosts", str(tmp_path / "hosts")]
    with ThreadPoolExecutor() as pool:
        pool.submit(there.install, "lynx-gpu-1", refuse)
        pool.submit(there.install, "lynx-gpu-2")
        ran = menagerie(*command)
    assert ran.code == 1
    assert "1 of 2 machines done" in ran.err
    assert "lynx-gpu-1: its disk is not empty" in ran.err
    with ThreadPoolExecutor() as pool:
        pool.submit(there.install, "lynx-gpu-1")
        ran = menagerie(*command)
    assert ran.code == 0, ran.err
    assert "1 machines to install; 1 are already installed" in ran.err


def test_swapped_bmcs_and_a_changed_card_are_reported_and_their_machines_are_left_alone(
    site: Callable[..., Site],
    menagerie: Menagerie,
) -> None:
    first, second, third = machines(local_cluster(1))
    there = site({first.name: [second.mac], second.name: [first.mac], third.name: ["b8:59:9f:77:77:77"]})
    looked = menagerie("status", "lynx", "machines", "--json")
    assert looked.code == 1
    problems = {one["name"]: one["problems"][0] for one in looked.json["machines"]}
    assert {problem["code"] for problem in problems.values()} == {"INV-003"}
    assert "the BMC at 127.9.254.11 (lynx-gpu-1) belongs to lynx-gpu-2" in problems["lynx-gpu-1"]["message"]
    assert "swapped" in problems["lynx-gpu-1"]["hint"]
    assert "reports b8:59:9f:77:77:77, but not b8:59:9f:10:00:03" in problems["lynx-gpu-3"]["message"]

    ran = menagerie("machines", "install", "lynx", "--yes")
    assert ran.code == 1
    assert "INV-003" in ran.err
    assert {one.system()["PowerState"] for one in there.bmcs.values()} == {"On"}


def test_a_bmc_that_is_down_a_wrong_password_and_a_wrong_pin_are_distinguished(site: Callable[..., Site]) -> None:
    there = site()
    one = there.bmcs["lynx-gpu-1"]
    with connected(one) as redfish:
        report = Bmc(redfish, one.machine.mac).report()
    assert (report.model, report.power, report.macs) == ("Sushy Emulator", "On", (one.machine.mac,))

    login = pytest.raises(BmcError, match="rejects user menagerie or the password")
    with login as refused, connected(one, "menagerie:wrong") as redfish:
        Bmc(redfish, one.machine.mac)
    assert refused.value.kind is BmcErrorKind.LOGIN
    assert "wrong" not in str(refused.value)

    pinned = pytest.raises(BmcError, match=f"it presents sha256:{one.certificate.sha256}")
    with pinned as other, connected(one, pins={one.machine.bmc: "00" * 32}):
        pass
    assert other.value.kind is BmcErrorKind.CERTIFICATE

    with pytest.raises(BmcError, match="no line in the pins file; it presents sha256:"):
        connected(one, pins={})

    moved = replace(one, machine=replace(one.machine, bmc=one.machine.bmc + 100 if one.machine.bmc else None))
    with pytest.raises(BmcError, match=r"BMC 127\.9\.254\.111 does not respond at port") as silent, connected(moved):
        pass
    assert silent.value.kind is BmcErrorKind.UNREACHABLE


def test_an_authority_verifies_bmcs_and_the_address_in_the_certificate(tmp_path: Path) -> None:
    cluster = local_cluster(free_port())
    authority = certificate(tmp_path, "authority")
    another = certificate(tmp_path, "another")
    with emulated(cluster, tmp_path, ca=authority) as there:
        one = there["lynx-gpu-1"]
        with connected(one, ca=authority.path) as redfish:
            assert Bmc(redfish, one.machine.mac).is_on
        with pytest.raises(BmcError, match="can't be verified") as foreign, connected(one, ca=another.path):
            pass
        assert foreign.value.kind is BmcErrorKind.CERTIFICATE


def test_what_a_bmc_lacks_is_reported(site: Callable[..., Site]) -> None:
    there = site()
    one = there.bmcs["lynx-gpu-3"]
    with connected(one) as redfish:
        bmc = Bmc(redfish, one.machine.mac)
        bmc.boot_once(BootTarget.NETWORK)
        with pytest.raises(BmcError, match=r"responds to POST /redfish/v1/.* with 400|responds to POST .* with 5\d\d"):
            bmc.insert("http://127.0.0.1:9/none.iso")
