"""Tags of AWS: "Tag your Amazon EC2 resources", "Tag naming limits and requirements" (AWS Resource Groups)."""

from __future__ import annotations

import re

from sandbox.simcloud.aws.common import refused, tags
from sandbox.simcloud.rules import Call

_MOST, _LONGEST_KEY, _LONGEST_VALUE = 50, 128, 256
# EC2 takes any character; other services take letters, digits and spaces of all languages, and these.
_ANY = ("aws:ec2/", "aws:ebs/", "aws:vpc/")
_TEXT = re.compile(r"[\w\s.:/=+\-@]*")


def tagged(call: Call) -> None:
    """Refuse too many tags, and keys and values that AWS does not take. The provider's own tags count too."""
    if not isinstance(call.inputs.get("tags") or {}, dict):
        return
    combined = tags(call)["tagsAll"]
    if len(combined) > _MOST:
        raise refused("TagLimitExceeded", "Tag limit exceeded", f"tags: {len(combined)} are more than {_MOST}", "tags")
    for key, value in combined.items():
        if key.lower().startswith("aws:"):
            raise refused(
                "InvalidParameterValue",
                "Tag keys starting with 'aws:' are reserved for internal use",
                f"tags: rename {key}",
                "tags",
            )
        if not 0 < len(key) <= _LONGEST_KEY or len(str(value)) > _LONGEST_VALUE:
            raise refused(
                "InvalidParameterValue",
                f"Tag key or value is too long: {key[:_LONGEST_KEY]}",
                f"tags: a key has 1 to {_LONGEST_KEY} characters, a value at most {_LONGEST_VALUE}",
                "tags",
            )
        if not call.type.token.startswith(_ANY) and not (_TEXT.fullmatch(key) and _TEXT.fullmatch(str(value))):
            raise refused(
                "ValidationException",
                f"Tag {key} has characters that are not allowed",
                "tags: use letters, digits, spaces and _.:/=+-@",
                "tags",
            )
