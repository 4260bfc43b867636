"""Free-form words of a spec: users, paths, machine types, ports of switches. Each kind has one pattern, used everywhere.

No word may have a meaning for anything it passes through: Ansible's templates (``{``), shells (``$``, a backtick, quotes,
``;``), command lines (a leading ``-``), line-based files (line breaks). Patterns list what is allowed, so anything unforeseen
is refused.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from cluster.quantities import parse_key_path, refuse

CODE = "CFG-030"
_SHOWN = 60
"""Characters of a refused word that its message shows."""


def _word(what: str, pattern: str, rule: str, hint: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """Return a validator that refuses every text that doesn't fully match the pattern, and its JSON schema for editors."""
    regex = re.compile(pattern)

    def parse(value: Any) -> Any:
        if isinstance(value, str) and not regex.fullmatch(value):
            shown = repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
            raise refuse(CODE, f"{shown} isn't {what}: {rule}", hint)
        return value

    return BeforeValidator(parse), WithJsonSchema({"type": "string", "pattern": f"^({pattern})$"})


# Azure's ids start with "/", its resource groups may have parentheses, its image URNs have ":".
CloudWord = Annotated[
    str,
    *_word(
        "a name that a cloud uses",
        r"[A-Za-z0-9/][A-Za-z0-9._/:()-]{0,511}",
        "letters, digits and ._/:()-, starting with a letter, a digit or /",
        "write it as the cloud's console or command line shows it",
    ),
]
"""A machine type, image, kind of disk, zone or reservation, as the cloud names it."""

# useradd(8) allows fewer characters; directories also have capitals and dots.
Login = Annotated[
    str,
    *_word(
        "a login name",
        r"[A-Za-z_][A-Za-z0-9_.-]{0,31}",
        "letters, digits and ._-, starting with a letter or _, at most 32",
        "write a user that can log in over SSH, for example root",
    ),
]
# ssh expands % and ${} in paths of keys (ssh_config(5), TOKENS).
_PATH = _word(
    "a plain path",
    r"[\w/~.]([\w/~.,@+:=-]| (?=[\w/~.,@+:=-])){0,1022}",
    "letters, digits and /._-~,@+:= with single spaces, not starting with -",
    "rename the file, or make a link with a plain name (ln -s)",
)
FilePath = Annotated[str, *_PATH]
"""A file on the operator's machine."""
KeyPath = Annotated[str, _PATH[0], BeforeValidator(parse_key_path), _PATH[1]]
"""The file of a key or a certificate. Messages never repeat a value that may be the key itself."""

# Kubernetes, apimachinery: an optional DNS prefix, and at most 63 characters.
_PREFIX = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
_PART = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
LABEL_KEY, LABEL_VALUE = re.compile(f"(?:({_PREFIX})/)?({_PART})"), re.compile(f"(?:{_PART})?")
LABEL_RULE = "letters, digits, '-', '_' and '.', at most 63, with a letter or digit at both ends"
LabelKey = Annotated[
    str,
    *_word(
        "the key of a label",
        LABEL_KEY.pattern,
        f"prefix/name or name; a name is {LABEL_RULE}",
        "write name or prefix/name",
    ),
]
LabelValue = Annotated[
    str, *_word("the value of a label", LABEL_VALUE.pattern, f"{LABEL_RULE}, or empty", "use only letters and digits")
]
ConditionType = Annotated[
    str,
    *_word(
        "the type of a node's condition",
        LABEL_KEY.pattern,
        f"a name is {LABEL_RULE}",
        "write a type from `kubectl describe node`, for example KernelDeadlock",
    ),
]

Feature = Annotated[
    str,
    *_word(
        "a feature of a card",
        r"[a-z0-9][a-z0-9_-]{0,63}",
        "lower case letters, digits, - and _",
        "write a name from `ethtool -k`, for example rx-gro-hw",
    ),
]
OfSwitch = Annotated[
    str,
    *_word(
        "a name of a switch or of its port",
        r"[A-Za-z0-9]([A-Za-z0-9._/:-]| (?=[A-Za-z0-9])){0,127}",
        "letters, digits and ._/:- with single spaces, starting with a letter or digit",
        "write the name in LLDP, for example leaf-1 or Ethernet1/17",
    ),
]
# Names of people and teams in a directory; RFC 4514 and people's names have more letters than ASCII.
Title = Annotated[
    str,
    *_word(
        "a name of a person or a team",
        r"[\w.'’&@+(]([\w.,'’&@+:/()-]| (?=[\w.,'’&@+:/(-])){0,252}",
        "letters, digits and .,'&@+:/()- with single spaces, not starting with -",
        "rename it in the directory",
    ),
]
PersonId = Annotated[
    str,
    *_word(
        "a name of a user",
        r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,252}",
        "letters, digits and ._@+-, starting with a letter or digit",
        "write the user name for the API, for example ana or ana@example.org",
    ),
]
