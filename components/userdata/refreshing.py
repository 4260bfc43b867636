"""The program and units that fetch changed keys on a running host."""

from __future__ import annotations

from pathlib import Path

from cluster.files import HostFile
from cluster.programs import without_words
from components.userdata.joined import joined

_HERE = Path(__file__).resolve().parent
_OWN = _HERE / "refresh"
_MODULES = (
    _HERE / "boot" / "host.py",
    _HERE / "boot" / "store.py",
    _OWN / "units.py",
    _OWN / "turns.py",
    _OWN / "main.py",
)
TIMER = "menagerie-refresh.timer"
_PROGRAM = "/usr/local/sbin/menagerie-refresh"
_UNITS = "/etc/systemd/system"


def files() -> tuple[HostFile, ...]:
    """Return menagerie-refresh, which shares modules with menagerie-boot, and its units."""
    return (
        HostFile(_PROGRAM, "#!/usr/bin/python3\n" + without_words(joined(_OWN, _MODULES)), 0o755),
        *(HostFile(f"{_UNITS}/{name}", (_OWN / name).read_text()) for name in ("menagerie-refresh.service", TIMER)),
    )
