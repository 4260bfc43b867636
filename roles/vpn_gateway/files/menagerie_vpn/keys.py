"""What strongSwan has loaded, and which interfaces have keys."""

import fcntl
import glob
import os
import re
import time

from . import certificates, host

SWANCTL = ["/etc/swanctl/conf.d/menagerie.conf", "/etc/swanctl/conf.d/menagerie-keys.conf"]
KEYS = host.RUN + "/keys"
LOADED = host.RUN + "/loaded"


def apply(settings, check):
    """Load settings into strongSwan; unchanged tunnels stay up. --clear forgets former certificates: strongSwan could
    send one with the same subject instead of the new one."""
    since = max(host.load(LOADED).get("at", 0.0), started("strongswan.service"))
    own = certificates.connections(settings)
    for name in own:
        certificates.fits(name)
    paths = SWANCTL + [certificates.FOLDER + name for name in sorted(own)] + sorted(glob.glob(certificates.AUTHORITIES))
    newer = [os.path.basename(path) for path in paths if os.path.exists(path) and os.path.getmtime(path) > since]
    loaded = set(re.findall(r"^list-conn event \{(\S+) \{", host.run("swanctl", "--list-conns", "--raw"), re.MULTILINE))
    expected = {link["connection"] for link in settings["links"].values()}
    reasons = [f"strongSwan: {name} is newer" for name in newer]
    reasons += [f"strongSwan: {name} was not loaded" for name in sorted(expected - loaded)]
    if reasons and not check:
        now = time.time()
        host.run("swanctl", "--load-all", "--clear", "--noprompt")
        host.save(LOADED, {"at": now})
        for connection in sorted(c for name in own if name in newer for c in own[name] if c in loaded):
            host.run("swanctl", "--rekey", "--reauth", "--ike", connection, check=False)
    return reasons


def started(unit):
    """Return a unit's start as Unix time, counted back on the monotonic clock, because clocks are set."""
    line = host.run("systemctl", "show", unit, "--property", "ExecMainStartTimestampMonotonic")
    match = re.search(r"=(\d+)", line)
    return time.time() - (time.monotonic() - int(match.group(1)) / 1e6) if match and int(match.group(1)) else 0.0


def updown(interface):
    """Set an interface up while it has keys. Count CHILD_SAs, because a new one may come before the old one goes. Their
    IKE_SA can't identify them: it changes when it is rekeyed."""
    verb = os.environ.get("PLUTO_VERB", "")
    step = 1 if verb.startswith("up-") else -1 if verb.startswith("down-") else 0
    if not step:
        return
    os.makedirs(KEYS, exist_ok=True)
    with open(f"{KEYS}/{interface}", "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        have = max(0, int(file.read() or 0) + step)
        file.truncate(0)
        file.write(str(have))
        host.run("ip", "link", "set", interface, "up" if have else "down")


def reset(settings):
    for path in glob.glob(KEYS + "/*"):
        os.unlink(path)
    for name in settings["links"]:
        if os.path.exists(f"/sys/class/net/{name}"):
            host.run("ip", "link", "set", name, "down")


def has_keys(interface):
    try:
        with open(f"{KEYS}/{interface}") as file:
            return int(file.read() or 0) > 0
    except OSError:
        return False
