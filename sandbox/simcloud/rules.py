"""The vocabulary in which a cloud is described: types of resources, their names, references and refusals.

A cloud is a `Cloud`; a type is a `ResourceType`, one row of data. What a row cannot say is a function of a `Call`.
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
    MISSING = auto()
    GONE = auto()
    ELSEWHERE = auto()
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
    """How a cloud words a refusal, and what to do. Both may use ``{noun}``, ``{name}``, ``{id}``, ``{type}``,
    ``{code}``, ``{region}``, ``{account}`` and what the refusing function adds."""

    text: str
    way_out: str


class RefusalError(Exception):
    """The cloud refuses; the text is its words and what to do. property: the input at fault, if it is one."""

    def __init__(self, text: str, property_: str = "") -> None:
        super().__init__(text)
        self.property = property_


@dataclass(frozen=True)
class Settings:
    """What a provider is configured with. account: account, project or subscription. tags: those of everything."""

    account: str = ""
    region: str = ""
    zone: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """Where something is to be. cloud: ``azure``, ``aws`` or ``gcp``."""

    cloud: str
    region: str
    zone: str | None = None
    machine: str | None = None


def _three_zones(cloud: str, region: str) -> Sequence[str]:
    """Zones as most regions have them."""
    if cloud == "azure":
        return ("1", "2", "3")
    separator = "-" if cloud == "gcp" else ""
    return [f"{region}{separator}{letter}" for letter in "abc"]


@dataclass(frozen=True)
class Offers:
    """What the clouds offer. refuse: what is wrong with a place, None if nothing is. zones: those of (cloud, region).
    vcpus: how many may run in (cloud, region), None for any number."""

    refuse: Callable[[Place], str | None] = lambda _: None
    zones: Callable[[str, str], Sequence[str]] = _three_zones
    vcpus: Callable[[str, str], int | None] = lambda _, __: None


@dataclass(frozen=True)
class Naming:
    """The property that is a resource's name in the cloud.

    pattern, longest, words: what it must match, its greatest length, and how the cloud says so.
    within: the properties inside whose values (and the region) no two may have the same name; None where the id
    already says it.
    """

    property: str
    pattern: re.Pattern[str]
    longest: int
    words: str
    within: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Reference:
    """A property that names another resource.

    path: of the property. types: what it may name. holds: what it names cannot be deleted meanwhile. local: both
    must be in one region. resolve: from (call, the property's value) to what the other is known by. optional: it may
    name what is not here: a literal, or what somebody else made.
    """

    path: str
    types: tuple[str, ...]
    holds: bool = True
    local: bool = True
    resolve: Callable[[Call, str], str] = lambda _, text: text
    optional: bool = False


Rule = Callable[["Call"], None]
"""Looks at a call and raises `RefusalError`."""


@dataclass(frozen=True)
class ResourceType:
    """What is known of one type of resource.

    token: Pulumi's type, without the version of an API. noun, code: words of the cloud's messages.
    identify: the id of a new one. outputs: what the cloud adds to, or makes of, the inputs.
    where: properties that default to the provider's settings (`Cloud.place_of`); changing one replaces.
    replace_on: properties that the API cannot change. replace_if: properties of which it cannot make some changes.
    replace_when: from old and new inputs (whose values may be unknown) to properties that replace if they differ.
    fixed: properties that look changeable in a plan and that the API refuses to change.
    recomputed: outputs that any update may change.
    refuse: checked before creating and updating. protected_by: values of properties that refuse deletion.
    refuse_deletion: checked before deleting. upserts: creating what exists already is no error.
    implied: (type, text) by which others may refer to what comes with one.
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
"""A provider function: arguments in, results out."""


@dataclass(frozen=True)
class Cloud:
    """One cloud.

    package: Pulumi's. name: as in a spec. says: its words for each reason. configure: from the provider's inputs.
    place_of: what a property of `ResourceType.where` is if the program does not say. place_missing: what the cloud
    says if nothing does. region_of: the region of a call, "" for none.
    unruled: the type of a token that has no rules. refers_by: outputs by which a resource is known.
    reshaped: properties of which a resource shows more than it was given, so that no preview knows them.
    has_trees: what lies below a resource, by its id, is deleted with it. folds_case: ids differ in more than case.
    suffix: separator and number of hexadecimal digits that a generated name ends with.
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
        """`text` as it is compared with other references."""
        return text.lower() if self.folds_case else text


@dataclass(frozen=True)
class Call:
    """One request to a cloud. inputs: without secrets and unknown values. id: "" for what is yet to be created.
    old: the resource as it is, None for what is yet to be created."""

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
        """The value at a path, "" if there is none."""
        return next((str(value) for value in at(self.inputs, path)), "")

    def target(self, path: str) -> Record | None:
        """What the reference at `path` names."""
        found = next((reference for reference in self.type.references if reference.path == path), None)
        text = self.text(path)
        return self.resolve(found, text) if found and text else None

    def resolve(self, reference: Reference, text: str) -> Record | None:
        """What `text` names; one in the same region rather than one in another."""
        found = self.world.find(reference.types, self.cloud.folded(reference.resolve(self, text)))
        return next((record for record in found if record.region in ("", self.region)), found[0] if found else None)

    def fresh(self, make: Callable[[str], str]) -> str:
        """An id that nothing has had. make: from 64 hexadecimal digits; the same resource gets the same again."""
        ids = (make(digest(f"{self.urn}#{number}")) for number in count())
        return next(id_ for id_ in ids if self.world.is_fresh(id_))

    def refusal(
        self, reason: Reason, of: ResourceType | None = None, property_: str = "", **fields: str
    ) -> RefusalError:
        """The refusal in the words of the type `of` (by default this one's), else of the cloud."""
        type_ = of or self.type
        saying = type_.says.get(reason) or self.cloud.says[reason]
        known = {
            "noun": type_.noun,
            "code": type_.code,
            "type": type_.token,
            "id": self.id,
            "name": self.name,
            "region": self.region,
            "account": self.settings.account,
            **fields,
        }
        return RefusalError(f"{saying.text.format_map(known)}; {saying.way_out.format_map(known)}", property_)
