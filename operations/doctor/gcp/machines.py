"""Quotas, machine types and images of a region of Google Cloud, against the plan."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clients.clouds import CallError
from clients.clouds.gcp_reader import GoogleReader
from cluster import catalogue
from cluster.needs import Use, gpus, images, machine_types, vcpus
from cluster.spec import Cluster
from operations.doctor import places
from operations.doctor.model import Answer, Once, Question, ok, wrong
from operations.doctor.quotas import Need, Quota, compared, needs_of, not_known
from stacks.gcp import hosts

_COMPUTE = "https://compute.googleapis.com/compute/v1"
_COMMON = frozenset({"e2", "f1", "g1", "n1"})
"""Series whose vCPUs the quota CPUS counts; others have one of their own ("Allocation quotas")."""
_ARCHITECTURES = {"X86_64": "amd64", "ARM64": "arm64"}
_ALL_REGIONS = "all regions"
_REGION_RIGHT, _PROJECT_RIGHT = "compute.regions.get", "compute.projects.get"
_TYPES_RIGHT, _IMAGES_RIGHT = "compute.machineTypes.get", "compute.images.getFromFamily"


class Region:
    """A region's quotas, and those of the project, requested once."""

    def __init__(self, cluster: Cluster, reader: GoogleReader, used: Sequence[Use]) -> None:
        self.cluster, self.reader, self.used = cluster, reader, used
        self.name = cluster.spec.control_plane.region
        self.quotas = Once(lambda: self._quotas(f"{self.root}/regions/{self.name}", self.name))
        self.common = Once(lambda: self._quotas(self.root, _ALL_REGIONS))

    @property
    def root(self) -> str:
        return f"{_COMPUTE}/projects/{self.reader.project}"

    def _quotas(self, url: str, place: str) -> Mapping[str, Quota]:
        listed = self.reader.get(url).get("quotas", ())
        return {
            each["metric"]: Quota(each["metric"], "", place, each.get("limit", 0), each.get("usage", 0))
            for each in listed
        }


def machine_questions(region: Region) -> list[Question]:
    quotas = (_REGION_RIGHT, _PROJECT_RIGHT)
    return [
        Question("quotas", "vCPUs", lambda: _vcpus(region), quotas, quotas),
        *(
            [Question("quotas", "GPUs", lambda: _gpus(region), quotas, quotas)]
            if any(gpus(region.cluster.spec, use.machine)[1] for use in region.used)
            else []
        ),
        Question("quotas", "networks", lambda: _networks(region), (_PROJECT_RIGHT,), (_PROJECT_RIGHT,)),
        Question("places", "zones", lambda: _zones(region), ("compute.zones.get",), ("compute.zones.get",)),
        Question("places", "machine types", lambda: _offered(region), (_TYPES_RIGHT,), (_TYPES_RIGHT,)),
        Question(
            "images",
            "image",
            lambda: _images(region),
            (_IMAGES_RIGHT, "compute.images.get"),
            (_IMAGES_RIGHT, "compute.images.get"),
        ),
    ]


def _counted(region: Region) -> list[Use]:
    return [use for use in region.used if not use.reserved]  # a reservation took its quota when it was made


def _vcpus(region: Region) -> Iterator[Answer]:
    by_metric: dict[str, list[Use]] = {}
    for use in _counted(region):
        series = use.machine.split("-")[0]
        by_metric.setdefault(
            _metric(region, "CPUS" if series in _COMMON else f"{series.upper()}_CPUS", use), []
        ).append(use)
    for metric, uses in by_metric.items():
        needs = needs_of(uses, lambda use: vcpus(region.cluster.spec, use.machine) or 0)
        yield _against(region, region.quotas(), metric, "vCPUs", needs)
    needs = needs_of(_counted(region), lambda use: vcpus(region.cluster.spec, use.machine) or 0)
    yield _against(region, region.common(), "CPUS_ALL_REGIONS", "vCPUs", needs)


def _gpus(region: Region) -> Iterator[Answer]:
    by_metric: dict[str, list[Use]] = {}
    for use in _counted(region):
        if gpus(region.cluster.spec, use.machine)[1]:
            by_metric.setdefault(_metric(region, _gpu_metric(region, use.machine), use), []).append(use)
    every = [use for uses in by_metric.values() for use in uses]

    def number(use: Use) -> int:
        return gpus(region.cluster.spec, use.machine)[1]

    for metric, uses in by_metric.items():
        yield _against(region, region.quotas(), metric, "GPUs", needs_of(uses, number))
    yield _against(region, region.common(), "GPUS_ALL_REGIONS", "GPUs", needs_of(every, number))


def _gpu_metric(region: Region, machine: str) -> str:
    kind, _ = gpus(region.cluster.spec, machine)
    entry = catalogue.of(region.cluster.spec.control_plane.cloud).machine_types[machine]
    memory = entry.series.gpu.memory_gb if entry.series and entry.series.gpu else None
    larger = "_80GB" if kind == "A100" and memory == 80 else ""
    return f"NVIDIA_{kind.upper()}{larger}_GPUS"


