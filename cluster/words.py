"""Free words of a spec: users, paths, machine types, ports of switches. Each kind has one pattern, used wherever it stands.

No word may mean something to what it passes through: Ansible's templates (``{``), shells (``$``, a backtick, quotes, ``;``),
command lines (a leading ``-``), files of lines (line breaks). Patterns name what is allowed, so what nobody thought of is
refused.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from cluster.quantities import parse_key_path, refuse

CODE = "CFG-030"
_SHOWN = 60
"""Characters of a refused word that its message repeats."""


def _word(what: str, pattern: str, rule: str, hint: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """What refuses every text that isn't wholly of the pattern, and tells editors so."""
    whole = re.compile(pattern)

    def parse(value: Any) -> Any:
        if isinstance(value, str) and not whole.fullmatch(value):
            shown = repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
            raise refuse(CODE, f"{shown} isn't {what}: {rule}", hint)
        return value

    return BeforeValidator(parse), WithJsonSchema({"type": "string", "pattern": f"^({pattern})$"})


# Azure's ids begin with "/", its resource groups may have parentheses, its image URNs have ":".
CloudWord = Annotated[
    str,
    *_word(
        "a name of a cloud's",
        r"[A-Za-z0-9/][A-Za-z0-9._/:()-]{0,511}",
        "letters, digits and ._/:()-, a letter, a digit or / first",
        "write it as the cloud's own console or command shows it",
    ),
]
"""A machine type, image, kind of disk, zone or reservation, in the cloud's own words."""

# useradd(8) takes fewer; directories also have capitals and dots.
Login = Annotated[
    str,
    *_word(
        "a login name",
        r"[A-Za-z_][A-Za-z0-9_.-]{0,31}",
        "letters, digits and ._-, a letter or _ first, at most 32",
        "write the user that sshd lets in: root",
    ),
]
# ssh expands % and ${} in paths of keys (ssh_config(5), TOKENS).
_PATH = _word(
    "a plain path",
    r"[\w/~.]([\w/~.,@+:=-]| (?=[\w/~.,@+:=-])){0,1022}",
    "letters, digits and /._-~,@+:= with single spaces, and no - first",
    "rename the file, or link to it under a plain name: ln -s",
)
FilePath = Annotated[str, *_PATH]
"""A file on the operator's machine."""
KeyPath = Annotated[str, _PATH[0], BeforeValidator(parse_key_path), _PATH[1]]
"""The same of a key or a certificate. What may be the key itself is never repeated."""

# Kubernetes, apimachinery: an optional DNS prefix, and at most 63 characters.
_PREFIX = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
_PART = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
LABEL_KEY, LABEL_VALUE = re.compile(f"(?:({_PREFIX})/)?({_PART})"), re.compile(f"(?:{_PART})?")
LABEL_RULE = "letters, digits, '-', '_' and '.', at most 63, with a letter or digit at both ends"
LabelKey = Annotated[
    str, *_word("the key of a label", LABEL_KEY.pattern, f"prefix/name or name; a name is {LABEL_RULE}", "write name")
]
LabelValue = Annotated[
    str, *_word("the value of a label", LABEL_VALUE.pattern, f"{LABEL_RULE}, or empty", "write letters and digits")
]
ConditionType = Annotated[
    str,
    *_word(
        "the type of a node's condition",
        LABEL_KEY.pattern,
        f"a name is {LABEL_RULE}",
        "write what `kubectl describe node` shows: KernelDeadlock",
    ),
]

Feature = Annotated[
    str,
    *_word(
        "a feature of a card",
        r"[a-z0-9][a-z0-9_-]{0,63}",
        "small letters, digits, - and _",
        "write what `ethtool -k` shows: rx-gro-hw",
    ),
]
OfSwitch = Annotated[
    str,
    *_word(
        "a name of a switch or of its port",
        r"[A-Za-z0-9]([A-Za-z0-9._/:-]| (?=[A-Za-z0-9])){0,127}",
        "letters, digits and ._/:- with single spaces, a letter or digit first",
        "write what LLDP says of it: leaf-1, Ethernet1/17",
    ),
]
# Whatever a directory may call people and teams; RFC 4514 and people's names know more letters than ASCII.
Title = Annotated[
    str,
    *_word(
        "a name of a person or a team",
        r"[\w.'’&@+(]([\w.,'’&@+:/()-]| (?=[\w.,'’&@+:/(-])){0,252}",
        "letters, digits and .,'&@+:/()- with single spaces, and no - first",
        "rename it in the directory",
    ),
]
PersonId = Annotated[
    str,
    *_word(
        "a name of a user",
        r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,252}",
        "letters, digits and ._@+-, a letter or digit first",
        "write the id by which the API is to know them: ana, or ana@example.org",
    ),
]
