"""Tags of Azure: "Use tags to organize your Azure resources" (limitations), "Naming rules and restrictions"."""

from __future__ import annotations

import re

from sandbox.simcloud.azure.words import refused
from sandbox.simcloud.rules import Call

_MOST, _LONGEST_NAME, _LONGEST_VALUE = 50, 512, 256
# Types with smaller limits: "Azure DNS supports only 15 tags", names of tags of storage accounts.
_FEW = {"azure-native:privatedns:PrivateZone": 15}
_SHORT = {"azure-native:storage:StorageAccount": 128}
_REFUSED = re.compile(r"[<>%&\\?/\x00-\x1f]")
_KEPT = ("microsoft", "azure", "windows")


def tagged(call: Call) -> None:
    """Refuse too many tags, and names and values that Azure does not take."""
    given = call.inputs.get("tags")
    if not isinstance(given, dict):
        return
    most = _FEW.get(call.type.token, _MOST)
    if len(given) > most:
        raise refused("InvalidTags", f"The resource has {len(given)} tags.", f"at most {most}")
    longest = _SHORT.get(call.type.token, _LONGEST_NAME)
    for name, value in given.items():
        if _REFUSED.search(name):
            raise refused(
                "InvalidTagNameCharacters", f"The tag names '{name}' have reserved characters.", r"without <>%&\?/"
            )
        if name.lower().startswith(_KEPT):
            raise refused(
                "TagNameReserved", f"The tag name '{name}' is reserved.", f"begin with none of {', '.join(_KEPT)}"
            )
        if not 0 < len(name) <= longest or len(str(value)) > _LONGEST_VALUE:
            raise refused(
                "InvalidTags",
                f"The tag '{name[:40]}' is too long.",
                f"a name has at most {longest} characters, a value {_LONGEST_VALUE}",
            )