def _metric(region: Region, metric: str, use: Use) -> str:
    """Return the metric that counts a machine. Without a preemptible quota, spot machines take the ordinary one."""
    preemptible = "PREEMPTIBLE_CPUS" if metric.endswith("_CPUS") or metric == "CPUS" else f"PREEMPTIBLE_{metric}"
    held = region.quotas().get(preemptible)
    return preemptible if use.spot and held is not None and held.limit > 0 else metric


def _networks(region: Region) -> Iterator[Answer]:
    yield _against(region, region.common(), "NETWORKS", "networks", [Need("", 1, 1, 1)])


def _against(region: Region, quotas: Mapping[str, Quota], metric: str, unit: str, needs: Sequence[Need]) -> Answer:
    project = region.reader.project
    held = quotas.get(metric)
    if held is None or any(need.each == 0 for need in needs):
        why = (
            f"no quota {metric} is listed"
            if held is None
            else "the catalogue does not know a machine type of this plan"
        )
        command = f"gcloud beta quotas info list --service=compute.googleapis.com --project={project}"
        return not_known(metric, needs, why, command)
    everywhere = held.place == _ALL_REGIONS
    id_ = f"{metric.replace('_', '-')}-per-project" + ("" if everywhere else "-region")
    dimension = "" if everywhere else f" --dimensions=region={region.name}"

    def more(size: int) -> list[str]:
        return [
            (
                f"gcloud beta quotas preferences create --service=compute.googleapis.com --project={project} "
                f"--quota-id={id_} --preferred-value={size}{dimension}"
            )
        ]

    return compared(Quota(held.name, unit, held.place, held.limit, held.used), needs, more)


def _zones(region: Region) -> Iterator[Answer]:
    for zone in map(str, region.cluster.spec.control_plane.zones):
        zone_resource = _resource(region, f"{region.root}/zones/{zone}")
        if zone_resource is None:
            command = f"gcloud compute zones list --filter=region:{region.name} --project={region.reader.project}"
            yield wrong("there is no such zone", command, about=zone)
        elif zone_resource.get("status") != "UP":
            yield wrong(f"it is {zone_resource.get('status')}", f"gcloud compute zones describe {zone}", about=zone)
        else:
            yield ok("it is up", about=zone)


def _offered(region: Region) -> Iterator[Answer]:
    zones = {zone for use in region.used for zone in use.zones}
    offers = {
        machine: {
            zone for zone in sorted(zones) if _resource(region, f"{region.root}/zones/{zone}/machineTypes/{machine}")
        }
        for machine in machine_types(region.used)
    }

    def where(machine: str) -> str:
        return f"gcloud compute machine-types list --filter=name={machine} --project={region.reader.project}"

    yield from places.answers(region.used, lambda machine: offers[machine], where)


def _images(region: Region) -> Iterator[Answer]:
    by_name: dict[str, list[Use]] = {}
    for image, uses in images(region.used).items():
        for use in uses:
            by_name.setdefault(hosts.image(image, use.machine), []).append(use)
    for name, uses in by_name.items():
        yield _image(region, name, uses)


def _image(region: Region, name: str, used: Sequence[Use]) -> Answer:
    look = f"gcloud compute images list --filter=name~{name.rpartition('/')[2]} --project={region.reader.project}"
    image = _resource(region, f"{_COMPUTE}/{_path(region, name)}")
    if image is None:
        return wrong("there is no such image, or it is not shared with this identity", look, about=name)
    if image.get("status") != "READY":
        return wrong(f"{image.get('name')} is {image.get('status')}", look, about=name)
    if state := (image.get("deprecated") or {}).get("state"):
        return wrong(f"{image.get('name')} is {state}", look, about=name)
    architecture = _ARCHITECTURES.get(image.get("architecture", ""), "")
    known = catalogue.of(region.cluster.spec.control_plane.cloud).machine_types
    unfit = [use for use in used if use.machine in known and known[use.machine].arch not in (architecture, None)]
    if architecture and unfit:
        words = ", ".join(f"{use.what} ({use.machine})" for use in unfit)
        return wrong(f"it is for {architecture}, which {words} cannot boot", look, about=name)
    return ok(f"{image.get('name')}, {architecture or 'an architecture that is not stated'}", about=name)


def _path(region: Region, name: str) -> str:
    """Return an image's path, from any form that a spec may have: a name, a family, a link."""
    short = re.sub(r"^https://www\.googleapis\.com/compute/v1/", "", name)
    if short.startswith("projects/"):
        return short
    return f"projects/{region.reader.project}/global/images/{short}"


def _resource(region: Region, url: str) -> Any:
    """Return what is at a URL, None if there is nothing."""
    try:
        return region.reader.get(url)
    except CallError as error:
        if error.missing:
            return None
        raise
