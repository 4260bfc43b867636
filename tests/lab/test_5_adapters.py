"""Each cloud's way to its store, on hosts of the lab that boot from user data, while the store fails in every way.

AWS is moto behind a door that checks signatures; Google Cloud and Azure are the documented HTTP. The hosts are real:
their systemd, cloud-init, network and boot unit are those of every host of the lab's region.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from ipaddress import IPv4Network

import pytest

from cluster.artefacts import ArtefactSource
from cluster.files import HostConfig, HostFile, SecretRef
from components.userdata import Payload, render
from sandbox.lab import datacentre, hosts, plan
from sandbox.lab.hosts import HostSpec
from tests.lab.clouds import served
from tests.lab.support import Run
from tests.stacks.fake_stores import Answer, Aws, Azure, Cloud, Gcp, moto

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

UNIT = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/cp /etc/probe/key /run/probe\n"
SECRET = "probe.key"
PAYLOAD = Payload.of(
    HostConfig(
        files=(HostFile("/etc/systemd/system/probe.service", UNIT),),
        secrets=(SecretRef(SECRET, "/etc/probe/key"),),
        start=("probe.service",),
        packages=("python3",),
    ),
    ArtefactSource(None, {}),
)
# After the hosts that the cluster has.
FIRST_NUMBER = 50
NAMES = ("aws", "azure", "gcp")
SLOW = Answer(200, "{}", after_s=8)
"""Programs wait 5 s for an answer."""
PATIENCE_S = 40


@dataclass(frozen=True)
class Fault:
    """A way to fail; `told` is what the console must say of it, and `found` what the host then has of its payload."""

    name: str
    begin: Callable[[Cloud], None]
    told: Callable[[Cloud], str]
    found: str = ""


def throttled(cloud: Cloud) -> str:
    return "ThrottlingException" if isinstance(cloud, Aws) else "HTTP 429"


def store_says(fault: Answer | None) -> Callable[[Cloud], None]:
    return lambda cloud: setattr(cloud, "store_fault", fault)


def forbidden(cloud: Cloud) -> None:
    cloud.store_fault = None
    cloud.deny(PAYLOAD.name)


def incomplete(cloud: Cloud) -> None:
    """The payload is readable now, and its secret is not in the bundle."""
    cloud.denied.clear()


def nameless(cloud: Cloud) -> None:
    cloud.metadata_fault = cloud.NO_IDENTITY


FAULTS = (
    Fault("slow", store_says(SLOW), lambda cloud: "timed out"),
    Fault("throttled", lambda cloud: store_says(cloud.THROTTLED)(cloud), throttled),
    Fault("forbidden", forbidden, lambda cloud: f"(needed: {cloud.PERMISSION})"),
    Fault("missing secret", incomplete, lambda cloud: f"{SECRET}: not found in secrets-", "unit file"),
    Fault("no identity", nameless, lambda cloud: "no identity: HTTP 40", "unit file"),
)


@dataclass
class Seen:
    """What a host said and had: fault -> text of its console since the fault before, and what there was of its payload."""

    said: dict[str, str] = field(default_factory=dict)
    had: dict[str, str] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    end: str = ""
    secret: str = ""
    journal: str = ""


@pytest.fixture(scope="module")
def clouds() -> Iterator[Mapping[str, Cloud]]:
    server = moto()
    aws = Aws()
    aws.server = server
    yield {"aws": aws, "azure": Azure(), "gcp": Gcp()}
    server.stop()


@pytest.fixture(scope="module")
def seen(lab: Run, clouds: Mapping[str, Cloud]) -> Iterator[Mapping[str, Seen]]:
    """One host a cloud, side by side, each through every fault and on to the end."""
    with ExitStack() as stack:
        running: dict[str, Future[Seen]] = {}
        for name, cloud in clouds.items():
            stack.enter_context(served(cloud))
            stack.callback(hosts.delete, f"adapter-{name}")
        with ThreadPoolExecutor(len(clouds)) as pool:
            for number, (name, cloud) in enumerate(clouds.items(), FIRST_NUMBER):
                running[name] = pool.submit(lived, f"adapter-{name}", number, cloud)
        yield {name: future.result() for name, future in running.items()}


def lived(host: str, number: int, cloud: Cloud) -> Seen:
    """Boot a host whose store fails in every way, and then does not."""
    lab, seen = datacentre.spec(), Seen()
    cloud.hold({PAYLOAD.name: PAYLOAD.packed(), "other": "value"})
    FAULTS[0].begin(cloud)
    user_data = render(PAYLOAD, cloud.adapter(), host)
    address = IPv4Network(lab.nodes)[number]
    hosts.create(HostSpec(host, "cloud", plan.CLOUD, str(address), user_data), lab)
    heard = 0
    for fault in FAULTS:
        fault.begin(cloud)
        seen.said[fault.name] = until(host, heard, fault.told(cloud))
        heard += len(seen.said[fault.name])
        seen.had[fault.name] = had(host)
        seen.asked[fault.name] = cloud.connections
    cloud.metadata_fault = None
    cloud.hold({PAYLOAD.name: PAYLOAD.packed(), SECRET: "the key"})
    seen.end = until(host, heard, "everything is in place and started")
    seen.secret = hosts.run(host, ["cat", "/run/probe"]).stdout
    seen.journal = hosts.run(host, ["journalctl", "-u", "menagerie-boot", "-o", "cat", "--no-pager"]).stdout
    return seen


def until(host: str, heard: int, words: str) -> str:
    """What the console says from `heard` on, once a line with `words` is in it; all of it when none comes."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        text = hosts.console(host).read_text(errors="replace")[heard:]
        if "\n" in text.partition(words)[2] or time.monotonic() > deadline:
            return text
        time.sleep(0.1)


def had(host: str) -> str:
    """What a host has of its payload."""
    look = (
        "[ ! -e /etc/systemd/system/probe.service ] || echo unit file; [ ! -e /etc/probe/key ] || echo secret; "
        "systemctl is-active --quiet probe.service && echo unit started; [ ! -e /run/probe ] || echo unit ran"
    )
    return hosts.run(host, ["sh", "-c", look]).stdout.strip()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_console_says_what_is_wrong(
    seen: Mapping[str, Seen], clouds: Mapping[str, Cloud], name: str, fault: Fault
) -> None:
    assert fault.told(clouds[name]) in seen[name].said[fault.name]
    assert seen[name].said[fault.name].count("FAILED at") == 1


@pytest.mark.parametrize("name", NAMES)
def test_nothing_starts_before_everything_is_there(seen: Mapping[str, Seen], name: str) -> None:
    assert seen[name].had == {fault.name: fault.found for fault in FAULTS}


@pytest.mark.parametrize("name", NAMES)
def test_a_host_asks_again_after_every_fault(seen: Mapping[str, Seen], name: str) -> None:
    counts = list(seen[name].asked.values())
    assert counts == sorted(set(counts))


@pytest.mark.parametrize("name", NAMES)
def test_a_host_goes_on_when_its_store_recovers(seen: Mapping[str, Seen], name: str) -> None:
    assert "probe.service is up" in seen[name].end
    assert seen[name].secret == "the key"


@pytest.mark.parametrize("name", NAMES)
def test_the_journal_says_the_same_and_neither_says_a_secret(seen: Mapping[str, Seen], name: str) -> None:
    console = "".join([*seen[name].said.values(), seen[name].end])
    told = [line for line in seen[name].journal.splitlines() if line.startswith("menagerie-boot: ")]
    assert len(told) > len(FAULTS)
    assert [line for line in told if line.strip() not in console] == []
    assert "the key" not in console + seen[name].journal
