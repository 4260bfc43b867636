"""Spellings of the last release: verbs and options that have a new name.

Delete this file, its call in `cli.running` and tests/cli/test_aliases.py one release after 0.1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_A_TIME = re.compile(r"[0-9.]+(ms|s|m|h|d)?")

VERBS = {
    "autoscaler explain": ("autoscaler plan",),
    "controllers show": ("status", "controllers"),
    "etcd backups": ("status", "backups"),
    "etcd state": ("status", "etcd"),
    "expander prices": ("show prices",),
    "flows": ("show flows",),
    "keys status": ("status", "keys"),
    "links check": ("status", "links"),
    "machines check": ("status", "machines"),
    "operations": ("status", "operations"),
    "policies": ("show policies",),
    "preview": ("up --dry-run",),
    "schema": ("show schema",),
    "tenancy capacity": ("tenancy sync --hosts",),
    "tenancy show": ("status", "tenancy"),
    "topology": ("show topology",),
    "vpn show": ("show vpn",),
}
"""Former verb -> the words that replace it, and the word after the name of the cluster."""

OPTIONS = {
    "configure": {"--check": "--dry-run", "--batch": "--parallel"},
    "controllers image": {"--to": "--output"},
    "etcd backups": {"--all": "--last=1000000"},
    "machines install": {"--batch": "--parallel"},
    "reboot": {"--check": "--dry-run", "--at-once": "--parallel", "--back-timeout": "--ready-timeout"},
    "links check": {"--wait": "--settle"},
    "status": {"--every": "--watch", "--wait": "--settle"},
    "upgrade": {"--at-once": "--parallel"},
    "validate": {"--jobs": "--parallel", "-j": "--parallel"},
    "vpn configure": {"--check": "--dry-run"},
}
"""Former verb -> former option -> today's option."""


def current(arguments: Sequence[str]) -> tuple[list[str], str]:
    """Return the command line in today's spelling, and a line that says what changed; "" if nothing did."""
    verb = next(
        (name for name in (*VERBS, *OPTIONS, "keys rotate") if list(arguments[: len(name.split())]) == name.split()), ""
    )
    if not verb:
        return list(arguments), ""
    words = list(arguments[len(verb.split()) :])
    options = _options(verb, words)
    before, *after = VERBS.get(verb, (verb,))
    if verb == "etcd backups":
        options = _etcd_after_cluster(options)
    if verb not in VERBS and options == words:
        return list(arguments), ""
    line = [*before.split(), *options, *after]
    return (
        line,
        f"deprecated: `{_shown([*verb.split(), *words])}` is now `{_shown(line)}`; the next release removes the former name",
    )


def _shown(words: Sequence[str]) -> str:
    return " ".join(["menagerie", *words])


def _options(verb: str, words: Sequence[str]) -> list[str]:
    renamed, result = OPTIONS.get(verb, {}), list[str]()
    if verb == "status" and any(word.partition("=")[0] == "--every" for word in words):
        words = [word for word in words if word != "--watch"]  # it was a flag
    for place, word in enumerate(words):
        if word == "--":
            return [*result, *words[place:]]
        name, equals, value = word.partition("=")
        if name.startswith("-j") and "-j" in renamed and name != "-j":
            name, equals, value = "-j", "=", name[2:]
        bare = (
            name in ("--watch", "--wait")
            and not equals
            and not _A_TIME.fullmatch(" ".join(words[place + 1 : place + 2]))
        )
        if verb == "status" and name == "--watch" and bare:
            result.append("--watch=5")
        elif verb == "keys rotate" and name == "--wait" and bare:
            result.append("--wait-for-tokens")
        else:
            result.append(f"{renamed.get(name, name)}{equals}{value}")
    return result


def _etcd_after_cluster(words: Sequence[str]) -> list[str]:
    """Turn the second argument, main or events, into --limit."""
    plain = [place for place, word in enumerate(words) if not word.startswith("-")]
    if len(plain) < 2:
        return list(words)
    return [*words[: plain[1]], "--limit", *words[plain[1] :]]
