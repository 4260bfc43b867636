"""What types of Google Cloud have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from sandbox.simcloud.gcp.words import PREVENTED, conflict, invalid
from sandbox.simcloud.identifiers import digest, number
from sandbox.simcloud.refusals import networks
from sandbox.simcloud.rules import Call, Naming, Reason, Reference, ResourceType, Rule, Saying
from sandbox.simcloud.values import Properties, Value, at
from sandbox.simcloud.world import Record

# RFC 1035, as every name of Compute Engine.
NAME = Naming(
    "name",
    re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"),
    63,
    "1 to 63 of a-z, 0-9 and hyphens, a letter first, no hyphen last",
)
GLOBAL, REGIONAL, ZONAL = ("project",), ("project", "region"), ("project", "zone")

_LINK = "https://www.googleapis.com/compute/v1/"

# "Requirements for labels", Resource Manager; letters of any script that has no capitals are letters.
_LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_MOST_LABELS = 64

Make = Callable[[Call], object]


def path(collection: str) -> Callable[[Call], str]:
    """Ids like ``projects/p/regions/r/subnetworks/name``; global without a region or zone."""

    def identify(call: Call) -> str:
        scope = "global"
        if "zone" in call.type.where:
            scope = f"zones/{last(call.text('zone'))}"
        elif "region" in call.type.where:
            scope = f"regions/{last(call.text('region'))}"
        return f"projects/{call.text('project')}/{scope}/{collection}/{call.name}"

    return identify


def bare(call: Call, text: str) -> str:
    """A reference without the address of an API: links and ids of a thing are one."""
    return re.sub(r"^(https://[^/]+)?/?(compute/(v1|beta)/)?", "", text)


def last(text: str) -> str:
    """The name at the end of an id or link."""
    return text.rpartition("/")[2]


def link(call: Call) -> str:
    """The self link of what has the call's id."""
    return _LINK + call.id


def project_number(project: str) -> str:
    """The number that a project has beside its name."""
    return number(project, 12)


def chosen(call: Call, more: Mapping[str, Make]) -> Properties:
    """`more` by name, which an input overrides."""
    return {name: call.inputs.get(name) or make(call) for name, make in more.items()}


def labels(call: Call) -> Properties:
    """The labels of a resource with those of its provider."""
    every = {**call.settings.tags, **(call.inputs.get("labels") or {})}
    return {"effectiveLabels": every, "pulumiLabels": every}


def outputs(always: Mapping[str, Make] | None = None, **more: Make) -> Callable[[Call], Properties]:
    """The self link and times that everything of Compute Engine has, and `more` by name, which an input overrides,
    and `always` whatever the inputs."""

    def made(call: Call) -> Properties:
        return {
            "selfLink": link(call),
            "creationTimestamp": "2026-01-01T00:00:00.000-00:00",
            "fingerprint": digest(repr(sorted(call.inputs.items(), key=str)))[:12],
            **labels(call),
            **chosen(call, more),
            **{name: make(call) for name, make in (always or {}).items()},
        }

    return made


def numbered(call: Call) -> str:
    """The number that the API gives a resource beside its name."""
    return number(call.id)


def kept(call: Call, name: str, make: Callable[[], object]) -> object:
    """An output that a resource keeps for life: as it is, or made."""
    return call.old.outputs[name] if call.old and call.old.outputs.get(name) else make()


def labelled(call: Call) -> None:
    """Labels have the characters and the number that are allowed."""
    every = labels(call)["effectiveLabels"]
    if len(every) > _MOST_LABELS:
        raise invalid("labels", str(len(every)), "Too many labels.", f"at most {_MOST_LABELS} fit")
    for key, value in every.items():
        if not _LABEL_KEY.fullmatch(key):
            raise invalid(
                "labels",
                "",
                f"Label key '{key}' violates format constraints. The key must start with a lowercase character, can "
                "only contain lowercase letters, numeric characters, underscores and dashes. The key can be at most "
                "63 characters long.",
                "change the key",
            )
        if not _LABEL_VALUE.fullmatch(str(value)):
            raise invalid(
                "labels",
                "",
                f"Label value '{value}' violates format constraints. The value can only contain lowercase letters, "
                "numeric characters, underscores and dashes. The value can be at most 63 characters long.",
                f"change the value of {key}",
            )


