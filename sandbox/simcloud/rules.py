"""The vocabulary that describes a cloud: types of resources, their names, references and refusals.

A cloud is a `Cloud`; a type is a `ResourceType`, one row of data. Whatever does not fit a row is a function of a `Call`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import count

from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.values import Properties, Value, at
from sandbox.simcloud.world import Record, World


class Reason(Enum):
    """Why a cloud refuses."""

    BAD_NAME = auto()
    TAKEN = auto()
    FULL = auto()
    MISSING = auto()
    GONE = auto()
    ELSEWHERE = auto()
    BAD_VALUE = auto()
    BAD_RANGE = auto()
    OUTSIDE = auto()
    OVERLAP = auto()
    FIXED = auto()
    PROTECTED = auto()
    IN_USE = auto()
    NO_ZONE = auto()
    NO_MACHINE = auto()
    THROTTLED = auto()


@dataclass(frozen=True)
class Saying:
    """A cloud's message for a refusal, and a way out.

    Both may use ``{noun}``, ``{name}``, ``{id}``, ``{type}``, ``{code}``, ``{region}``, ``{account}`` and the fields that
    the refusing function adds.
    """

    text: str
    way_out: str


class RefusalError(Exception):
    """The cloud refuses. The text is its message and a way out. property: the offending input, "" for none."""

    def __init__(self, text: str, property_: str = "") -> None:
        super().__init__(text)
        self.property = property_


@dataclass(frozen=True)
class Settings:
    """A provider's configuration. account: account, project or subscription. tags: added to every resource."""

    account: str = ""
    region: str = ""
    zone: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """A location for a resource. cloud: ``azure``, ``aws`` or ``gcp``."""

    cloud: str
    region: str
    zone: str | None = None
    machine: str | None = None


def _three_zones(cloud: str, region: str) -> Sequence[str]:
    """Return the three zones that most regions have."""
    if cloud == "azure":
        return ("1", "2", "3")
    separator = "-" if cloud == "gcp" else ""
    return [f"{region}{separator}{letter}" for letter in "abc"]


@dataclass(frozen=True)
class Offers:
    """What the clouds offer to an account, and what the account has.

    refuse: from a place to what is wrong with it, None for nothing. zones: the zones of (cloud, region).
    vcpus: the quota of running vCPUs in (cloud, region), of all families together, None for no limit.
    most: how many resources of (cloud, region, type) the account may have, None for no limit.
    services: whether the account has (cloud, service): a resource provider of Azure or a feature of one (`provider/feature`), an API
    of Google Cloud, the service-linked role of a service of AWS.
    images: whether the account may use (cloud, region, image), as a spec names it.
    slow_grants: how often a new grant is used in vain before it works, in place of the minutes that it takes.
    """

    refuse: Callable[[Place], str | None] = lambda _: None
    zones: Callable[[str, str], Sequence[str]] = _three_zones
    vcpus: Callable[[str, str], int | None] = lambda _, __: None
    most: Callable[[str, str, str], int | None] = lambda _, __, ___: None
    services: Callable[[str, str], bool] = lambda _, __: True
    images: Callable[[str, str, str], bool] = lambda _, __, ___: True
    slow_grants: int = 0


@dataclass(frozen=True)
class Naming:
    """The property that is a resource's name in the cloud.

    pattern, longest: the allowed characters and length. words: the cloud's description of them.
    within: names must be unique among resources with the same region and the same values of these properties; None when
    the ID already ensures it.
    """

    property: str
    pattern: re.Pattern[str]
    longest: int
    words: str
    within: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Reference:
    """A property that refers to another resource.

    path: of the property. types: that it may refer to. holds: the other cannot be deleted while this exists. local: both
    must be in one region. resolve: from (call, the property's value) to a text by which the other is known. optional: it
    may refer to something that is not here: a literal, or a resource of another owner.
    """

    path: str
    types: tuple[str, ...]
    holds: bool = True
    local: bool = True
    resolve: Callable[[Call, str], str] = lambda _, text: text
    optional: bool = False


Rule = Callable[["Call"], None]
"""Checks a call and raises `RefusalError`."""


