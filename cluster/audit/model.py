"""Controls and their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, model_validator

from cluster.audit.evidence import Kind
from cluster.tls import CIPHER_SUITES

STRONG = "strong-ciphers"
"""Placeholder in controls for the cipher suites that all our servers get."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Requirement(_Data):
    """The required value of a setting: exactly one of the fields, optionally with `or_unset`. Lists may be comma-separated text."""

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
            raise ValueError("a setting has exactly one requirement")
        return self

    def holds(self, value: object) -> bool:
        """Return whether a value meets the requirement. value: None if the setting isn't set."""
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

    def phrase(self) -> str:
        """Return the requirement in words that follow the setting's name."""
        (name,) = self.model_fields_set - {"or_unset"}
        value = _text(getattr(self, name))
        phrase = {
            "equals": f"is {value}",
            "other_than": f"isn't {value}",
            "set": "is set" if self.set else "isn't set",
            "has": f"has {value}",
            "lacks": f"lacks {value}",
            "at_least": f"is at least {value}",
            "within": "has only strong suites",
        }[name]
        return f"{phrase}{' or not set' if self.or_unset else ''}"


class Flags(_Data):
    """Flags on the command line of every process of a program."""

    program: str
    of: Mapping[str, Requirement]


class Files(_Data):
    """Modes and owners of files. paths: patterns, or `named_by`: flags of a program whose values are paths.

    mode: the widest allowed, in octal. optional: missing files are allowed.
    """

    paths: tuple[str, ...] = ()
    program: str = ""
    named_by: tuple[str, ...] = ()
    mode: str = ""
    owner: str = ""
    optional: bool = False


class Control(_Data):
    """One control of the benchmark, or our own.

    title: in our wording. scored: whether the benchmark lets a program decide it. hosts: the kind that it is about, None
    for the cluster as a whole. Exactly one of flags, files, kubelet (keys of the running configuration, with dots) and by
    (a function in `cluster.audit.decide.DECISIONS`) decides it. manual: what a person must check; `by` then only collects
    the candidates. exception: why the cluster doesn't meet it.
    """

    id: str
    title: str
    scored: bool = True
    hosts: Kind | None = None
    flags: Flags | None = None
    files: Files | None = None
    kubelet: Mapping[str, Requirement] | None = None
    by: str | None = None
    how: str = ""
    manual: str = ""
    exception: str = ""

    @model_validator(mode="after")
    def _decided_once(self) -> Self:
        if sum(each is not None for each in (self.flags, self.files, self.kubelet, self.by)) != 1:
            raise ValueError(f"{self.id}: a control needs exactly one of flags, files, kubelet and by")
        if self.by and not self.how:
            raise ValueError(f"{self.id}: with `by`, `how` must say what the function does")
        return self

    def decided_by(self) -> str:
        """Return how the control is decided, for people."""
        if self.flags:
            tests = ", ".join(f"`--{name}` {test.phrase()}" for name, test in self.flags.of.items())
            return f"{self.flags.program}: {tests}"
        if self.kubelet:
            return "running kubelet: " + ", ".join(f"`{key}` {test.phrase()}" for key, test in self.kubelet.items())
        if self.files:
            what = [f"`{path}`" for path in self.files.paths] + [f"`--{flag}`" for flag in self.files.named_by]
            rules = [self.files.mode and f"{self.files.mode} or stricter", self.files.owner]
            return f"{', '.join(what)}: {', '.join(filter(None, rules))}{', if present' if self.files.optional else ''}"
        return self.how


class Status(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    EXCEPTION = "exception"
    MANUAL = "manual"
    NOT_SEEN = "not seen"


@dataclass(frozen=True)
class Finding:
    """Finding for one host, process, node or attempt. ok: None if it couldn't be seen. expected: see `Unseen`."""

    subject: str
    ok: bool | None
    observed: str
    expected: bool = False

    def to_json(self) -> dict[str, Any]:
        return {"subject": self.subject, "ok": self.ok, "seen": self.observed, "expected": self.expected}


@dataclass(frozen=True)
class Result:
    """The result of a control. observed: in one line."""

    control: Control
    status: Status
    observed: str
    findings: tuple[Finding, ...]

    def to_json(self) -> dict[str, Any]:
        control = self.control
        return {
            "id": control.id,
            "title": control.title,
            "level": "scored" if control.scored else "manual",
            "status": self.status.value,
            "seen": self.observed,
            "reason": control.exception if self.status is Status.EXCEPTION else "",
            "findings": [finding.to_json() for finding in self.findings],
        }


def _words(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list | tuple) else str(value).split(",")


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return float("-inf")


def _text(value: object) -> str:
    """Format a value as in YAML and on command lines."""
    return str(value).lower() if isinstance(value, bool) else str(value)