def compute(
    token: str,
    noun: str,
    collection: str,
    *,
    where: tuple[str, ...],
    replace_on: tuple[str, ...] = (),
    replace_if: Mapping[str, Callable[[Value, Value], bool]] | None = None,
    references: tuple[Reference, ...] = (),
    refuse: tuple[Rule, ...] = (),
    refuse_deletion: tuple[Rule, ...] = (),
    made: Mapping[str, Make] | None = None,
    always: Mapping[str, Make] | None = None,
    implied: Callable[[Properties], Iterable[tuple[str, str]]] = lambda _: (),
    identify: Callable[[Call], str] | None = None,
    says: Mapping[Reason, Saying] | None = None,
) -> ResourceType:
    """A type of Compute Engine: `pulumi_gcp.compute`'s token, the API's collection, and what is its own."""
    return ResourceType(
        token=f"gcp:compute/{token[0].lower()}{token[1:]}:{token}",
        noun=noun,
        identify=identify or path(collection),
        outputs=outputs(always, **(made or {})),
        naming=NAME,
        where=where,
        replace_on=("name", *replace_on),
        replace_if=replace_if or {},
        references=references,
        refuse=(labelled, *refuse),
        refuse_deletion=refuse_deletion,
        implied=implied,
        protected_by={"deletionPolicy": "PREVENT"},
        says={**PREVENTED, **(says or {})},
    )


def one_of(*properties: str) -> Rule:
    """Exactly one of these is given: terraform-plugin-sdk's ExactlyOneOf."""
    names = ",".join(properties)

    def rule(call: Call) -> None:
        given = [name for name in properties if call.inputs.get(name) not in (None, [], {}, "")]
        if len(given) != 1:
            what = f"only one of `{names}` can be specified" if given else f"one of `{names}` must be specified"
            raise conflict(given[0] if given else properties[0], f"{what}", f"give one of {names}")

    return rule


def between(path_: str, least: int, most: int) -> Rule:
    """Numbers at a path lie in a range."""

    def rule(call: Call) -> None:
        for value in at(call.inputs, path_):
            if not least <= int(value) <= most:
                raise invalid(
                    path_, str(value), f"Must be greater than or equal to {least} and less than or equal to {most}.",
                    f"use {least} to {most}",
                )  # fmt: skip

    return rule


def one_network(one: str, other: str) -> Rule:
    """What two references name lies in one network."""

    def rule(call: Call) -> None:
        first, second = call.target(one), call.target(other)
        if first and second and network_of(call, first) != network_of(call, second):
            raise invalid(
                other,
                call.text(other),
                f"It is not in the network of '{first.id}'.",
                f"{one} and {other} must share one",
            )

    return rule


def network_of(call: Call, record: Record) -> str:
    """The id of the network that a resource says it is in."""
    found = call.world.find(("gcp:compute/network:Network",), bare(call, str(record.inputs.get("network", ""))))
    return found[0].id if found else ""


def priority(call: Call) -> None:
    """Priorities of firewall rules and routes are numbers of 16 bits."""
    between("priority", 0, 65535)(call)


def is_in(text: str, range_: str) -> bool:
    """Whether an address or range lies in a range."""
    return all(inner.subnet_of(outer) for inner in networks([text]) for outer in networks([range_]))


def generic_type(token: str) -> ResourceType:
    """A type without rules: a name, a self link, and any change is an update."""
    collection = token.rpartition(":")[2]
    return ResourceType(
        token=token,
        noun=collection,
        identify=lambda call: call.fresh(
            lambda digits: f"projects/{call.settings.account}/{collection}/{call.text('name') or digits[:8]}"
        ),
        outputs=outputs(),
        is_proven=False,
    )