@dataclass(frozen=True)
class ResourceType:
    """One type of resource.

    token: Pulumi's type, without the version of an API. noun, code: words of the cloud's messages.
    identify: returns the ID of a new resource. outputs: what the cloud adds to the inputs or computes from them.
    where: properties that default to the provider's settings (`Cloud.place_of`); changing one replaces the resource.
    replace_on: properties that the API cannot change. replace_if: properties for which it cannot make some changes.
    replace_when: from old and new inputs (values may be unknown) to properties that force replacement if they differ.
    fixed: properties that look changeable in a plan but that the API refuses to change.
    recomputed: outputs that any update may change.
    refuse: rules for creating and updating. protected_by: values of properties that prevent deletion.
    refuse_deletion: rules for deleting. upserts: creating an existing resource is not an error.
    implied: (type, text) by which others may refer to resources that come with this one.
    """

    token: str
    noun: str
    identify: Callable[[Call], str]
    outputs: Callable[[Call], Properties] = lambda _: {}
    code: str = ""
    naming: Naming | None = None
    where: tuple[str, ...] = ()
    replace_on: tuple[str, ...] = ()
    replace_if: Mapping[str, Callable[[Value, Value], bool]] = field(default_factory=dict)
    replace_when: Callable[[Properties, Properties], Iterable[str]] = lambda _, __: ()
    fixed: tuple[str, ...] = ()
    recomputed: tuple[str, ...] = ()
    references: tuple[Reference, ...] = ()
    refuse: tuple[Rule, ...] = ()
    refuse_deletion: tuple[Rule, ...] = ()
    upserts: bool = False
    protected_by: Mapping[str, Value] = field(default_factory=dict)
    implied: Callable[[Properties], Iterable[tuple[str, str]]] = lambda _: ()
    says: Mapping[Reason, Saying] = field(default_factory=dict)
    is_proven: bool = True


Function = Callable[[Properties, Settings, Offers, World], Properties]
"""A provider function, from arguments to results."""


@dataclass(frozen=True)
class Cloud:
    """One cloud.

    package: Pulumi's. name: as in a spec. says: its message for each reason. configure: from the provider's inputs.
    place_of: default of a property of `ResourceType.where`. place_missing: the cloud's message when there is no default.
    region_of: the region of a call, "" for none.
    unruled: returns the type of a token that has no rules. refers_by: outputs by which a resource is known.
    reshaped: properties of which a resource returns more than it was given, so that no preview knows them.
    has_trees: resources whose ID continues another's are deleted with it. folds_case: IDs are case-insensitive.
    suffix: separator and number of hexadecimal digits at the end of a generated name.
    """

    package: str
    name: str
    types: Mapping[str, ResourceType]
    unruled: Callable[[str], ResourceType]
    says: Mapping[Reason, Saying]
    configure: Callable[[Mapping[str, Value]], Settings]
    place_of: Callable[[Call, str], str | None]
    place_missing: Mapping[str, str]
    region_of: Callable[[Call], str]
    functions: Mapping[str, Function]
    refers_by: tuple[str, ...]
    suffix: tuple[str, int]
    reshaped: tuple[str, ...] = ()
    has_trees: bool = False
    folds_case: bool = False

    def folded(self, text: str) -> str:
        """Return `text` in the form in which references are compared."""
        return text.lower() if self.folds_case else text


@dataclass(frozen=True)
class Call:
    """One request to a cloud.

    inputs: without secrets and unknown values. id: "" for a resource to create. old: the existing resource, None for a
    resource to create.
    """

    cloud: Cloud
    type: ResourceType
    world: World
    offers: Offers
    settings: Settings
    urn: str
    inputs: Properties
    id: str = ""
    old: Record | None = None

    @property
    def region(self) -> str:
        return self.cloud.region_of(self)

    @property
    def name(self) -> str:
        """The resource's name in the cloud, "" if its type has none."""
        return str(self.inputs.get(self.type.naming.property, "")) if self.type.naming else ""

    def text(self, path: str) -> str:
        """Return the value at a path, "" if there is none."""
        return next((str(value) for value in at(self.inputs, path)), "")

    def target(self, path: str) -> Record | None:
        """Return the resource that the reference at `path` refers to."""
        own_reference = next((reference for reference in self.type.references if reference.path == path), None)
        text = self.text(path)
        return self.resolve(own_reference, text) if own_reference and text else None

    def resolve(self, reference: Reference, text: str) -> Record | None:
        """Return the resource that `text` refers to, preferably in the same region."""
        candidates = self.world.find(reference.types, self.cloud.folded(reference.resolve(self, text)))
        return next(
            (record for record in candidates if record.region in ("", self.region)),
            candidates[0] if candidates else None,
        )

    def works(self, grant: Record) -> bool:
        """Use a grant; return whether it works by now (`Offers.slow_grants`)."""
        return self.world.uses_of(grant) > self.offers.slow_grants

    def fresh(self, make: Callable[[str], str]) -> str:
        """Return an ID that was never used. make: from 64 hexadecimal digits. The same resource gets the same ID again."""
        ids = (make(digest(f"{self.urn}#{number}")) for number in count())
        return next(id_ for id_ in ids if self.world.is_fresh(id_))

    def refusal(
        self, reason: Reason, of: ResourceType | None = None, property_: str = "", **fields: str
    ) -> RefusalError:
        """Return the refusal with the message of the type `of` (by default this one's), otherwise of the cloud."""
        type_ = of or self.type
        saying = type_.says.get(reason) or self.cloud.says[reason]
        values = {
            "noun": type_.noun,
            "code": type_.code,
            "type": type_.token,
            "id": self.id,
            "name": self.name,
            "region": self.region,
            "account": self.settings.account,
            **fields,
        }
        return RefusalError(f"{saying.text.format_map(values)}; {saying.way_out.format_map(values)}", property_)
