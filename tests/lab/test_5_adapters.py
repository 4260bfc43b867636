"""Each cloud's access to its store, on hosts of the lab that boot from user data, while the store fails in every way.

AWS is moto behind a proxy that checks signatures; Google Cloud and Azure follow the documented HTTP. The hosts are real:
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
# After the numbers of the cluster's hosts.
FIRST_NUMBER = 50
NAMES = ("aws", "azure", "gcp")
SLOW = Answer(200, "{}", after_s=8)
"""Programs wait 5 s for an answer."""
PATIENCE_S = 40


@dataclass(frozen=True)
class Fault:
    """A way to fail. message: what the console must report. present: what the host then has of its payload."""

    name: str
    begin: Callable[[Cloud], None]
    message: Callable[[Cloud], str]
    present: str = ""


def throttled(cloud: Cloud) -> str:
    return "ThrottlingException" if isinstance(cloud, Aws) else "HTTP 429"


def store_says(fault: Answer | None) -> Callable[[Cloud], None]:
    return lambda cloud: setattr(cloud, "store_fault", fault)


def forbidden(cloud: Cloud) -> None:
    cloud.store_fault = None
    cloud.deny(PAYLOAD.name)


def incomplete(cloud: Cloud) -> None:
    """Make the payload readable, without its secret in the bundle."""
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
class Observed:
    """What a host reported and had, by fault: text of its console since the previous fault, and what it had of its payload."""

    console: dict[str, str] = field(default_factory=dict)
    present: dict[str, str] = field(default_factory=dict)
    connections: dict[str, int] = field(default_factory=dict)
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
def observed(lab: Run, clouds: Mapping[str, Cloud]) -> Iterator[Mapping[str, Observed]]:
    """One host per cloud, in parallel, each through every fault and then to success."""
    with ExitStack() as stack:
        running: dict[str, Future[Observed]] = {}
        for name, cloud in clouds.items():
            stack.enter_context(served(cloud))
            stack.callback(hosts.delete, f"adapter-{name}")
        with ThreadPoolExecutor(len(clouds)) as pool:
            for number, (name, cloud) in enumerate(clouds.items(), FIRST_NUMBER):
                running[name] = pool.submit(lifecycle, f"adapter-{name}", number, cloud)
        yield {name: future.result() for name, future in running.items()}


def lifecycle(host: str, number: int, cloud: Cloud) -> Observed:
    """Boot a host whose store fails in every way, and then works."""
    lab, observed = datacentre.spec(), Observed()
    cloud.hold({PAYLOAD.name: PAYLOAD.packed(), "other": "value"})
    FAULTS[0].begin(cloud)
    user_data = render(PAYLOAD, cloud.adapter(), host)
    address = IPv4Network(lab.nodes)[number]
    hosts.create(HostSpec(host, "cloud", plan.CLOUD, str(address), user_data), lab)
    read = 0
    for fault in FAULTS:
        fault.begin(cloud)
        observed.console[fault.name] = until(host, read, fault.message(cloud))
        read += len(observed.console[fault.name])
        observed.present[fault.name] = payload_parts(host)
        observed.connections[fault.name] = cloud.connections
    cloud.metadata_fault = None
    cloud.hold({PAYLOAD.name: PAYLOAD.packed(), SECRET: "the key"})
    observed.end = until(host, read, "everything is in place and started")
    observed.secret = hosts.run(host, ["cat", "/run/probe"]).stdout
    observed.journal = hosts.run(host, ["journalctl", "-u", "menagerie-boot", "-o", "cat", "--no-pager"]).stdout
    return observed


def until(host: str, heard: int, words: str) -> str:
    """Return the console's text from `heard` on, when a line contains `words`; everything if none does in time."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        text = hosts.console(host).read_text(errors="replace")[heard:]
        if "\n" in text.partition(words)[2] or time.monotonic() > deadline:
            return text
        time.sleep(0.1)


def payload_parts(host: str) -> str:
    """Return what a host has of its payload."""
    look = (
        "[ ! -e /etc/systemd/system/probe.service ] || echo unit file; [ ! -e /etc/probe/key ] || echo secret; "
        "systemctl is-active --quiet probe.service && echo unit started; [ ! -e /run/probe ] || echo unit ran"
    )
    return hosts.run(host, ["sh", "-c", look]).stdout.strip()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_console_reports_the_fault(
    observed: Mapping[str, Observed], clouds: Mapping[str, Cloud], name: str, fault: Fault
) -> None:
    assert fault.message(clouds[name]) in observed[name].console[fault.name]
    assert observed[name].console[fault.name].count("FAILED at") == 1


@pytest.mark.parametrize("name", NAMES)
def test_nothing_starts_before_everything_is_present(observed: Mapping[str, Observed], name: str) -> None:
    assert observed[name].present == {fault.name: fault.present for fault in FAULTS}


@pytest.mark.parametrize("name", NAMES)
def test_a_host_retries_after_every_fault(observed: Mapping[str, Observed], name: str) -> None:
    counts = list(observed[name].connections.values())
    assert counts == sorted(set(counts))


@pytest.mark.parametrize("name", NAMES)
def test_a_host_continues_when_its_store_recovers(observed: Mapping[str, Observed], name: str) -> None:
    assert "probe.service is up" in observed[name].end
    assert observed[name].secret == "the key"


@pytest.mark.parametrize("name", NAMES)
def test_the_journal_reports_the_same_and_neither_contains_a_secret(
    observed: Mapping[str, Observed], name: str
) -> None:
    console = "".join([*observed[name].console.values(), observed[name].end])
    lines = [line for line in observed[name].journal.splitlines() if line.startswith("menagerie-boot: ")]
    assert len(lines) > len(FAULTS)
    assert [line for line in lines if line.strip() not in console] == []
    assert "the key" not in console + observed[name].journal
