"""The program and unit that change a running host to another payload."""

from __future__ import annotations

from pathlib import Path

from cluster.files import HostFile
from cluster.programs import without_words
from components.userdata.joined import joined

_HERE = Path(__file__).resolve().parent
_OWN = _HERE / "apply"
_MODULES = (
    _HERE / "boot" / "host.py",
    _HERE / "boot" / "store.py",
    _HERE / "refresh" / "units.py",
    _HERE / "refresh" / "turns.py",
    _OWN / "main.py",
)
_PROGRAM, _UNIT = "/usr/local/sbin/menagerie-apply", "menagerie-apply@.service"


def files() -> tuple[HostFile, ...]:
    """Return menagerie-apply and its unit. The host's agent starts the unit, since the program restarts the agent."""
    return (
        HostFile(_PROGRAM, "#!/usr/bin/python3\n" + without_words(joined(_OWN, _MODULES)), 0o755),
        HostFile(f"/etc/systemd/system/{_UNIT}", (_OWN / _UNIT).read_text()),
    )
