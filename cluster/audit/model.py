"""A control, and what was decided of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, model_validator

from cluster.audit.evidence import Kind
from cluster.tls import CIPHER_SUITES

STRONG = "strong-ciphers"
"""Stands in controls for the suites that everything of ours is given."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Wanted(_Data):
    """What a setting must be. Lists may come as text with commas. One of the fields, beside `or_unset`."""

    equals: str | int | bool | None = None
    other_than: str | int | bool | None = None
    set: bool | None = None
    has: str | None = None
    lacks: str | None = None
    at_least: int | None = None
    within: str | None = None
    or_unset: bool = False

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if len(self.model_fields_set - {"or_unset"}) != 1:
            raise ValueError("one thing is asked of a setting")
        return self

    def holds(self, value: object) -> bool:
        """value: None where it is not set."""
        if self.set is not None:
            return (value is not None) is self.set
        if value is None:
            return self.or_unset or self.lacks is not None or self.other_than is not None
        if self.at_least is not None:
            return _number(value) >= self.at_least
        words = _words(value)
        if self.within is not None:
            return set(words) <= set(CIPHER_SUITES) and bool(words)
        if self.has is not None:
            return self.has in words
        if self.lacks is not None:
            return self.lacks not in words
        if self.other_than is not None:
            return _text(value) != _text(self.other_than)
        return _text(value) == _text(self.equals)

    def says(self) -> str:
        """What it asks, after the setting's name."""
        (name,) = self.model_fields_set - {"or_unset"}
        wanted = _text(getattr(self, name))
        told = {
            "equals": f"is {wanted}",
            "other_than": f"is not {wanted}",
            "set": "is set" if self.set else "is not set",
            "has": f"has {wanted}",
            "lacks": f"lacks {wanted}",
            "at_least": f"is at least {wanted}",
            "within": "has strong suites only",
        }[name]
        return f"{told}{' or not set' if self.or_unset else ''}"


class Flags(_Data):
    """Flags on the command line of every process of a program."""

    program: str
    of: Mapping[str, Wanted]


class Files(_Data):
    """Modes and owners. paths: patterns; or `named_by`, flags of a program whose values are the paths.

    mode: octal, the widest. Where nothing is there, it is as it should be only with `optional`.
    """

    paths: tuple[str, ...] = ()
    program: str = ""
    named_by: tuple[str, ...] = ()
    mode: str = ""
    owner: str = ""
    optional: bool = False


class Control(_Data):
    """One control of the benchmark, or of ours. `title` is in our words.

    scored: whether the benchmark has it decided by a program. hosts: which it is about, None for the cluster as a whole.
    One of flags, files, kubelet (key of the running configuration, with dots) and by (a function of
    `cluster.audit.decide.DECISIONS`) decides it. manual: what somebody must look at; `by` then only gathers what to look at.
    exception: why the cluster does not meet it.
    """

    id: str
    title: str
    scored: bool = True
    hosts: Kind | None = None
    flags: Flags | None = None
    files: Files | None = None
    kubelet: Mapping[str, Wanted] | None = None
    by: str | None = None
    how: str = ""
    manual: str = ""
    exception: str = ""

    @model_validator(mode="after")
    def _decided_once(self) -> Self:
        if sum(each is not None for each in (self.flags, self.files, self.kubelet, self.by)) != 1:
            raise ValueError(f"{self.id}: one of flags, files, kubelet and by decides a control")
        if self.by and not self.how:
            raise ValueError(f"{self.id}: a function says in `how` what it does")
        return self

    def decided_by(self) -> str:
        """For people."""
        if self.flags:
            tests = ", ".join(f"`--{name}` {test.says()}" for name, test in self.flags.of.items())
            return f"{self.flags.program}: {tests}"
        if self.kubelet:
            return "running kubelet: " + ", ".join(f"`{key}` {test.says()}" for key, test in self.kubelet.items())
        if self.files:
            what = [f"`{path}`" for path in self.files.paths] + [f"`--{flag}`" for flag in self.files.named_by]
            wanted = [self.files.mode and f"{self.files.mode} or stricter", self.files.owner]
            return f"{', '.join(what)}: {', '.join(filter(None, wanted))}{', if there' if self.files.optional else ''}"
        return self.how


class Status(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    EXCEPTION = "exception"
    MANUAL = "manual"
    NOT_SEEN = "not seen"


@dataclass(frozen=True)
class Finding:
    """Of one host, process, node or attempt. ok: None where it could not be seen. expected: see `Unseen`."""

    subject: str
    ok: bool | None
    seen: str
    expected: bool = False


@dataclass(frozen=True)
class Result:
    """A control decided. seen: in a line."""

    control: Control
    status: Status
    seen: str
    findings: tuple[Finding, ...]

    def to_json(self) -> dict[str, Any]:
        control = self.control
        return {
            "id": control.id,
            "title": control.title,
            "level": "scored" if control.scored else "manual",
            "status": self.status.value,
            "seen": self.seen,
            "reason": control.exception if self.status is Status.EXCEPTION else "",
            "findings": [asdict(finding) for finding in self.findings],
        }


def _words(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list | tuple) else str(value).split(",")


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return float("-inf")


def _text(value: object) -> str:
    """As both YAML and command lines write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
