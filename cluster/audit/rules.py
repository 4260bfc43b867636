"""Decide controls about flags, files or settings of kubelets from evidence, with one finding per subject."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from cluster.audit.evidence import Evidence, File, Kind, Report
from cluster.audit.model import Control, Files, Finding, Flags, Requirement

_SHOWN = 80


def findings(control: Control, evidence: Evidence) -> Iterator[Finding]:
    """Yield findings for every subject that was seen. The caller adds hosts that weren't."""
    if control.flags:
        yield from _flags(control.flags, evidence)
    elif control.files and control.hosts:
        for report in evidence.of(control.hosts):
            yield _files(control.files, report)
    elif control.kubelet:
        for node, config in sorted(evidence.kubelets.items()):
            yield _kubelet(node, config, control.kubelet)


def _flags(rule: Flags, evidence: Evidence) -> Iterator[Finding]:
    for report, process in evidence.processes(rule.program):
        flags = process.flags
        tests = [(test.holds(flags.get(name)), f"--{name}", flags.get(name)) for name, test in rule.of.items()]
        yield Finding(process.member or report.host, *_verdict(tests))


def _kubelet(node: str, config: Mapping[str, Any] | str, rule: Mapping[str, Requirement]) -> Finding:
    if isinstance(config, str):
        return Finding(node, None, config)
    tests = [(test.holds(value := _at(config, key)), key, value) for key, test in rule.items()]
    return Finding(node, *_verdict(tests))


def _verdict(tests: Sequence[tuple[bool, str, object]]) -> tuple[bool, str]:
    """Return whether all tests hold, and the values of those that don't, or of all if all hold."""
    wrong = [entry for entry in tests if not entry[0]]
    return not wrong, ", ".join(f"{name} {_shown(value)}" for _, name, value in wrong or tests)


def _shown(value: object) -> str:
    if value is None:
        return "isn't set"
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    text = text.lower() if isinstance(value, bool) else text
    return f"= {text[:_SHOWN]}{'…' if len(text) > _SHOWN else ''}"


def _at(config: Mapping[str, Any], key: str) -> object:
    """Return the value at a key such as ``authentication.anonymous.enabled``; None if a part is missing."""
    value: object = config
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _files(rule: Files, report: Report) -> Finding:
    patterns = [*rule.paths, *_named(rule, report)]
    files = {path: file for path, file in sorted(report.files.items()) if _any(path, patterns)}
    unread = [line for line in report.unreadable if _any(line.partition(": ")[0], patterns)]
    wrong = [f"{path} is {file.mode} {file.owner}" for path, file in files.items() if not _is(rule, file)]
    if wrong:
        return Finding(report.host, False, ", ".join(wrong))
    if unread:
        return Finding(report.host, None, ", ".join(unread))
    if not files:
        return Finding(report.host, rule.optional, f"no files found: {', '.join(patterns) or 'no process names one'}")
    modes = sorted({f"{file.mode} {file.owner}" for file in files.values()})
    what = next(iter(files)) if len(files) == 1 else f"{len(files)} files"
    return Finding(report.host, True, f"{what}: {', '.join(modes)}")


def _named(rule: Files, report: Report) -> list[str]:
    flags = [process.flags for process in report.running(rule.program)]
    return [value for each in flags for name in rule.named_by if (value := each.get(name))]


def _any(path: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def _is(rule: Files, file: File) -> bool:
    narrow = not rule.mode or not int(file.mode, 8) & ~int(rule.mode, 8)
    return narrow and rule.owner in ("", file.owner)


def hosts_of(control: Control) -> Kind | None:
    """Return the kind of hosts that must give evidence for a control; None if it isn't about hosts."""
    return None if control.kubelet else control.hosts
