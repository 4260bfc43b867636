"""Who asks, what that identity may do, and what the project must have: enabled services, free names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from clients.clouds import CallError
from clients.clouds.gcp_reader import GoogleReader
from cluster.spec import Cluster
from cluster.storage import has_file
from operations.doctor.model import Answer, Question, ok, unknown, wrong
from stacks.gcp.permissions import GIVEN, by_type
from stacks.gcp.storage import ARTEFACTS, AUDIT, BACKUPS, LOGS
from stacks.gcp.tags import bucket_name, named, role_id

SERVICES = (
    "compute.googleapis.com",
    "dns.googleapis.com",
    "cloudkms.googleapis.com",
    "secretmanager.googleapis.com",
    "storage.googleapis.com",
    "iam.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "logging.googleapis.com",
    "servicedirectory.googleapis.com",
    "serviceusage.googleapis.com",
)
"""Services that every cluster needs, as docs/start/google-cloud.md enables them."""
_FILE = "file.googleapis.com"
_MANAGER, _USAGE = "https://cloudresourcemanager.googleapis.com/v3", "https://serviceusage.googleapis.com/v1"
_COMPUTE, _STORAGE = "https://compute.googleapis.com/compute/v1", "https://storage.googleapis.com/storage/v1"
_IAM = "https://iam.googleapis.com/v1"
_SHOWN = 6
_GRANTS = frozenset({"resourcemanager.projects.getIamPolicy", "resourcemanager.projects.setIamPolicy"})
"""In a role of their own, which is granted with a condition (`stacks.gcp.permissions`)."""
_OF_VPN = ("haVpnGateway", "externalVpnGateway", "vPNTunnel", "routerInterface", "routerPeer", "routerRoutePolicy")
_OF_WORKERS = ("iAMCustomRole", "iAMMember")


def account_questions(cluster: Cluster, reader: GoogleReader) -> list[Question]:
    def question(group: str, name: str, ask: Any, call: str, right: str = "") -> Question:
        return Question(group, name, ask, (call,), (right,) if right else ())

    services = [*SERVICES, *([_FILE] if has_file(cluster.spec) else [])]
    listed = [
        question(
            "account",
            "identity",
            lambda: _who(reader),
            "cloudresourcemanager.projects.get",
            "resourcemanager.projects.get",
        ),
        question(
            "account", "rights", lambda: _rights(cluster, reader), "cloudresourcemanager.projects.testIamPermissions"
        ),
        question(
            "registrations",
            "services",
            lambda: _services(reader, services),
            "serviceusage.services.batchGet",
            "serviceusage.services.get",
        ),
        question("names", "network", lambda: _network(cluster, reader), "compute.networks.get", "compute.networks.get"),
        question("names", "buckets", lambda: _buckets(cluster, reader), "storage.buckets.get", "storage.buckets.get"),
    ]
    if cluster.spec.cloud_workers:
        listed.append(
            question("names", "roles", lambda: _roles(cluster, reader), "iam.projects.roles.get", "iam.roles.get")
        )
    return listed


def _who(reader: GoogleReader) -> Iterator[Answer]:
    project = reader.get(f"{_MANAGER}/projects/{reader.project}")
    who = reader.who or "a person's login"
    text = f"{who} in project {reader.project}, which is {project.get('state')}"
    if project.get("state") == "ACTIVE":
        yield ok(text)
    else:
        yield wrong(text, "gcloud projects list")


def _rights(cluster: Cluster, reader: GoogleReader) -> Iterator[Answer]:
    every = by_type()
    needed = sorted({permission for type_ in _types(cluster, every) for permission in every[type_]})
    granted = reader.granted(needed)
    lacking = [permission for permission in needed if permission not in granted]
    if not lacking:
        yield ok(f"all {len(needed)} permissions on the project; conditions of grants are not listed")
        return
    shown = ", ".join(lacking[:_SHOWN]) + (f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else "")
    member = f"serviceAccount:{reader.who}" if reader.who else "user:$(gcloud config get account)"
    commands = []
    if set(lacking) - _GRANTS:
        commands += _grant(reader.project, member, "menagerieOperator", "gcp-role.yaml")
    if set(lacking) & _GRANTS:
        condition = f'"$(.venv/bin/python -m stacks.gcp.permissions condition {reader.project} {cluster.name})"'
        commands += [
            f"printf 'title: clusters own roles\\nexpression: \"%s\"\\n' {condition} > condition.yaml",
            *_grant(
                reader.project,
                member,
                "menagerieGranter",
                "gcp-role-grants.yaml",
                " --condition-from-file=condition.yaml",
            ),
        ]
    yield wrong(f"{len(lacking)} of {len(needed)} permissions are missing: {shown}", *commands)


def _grant(project: str, member: str, role: str, file: str, more: str = "") -> list[str]:
    return [
        f"gcloud iam roles create {role} --project={project} --file=docs/{file}",
        f"gcloud projects add-iam-policy-binding {project} --member={member} --role=projects/{project}/roles/{role}{more}",
    ]


def _types(cluster: Cluster, every: Iterable[str]) -> Iterable[str]:
    """Return the types of resources that this cluster may need: not those of settings that its spec lacks."""
    without: list[str] = []
    if not any(site.vpn for site in cluster.spec.sites.values()):
        without += _OF_VPN
    if not cluster.spec.cloud_workers:
        without += _OF_WORKERS
    return [type_ for type_ in every if not type_.partition("/")[2].startswith(tuple(without) or "?")]


def _services(reader: GoogleReader, services: list[str]) -> Iterator[Answer]:
    project = reader.project
    names = [f"projects/{project}/services/{service}" for service in services]
    batch = reader.get(f"{_USAGE}/projects/{project}/services:batchGet", names=names)
    states = {each["name"].rpartition("/")[2]: each.get("state") for each in batch.get("services", ())}
    off = [service for service in services if states.get(service) != "ENABLED"]
    if off:
        yield wrong(f"not enabled: {', '.join(off)}", f"gcloud services enable {' '.join(off)} --project={project}")
    else:
        yield ok(f"all {len(services)} are enabled")


def _network(cluster: Cluster, reader: GoogleReader) -> Iterator[Answer]:
    name = named(cluster, "network")
    if _is_free(reader, f"{_COMPUTE}/projects/{reader.project}/global/networks/{name}"):
        yield ok(f"{name} is free")
    else:
        command = f"gcloud compute networks describe {name} --project={reader.project}"
        yield wrong(f"{name} exists: this cluster is built, or an earlier run left it", command)


def _buckets(cluster: Cluster, reader: GoogleReader) -> Iterator[Answer]:
    for purpose in (BACKUPS, AUDIT, LOGS, ARTEFACTS):
        name = bucket_name(cluster.name, purpose, reader.project)
        try:
            free = _is_free(reader, f"{_STORAGE}/b/{name}")
        except CallError as error:
            if not error.refused:
                raise
            text = f"{name} is another project's, or this identity lacks storage.buckets.get"
            yield unknown(text, about=purpose)
            continue
        if free:
            yield ok(f"{name} is free", about=purpose)
        else:
            command = f"gcloud storage buckets delete gs://{name}  # refuses if anything is in it"
            yield wrong(f"{name} exists: this cluster is built, or an earlier run left it", command, about=purpose)


def _roles(cluster: Cluster, reader: GoogleReader) -> Iterator[Answer]:
    """A deleted role keeps its ID for 44 days ("Create and manage custom roles"), so a new cluster of that name fails."""
    for name in GIVEN:
        id_ = role_id(cluster.name, name)
        try:
            role = reader.get(f"{_IAM}/projects/{reader.project}/roles/{id_}")
        except CallError as error:
            if not error.missing:
                raise
            yield ok(f"{id_} is free", about=name)
            continue
        if role.get("deleted"):
            command = f"gcloud iam roles undelete {id_} --project={reader.project}"
            yield wrong(
                f"{id_} was deleted, and keeps its ID for 44 days; undeleted, it must be imported", command, about=name
            )
        else:
            command = f"gcloud iam roles describe {id_} --project={reader.project}"
            yield wrong(f"{id_} exists: this cluster is built, or an earlier run left it", command, about=name)


def _is_free(reader: GoogleReader, url: str) -> bool:
    try:
        reader.get(url)
    except CallError as error:
        if error.missing:
            return True
        raise
    return False
