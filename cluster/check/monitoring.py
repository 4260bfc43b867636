"""MON-001 to MON-006: metrics that don't fit their Prometheus, and alerts that reach nobody."""

from __future__ import annotations

import difflib
import ipaddress
from collections.abc import Iterator
from urllib.parse import urlsplit

from cluster.check.finding import Finding, Rule, Subject
from cluster.counts import gibibytes
from cluster.document import Where, show
from cluster.metrics import sizes
from cluster.metrics.kept import known
from cluster.quantities import format_duration_ms

_PLACE: Where = ("monitoring",)
_BLOCK_MS = 2 * 3_600_000
"""Time that a block of Prometheus holds ("Storage")."""
_LARGEST = 3
"""Jobs that a message names."""


def series(subject: Subject) -> Iterator[Finding]:
    """The series of all jobs fit one Prometheus."""
    settings = subject.spec.monitoring
    if not settings.enabled:
        return
    jobs = sizes.sizes(subject.cluster)
    expected = sizes.total(jobs)
    if expected > settings.max_series:
        largest = sorted(jobs, key=lambda size: -size.series)[:_LARGEST]
        shares = ", ".join(f"{size.job.name} {size.series:,}" for size in largest)
        message = f"the cluster would have {expected:,} series of metrics, more than monitoring.max_series {settings.max_series:,}"
        hint = (
            f"keep fewer metrics (monitoring.keep), write monitoring.expected_pods, or write max_series: {expected} if your Prometheus has "
            f"{gibibytes(sizes.memory(expected))} of memory"
        )
        yield Finding((*_PLACE, "max_series"), message, hint, notes=(f"the largest jobs: {shares}",))


def memory(subject: Subject) -> Iterator[Finding]:
    """Prometheus has memory for the series."""
    settings = subject.spec.monitoring
    if settings.enabled and settings.memory is not None:
        expected = sizes.total(sizes.sizes(subject.cluster))
        needed = sizes.memory(expected)
        if needed > settings.memory:
            where = (*_PLACE, "memory")
            message = f"{show(where)} is {gibibytes(settings.memory)}, but {expected:,} series need {gibibytes(needed)}"
            yield Finding(where, message, f"give it {gibibytes(needed)}, or keep fewer metrics (monitoring.keep)")


def retention(subject: Subject) -> Iterator[Finding]:
    """Samples of the whole retention fit the disk."""
    settings = subject.spec.monitoring
    where = (*_PLACE, "retention")
    kept = format_duration_ms(settings.retention)
    if settings.enabled and settings.retention < _BLOCK_MS:
        message = f"{show(where)} {kept} is shorter than the two hours of one block of Prometheus"
        yield Finding(where, message, "write 2h or more")
    elif settings.enabled and settings.disk is not None:
        needed = sizes.disk(sizes.sizes(subject.cluster), settings.retention)
        if needed > settings.disk:
            message = f"samples of {kept} need {gibibytes(needed)}, but monitoring.disk is {gibibytes(settings.disk)}"
            days = settings.disk * settings.retention // needed // 86_400_000
            hint = f"give it {gibibytes(needed)}" + (f", or write retention: {days}d" if days else "")
            yield Finding(where, message, hint, also=((*_PLACE, "disk"),))


def kept(subject: Subject) -> Iterator[Finding]:
    """Metrics to keep are in a catalogue, so that their series are counted."""
    for index, name in enumerate(subject.spec.monitoring.keep):
        if name not in known():
            where: Where = (*_PLACE, "keep", index)
            close = difflib.get_close_matches(name, sorted(known()), n=1)
            hint = f"did you mean {close[0]}?" if close else "docs/reference/metrics.md lists the metrics"
            message = f"no catalogue has a metric {name}, so its series can't be counted"
            yield Finding(where, message, f"{hint}; --allow-unknown accepts it", unknown=True)


def receivers(subject: Subject) -> Iterator[Finding]:
    """Each receiver gets alerts once."""
    settings, earlier = subject.spec.monitoring, dict[str, str]()
    for name, receiver in settings.receivers.items():
        where: Where = (*_PLACE, "receivers", name, "url")
        if receiver.url in earlier:
            message = f"{show(where)} is that of {earlier[receiver.url]}, which would get alerts twice"
            yield Finding(where, message, "remove one of them")
        earlier[receiver.url] = name
    if settings.dead_mans_switch in earlier:
        where = (*_PLACE, "dead_mans_switch")
        message = (
            f"{show(where)} is the receiver {earlier[settings.dead_mans_switch]}, which would get an alert without end"
        )
        yield Finding(where, message, "write the URL of a service that alerts when nothing is posted to it any more")


def silence(subject: Subject) -> Iterator[Finding]:
    """Somebody notices when no alert can be sent any more, and nobody else reads alerts on the way."""
    settings = subject.spec.monitoring
    if settings.receivers and settings.dead_mans_switch is None:
        message = "there are receivers, but nobody notices when no alert can be sent any more"
        hint = "add dead_mans_switch: the URL of a service that alerts when nothing is posted to it"
        yield Finding((*_PLACE, "receivers"), message, hint, severity="warning")
    places: list[tuple[Where, str]] = [
        ((*_PLACE, "receivers", name, "url"), receiver.url) for name, receiver in settings.receivers.items()
    ]
    for where, url in [*places, ((*_PLACE, "dead_mans_switch"), settings.dead_mans_switch or "")]:
        if url.startswith("http://") and not _is_private(urlsplit(url).hostname or ""):
            message = f"{show(where)} isn't encrypted: names of hosts and teams could be read on the way"
            yield Finding(where, message, f"write {url.replace('http:', 'https:', 1)}", severity="warning")


def _is_private(host: str) -> bool:
    """Return whether a URL's host is a private address, so that nothing leaves your own networks."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False


RULES: tuple[tuple[str, Rule], ...] = (
    ("MON-001", series),
    ("MON-002", retention),
    ("MON-003", kept),
    ("MON-004", memory),
    ("MON-005", receivers),
    ("MON-006", silence),
)
