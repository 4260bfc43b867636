"""What the types of Google Cloud have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from sandbox.simcloud.gcp.words import PREVENTED, conflict, invalid
from sandbox.simcloud.identifiers import digest, number
from sandbox.simcloud.refusals import networks
from sandbox.simcloud.rules import Call, Naming, Reason, Reference, ResourceType, Rule, Saying
from sandbox.simcloud.values import Properties, Value, at
from sandbox.simcloud.world import Record

# RFC 1035, as for all names in Compute Engine.
NAME = Naming(
    "name",
    re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"),
    63,
    "1 to 63 of a-z, 0-9 and hyphens, a letter first, no hyphen last",
)
GLOBAL, REGIONAL, ZONAL = ("project",), ("project", "region"), ("project", "zone")

_LINK = "https://www.googleapis.com/compute/v1/"

# From "Requirements for labels", Resource Manager. Letters of scripts without capitals would be allowed as well.
_LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_MOST_LABELS = 64

Make = Callable[[Call], object]


def path(collection: str) -> Callable[[Call], str]:
    """Return a function for IDs like ``projects/p/regions/r/subnetworks/name``; global without a region or zone."""

    def identify(call: Call) -> str:
        scope = "global"
        if "zone" in call.type.where:
            scope = f"zones/{last(call.text('zone'))}"
        elif "region" in call.type.where:
            scope = f"regions/{last(call.text('region'))}"
        return f"projects/{call.text('project')}/{scope}/{collection}/{call.name}"

    return identify


def bare(call: Call, text: str) -> str:
    """Return a reference without the API's address, so that links and IDs of a resource are equal."""
    return re.sub(r"^(https://[^/]+)?/?(compute/(v1|beta)/)?", "", text)


def last(text: str) -> str:
    """Return the name at the end of an ID or link."""
    return text.rpartition("/")[2]


def link(call: Call) -> str:
    """Return the self link of the resource with the call's ID."""
    return _LINK + call.id


def project_number(project: str) -> str:
    """Return a project's number."""
    return number(project, 12)


def chosen(call: Call, more: Mapping[str, Make]) -> Properties:
    """Return `more` by name, which inputs override."""
    return {name: call.inputs.get(name) or make(call) for name, make in more.items()}


def labels(call: Call) -> Properties:
    """Return a resource's labels, added to the provider's."""
    combined = {**call.settings.tags, **(call.inputs.get("labels") or {})}
    return {"effectiveLabels": combined, "pulumiLabels": combined}


def outputs(always: Mapping[str, Make] | None = None, **more: Make) -> Callable[[Call], Properties]:
    """Return a function for outputs: self link and times, which everything in Compute Engine has, and more.

    more: by name, overridden by inputs. always: by name, never overridden.
    """

    def compute_outputs(call: Call) -> Properties:
        return {
            "selfLink": link(call),
            "creationTimestamp": "2026-01-01T00:00:00.000-00:00",
            "fingerprint": digest(repr(sorted(call.inputs.items(), key=str)))[:12],
            **labels(call),
            **chosen(call, more),
            **{name: make(call) for name, make in (always or {}).items()},
        }

    return compute_outputs


def numbered(call: Call) -> str:
    """Return the number that the API gives a resource in addition to its name."""
    return number(call.id)


def kept(call: Call, name: str, make: Callable[[], object]) -> object:
    """Return an output that a resource keeps for life: the present value, or a new one."""
    return call.old.outputs[name] if call.old and call.old.outputs.get(name) else make()


def labelled(call: Call) -> None:
    """Check the characters and the number of labels."""
    combined = labels(call)["effectiveLabels"]
    if len(combined) > _MOST_LABELS:
        raise invalid("labels", str(len(combined)), "Too many labels.", f"at most {_MOST_LABELS} fit")
    for key, value in combined.items():
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
    computed: Mapping[str, Make] | None = None,
    always: Mapping[str, Make] | None = None,
    implied: Callable[[Properties], Iterable[tuple[str, str]]] = lambda _: (),
    identify: Callable[[Call], str] | None = None,
    says: Mapping[Reason, Saying] | None = None,
) -> ResourceType:
    """Return a type of Compute Engine, from `pulumi_gcp.compute`'s token, the API's collection, and the type's rules."""
    return ResourceType(
        token=f"gcp:compute/{token[0].lower()}{token[1:]}:{token}",
        noun=noun,
        identify=identify or path(collection),
        outputs=outputs(always, **(computed or {})),
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
    """Return a rule: exactly one of these properties is set (terraform-plugin-sdk's ExactlyOneOf)."""
    names = ",".join(properties)

    def rule(call: Call) -> None:
        given = [name for name in properties if call.inputs.get(name) not in (None, [], {}, "")]
        if len(given) != 1:
            problem = f"only one of `{names}` can be specified" if given else f"one of `{names}` must be specified"
            raise conflict(given[0] if given else properties[0], f"{problem}", f"give one of {names}")

    return rule


def between(path_: str, least: int, most: int) -> Rule:
    """Return a rule: numbers at a path are in a range."""

    def rule(call: Call) -> None:
        for value in at(call.inputs, path_):
            if not least <= int(value) <= most:
                raise invalid(
                    path_, str(value), f"Must be greater than or equal to {least} and less than or equal to {most}.",
                    f"use {least} to {most}",
                )  # fmt: skip

    return rule


def one_network(one: str, other: str) -> Rule:
    """Return a rule: the two references lead to the same network."""

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
    """Return the ID of the network that a resource refers to."""
    matches = call.world.find(("gcp:compute/network:Network",), bare(call, str(record.inputs.get("network", ""))))
    return matches[0].id if matches else ""


def priority(call: Call) -> None:
    """Check that a priority of firewall rules and routes has 16 bits."""
    between("priority", 0, 65535)(call)


def is_in(text: str, range_: str) -> bool:
    """Whether an address or range is in a range."""
    return all(inner.subnet_of(outer) for inner in networks([text]) for outer in networks([range_]))


def generic_type(token: str) -> ResourceType:
    """Return a type without rules: it has a name and a self link, and any change is an update."""
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
