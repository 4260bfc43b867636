#!/usr/bin/python3
"""menagerie-boot: bring this host to what its payload says, then start its units.

User data says the payload's name and SHA-256, and the host's store gives the payload. Nothing is
done before it is whole and verified. Every step may be repeated. A failed one is named and tried
again for ever; units start only once everything is in place. Standard library only.
"""

from __future__ import annotations

import base64
import concurrent.futures
import glob
import grp
import hashlib
import http.client
import ipaddress
import json
import lzma
import os
import pwd
import re
import shutil
import socket
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Callable, TypeVar

PAYLOAD = Path("/var/lib/menagerie/payload.sha256")
STORE = "/usr/local/sbin/menagerie-secret"
STORE_SILENT = 69
FIRST_DELAY_S, LAST_DELAY_S = 1.0, 30.0
DOWNLOADS_AT_ONCE = 4
CHUNK = 1 << 20
T = TypeVar("T")


class Failure(Exception):
    """A step failed; the message says what and why."""


class StoreSilent(Failure):
    """The store did not answer, or not to the end."""


def say(text: str) -> None:
    print("menagerie-boot: " + text, flush=True)


def run(*command: str) -> str:
    """Standard output of `command`; Failure with its last words where it fails."""
    done = subprocess.run(command, check=False, capture_output=True)
    if done.returncode:
        words = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise Failure(f"{' '.join(command)} failed with {done.returncode}: {words}")
    return done.stdout.decode(errors="replace")


def write(path: Path, data: bytes, mode: int, owner: str) -> bool:
    """Make `path` hold `data` with `mode` and `owner` (user:group), whole or not at all; False if it already did."""
    user, group = owner.split(":")
    ids = (pwd.getpwnam(user).pw_uid, grp.getgrnam(group).gr_gid)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        found = path.stat()
        if path.read_bytes() == data and (found.st_mode & 0o7777, found.st_uid, found.st_gid) == (mode, *ids):
            return False
    except FileNotFoundError:
        pass
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    handle = os.open(str(new), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(data)
        os.fchown(out.fileno(), *ids)
        os.fchmod(out.fileno(), mode)
        out.flush()
        os.fsync(out.fileno())
    new.replace(path)
    return True


def own_address() -> str:
    """The first address of this host that other hosts can see; 127.0.1.1, Debian's custom, while there is none."""
    for link in json.loads(run("ip", "-json", "-4", "address", "show", "scope", "global", "up") or "[]"):
        for entry in link.get("addr_info", []):
            if not ipaddress.ip_address(entry["local"]).is_loopback:
                return str(entry["local"])
    return "127.0.1.1"


def name_this_host(hosts: Path = Path("/etc/hosts")) -> None:
    """Let the host's own name resolve without a resolver: a dead one costs programs 10 to 20 s each."""
    name = socket.gethostname()
    line = f"{own_address()} {name}"
    old = hosts.read_text() if hosts.exists() else "127.0.0.1 localhost\n"
    kept = [text for text in old.splitlines() if name not in text.split("#")[0].split()[1:]]
    write(hosts, ("\n".join([*kept, line]) + "\n").encode(), 0o644, "root:root")


def check_packages(names: list[str]) -> None:
    """Refuse an image that lacks a package; installing would make equal hosts differ by the day they booted."""
    missing = []
    for name in names:
        done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}", name], check=False, capture_output=True)
        if done.stdout != b"installed":
            missing.append(name)
    if missing:
        raise Failure(f"the image lacks the packages {', '.join(missing)}: build it with them")


def mounted_at(device: dict[str, Any]) -> list[str]:
    """Where a device of lsblk's, or anything on it, is mounted; [SWAP] counts."""
    below = [place for child in device.get("children", []) for place in mounted_at(child)]
    return [place for place in device["mountpoints"] if place] + below


def signatures(path: str) -> list[str]:
    """Of file systems with their labels, partition tables, RAID, LVM, encryption: all that libblkid knows."""
    found = json.loads(run("wipefs", "--json", "--no-act", path) or "{}").get("signatures", [])
    return [f"{each['type']} {each.get('label') or ''}".strip() for each in found]


def use_of(device: dict[str, Any], least: int) -> str:
    """What a device is used for, so that it must not be formatted; nothing where it is blank."""
    places, held = mounted_at(device), [child["path"] for child in device.get("children", [])]
    if places:
        return "mounted at " + ", ".join(places)
    found = signatures(device["path"])
    if found:
        return "holds " + ", ".join(found)
    if held:
        return "part of " + ", ".join(held)
    return f"has {device['size']} of {least} bytes" if device["size"] < least else ""


def mount_disk(disk: dict[str, Any]) -> None:
    """Mount the disk that has our label, or a blank one with a new file system. Others are left alone, and told."""
    mount, label = disk["mount"], disk["label"]
    if os.path.ismount(mount):
        return
    listed = json.loads(run("lsblk", "--json", "--bytes", "--output", "NAME,PATH,SIZE,MOUNTPOINTS"))["blockdevices"]
    linked = [os.path.realpath(link) for pattern in disk["devices"] for link in sorted(glob.glob(pattern))]
    # Partitions have such links too; in lsblk's tree they are below their disk.
    devices = [each for path in dict.fromkeys(linked) for each in listed if each["path"] == path]
    uses = {each["path"]: use_of(each, disk["size"]) for each in devices}
    ours = [path for path, use in uses.items() if use == f"holds ext4 {label}"]
    blank = [each["path"] for each in sorted(devices, key=lambda each: int(each["size"])) if not uses[each["path"]]]
    if len(ours) > 1 or not ours + blank:
        told = "".join(f"; {path} {use}" for path, use in uses.items())
        others = ", ".join(f"{each['path']} ({each['size']} bytes)" for each in listed if each not in devices)
        wrong = f"{len(ours)} disks are labelled {label}" if ours else f"no blank disk, and none labelled {label}"
        raise Failure(f"{mount}: {wrong}, at {' '.join(disk['devices'])}{told}; other disks: {others or 'none'}")
    (path,) = ours or blank[:1]
    if ours:
        run("fsck.ext4", "-p", path)
    else:
        run("mkfs.ext4", "-q", "-m", "0", "-L", label, path)
        say(f"{path} formatted for {mount}")
    Path(mount).mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "ext4", "-o", ",".join(disk["options"]), path, mount)


def mount_disks(disks: list[dict[str, Any]]) -> None:
    for disk in disks:
        mount_disk(disk)


def make_users(names: list[str]) -> None:
    for name in names:
        try:
            pwd.getpwnam(name)
        except KeyError:
            run("useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent",
                "--shell", "/usr/sbin/nologin", name)  # fmt: skip
            say(f"user {name} created")


def place_files(files: list[dict[str, Any]]) -> None:
    changed = [f["path"] for f in files if write(Path(f["path"]), f["text"].encode(), f["mode"], f["owner"])]
    if changed:
        say(f"{len(changed)} files written")
    if any(path.startswith("/etc/systemd/system/") for path in changed):
        run("systemctl", "daemon-reload")


def digest(path: Path) -> str:
    hashed = hashlib.sha256()
    with path.open("rb") as data:
        for chunk in iter(lambda: data.read(CHUNK), b""):
            hashed.update(chunk)
    return hashed.hexdigest()


def fetch(url: str, sha256: str, to: Path) -> None:
    """Download `url` to `to`; Failure names the URL and what was wrong."""
    hashed = hashlib.sha256()
    try:
        with urllib.request.urlopen(url, timeout=30) as answer, to.open("wb") as out:
            for chunk in iter(lambda: answer.read(CHUNK), b""):
                hashed.update(chunk)
                out.write(chunk)
    except urllib.error.HTTPError as error:
        raise Failure(f"{url}: HTTP {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        raise Failure(f"{url}: {getattr(error, 'reason', error)}") from None
    if hashed.hexdigest() != sha256:
        raise Failure(f"{url}: sha256 is {hashed.hexdigest()}, expected {sha256}")


def unpack(archive: Path, members: list[list[str]], mode: int, url: str) -> None:
    """Take `members` ([path in the archive, path on the host]) out of a tar archive, which is read once.

    Upstream's may say ./bridge for bridge.
    """
    wanted = {name.removeprefix("./"): target for name, target in members}
    with tarfile.open(str(archive), "r|*") as tar:
        for item in tar:
            if not wanted:
                break
            name = item.name.removeprefix("./")
            data = tar.extractfile(item) if name in wanted and item.isreg() else None
            if data is None:
                continue
            target = wanted.pop(name)
            new = Path(target + ".new")
            new.parent.mkdir(parents=True, exist_ok=True)
            with new.open("wb") as out:
                shutil.copyfileobj(data, out, CHUNK)
            new.chmod(mode)
            new.replace(target)
    if wanted:
        raise Failure(f"{url}: the archive holds no file {', '.join(wanted)}")


def download(item: dict[str, Any], state: Path) -> None:
    """One artefact, in place with the right checksum. Archives leave the checksums of what was taken out in `state`."""
    url, sha256, members = item["url"], item["sha256"], item["members"]
    targets = [Path(target) for _, target in members] or [Path(item["path"])]
    receipt = state / hashlib.sha256(repr(item).encode()).hexdigest()
    if all(target.exists() for target in targets):
        now = " ".join(digest(target) for target in targets)
        if now == (receipt.read_text() if members and receipt.exists() else sha256):
            return
    started = time.monotonic()
    temporary = Path(str(targets[0]) + ".download")
    temporary.parent.mkdir(parents=True, exist_ok=True)
    try:
        fetch(url, sha256, temporary)
        if members:
            unpack(temporary, members, item["mode"], url)
            receipt.parent.mkdir(parents=True, exist_ok=True)
            write(receipt, " ".join(digest(target) for target in targets).encode(), 0o600, "root:root")
        else:
            temporary.chmod(item["mode"])
            temporary.replace(targets[0])
    finally:
        temporary.unlink(missing_ok=True)
    say(f"{url} in {time.monotonic() - started:.1f} s")


def download_all(items: list[dict[str, Any]], state: Path) -> None:
    """Every download; the failures of all of them are told at once."""
    failures = []
    with concurrent.futures.ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
        for future in [pool.submit(download, item, state) for item in items]:
            try:
                future.result()
            except Failure as failure:
                failures.append(str(failure))
    if failures:
        raise Failure("\n  ".join(failures))


def ask_store(names: list[str]) -> dict[str, str]:
    """All values, by name; Failure says what the store refuses or lacks."""
    try:
        done = subprocess.run([STORE, *names], check=False, capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:
        raise StoreSilent("the store gave no answer within 60 s") from None
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().replace("\n", "\n  ")
        kind = StoreSilent if done.returncode == STORE_SILENT else Failure
        raise kind(reason or f"{STORE} ended with {done.returncode}")
    try:
        values: dict[str, str] = json.loads(done.stdout)
    except ValueError:
        raise Failure(f"{STORE} printed no JSON, or not all of it") from None
    missing = [name for name in names if not values.get(name)]
    if missing:
        raise Failure(f"the store gave nothing for {', '.join(missing)}")
    return values


def load_payload() -> dict[str, Any]:
    """What this host is to be; Failure unless it has the SHA-256 that the user data gave.

    The copy on disk serves every later boot: the store may by then hold only a payload of newer hosts.
    """
    sha256, name = PAYLOAD.read_text().split()
    kept = PAYLOAD.with_name(name)
    if not kept.exists() or digest(kept) != sha256:
        packed = ask_store([name])[name]
        try:
            data = lzma.decompress(base64.b85decode(packed))
        except (ValueError, lzma.LZMAError) as error:
            raise Failure(f"{name} is cut short or damaged in the store: {error}") from None
        found = hashlib.sha256(data).hexdigest()
        if found != sha256:
            raise Failure(f"{name}: sha256 is {found}, expected {sha256}")
        write(kept, data, 0o600, "root:root")
        say(f"{name} fetched")
    config: dict[str, Any] = json.loads(kept.read_bytes())
    return config


def place_secrets(secrets: list[dict[str, Any]]) -> None:
    """Fetch and write every secret; entries of one path are joined in their order.

    The store is asked at every boot, so that a rotated key arrives. Where it does not answer, a
    host that already has all of its secrets goes on with them.
    """
    by_path: dict[str, list[dict[str, Any]]] = {}
    for secret in secrets:
        by_path.setdefault(secret["path"], []).append(secret)
    try:
        values = ask_store(sorted({secret["name"] for secret in secrets}))
    except StoreSilent as silence:
        if not all(Path(path).exists() for path in by_path):
            raise
        say(f"the secret store does not answer ({silence}); going on with the secrets on disk")
        return
    for path, parts in by_path.items():
        texts = [values[part["name"]] for part in parts]
        text = texts[0] if len(texts) == 1 else "".join(text.rstrip() + "\n" for text in texts)
        write(Path(path), text.encode(), parts[0]["mode"], parts[0]["owner"])


def last_words(unit: str) -> str:
    """What a unit said in its last run; with earlier ones, every failure would look new."""
    last = run("systemctl", "show", "--value", "-pInvocationID", unit).strip()
    return run("journalctl", "-n8", "-ocat", f"_SYSTEMD_INVOCATION_ID={last}")


def start_units(names: list[str], up: set[str]) -> None:
    """Start units in order, each once the one before is up; `up` are told already.

    They are never enabled: at every boot this program starts them, after everything is in place.
    """
    for name in names:
        started = time.monotonic()
        subprocess.run(["systemctl", "reset-failed", name], check=False, capture_output=True)
        done = subprocess.run(["systemctl", "start", name], check=False, capture_output=True)
        if done.returncode:
            words = (done.stderr.decode(errors="replace") + last_words(name)).strip()
            raise Failure(f"unit {name} did not start: " + re.sub(r"\n", "\n  ", words))
        if name not in up:
            up.add(name)
            say(f"{name} is up ({time.monotonic() - started:.1f} s)")


def steps(config: dict[str, Any]) -> list[tuple[str, Callable[[], None]]]:
    """What is to be done, in order: (name, function)."""
    state = PAYLOAD.with_name("downloads")
    up: set[str] = set()
    return [
        ("host name", name_this_host),
        ("packages", lambda: check_packages(config["packages"])),
        ("disks", lambda: mount_disks(config["disks"])),
        ("users", lambda: make_users(config["users"])),
        ("files", lambda: place_files(config["files"])),
        ("downloads", lambda: download_all(config["downloads"], state)),
        ("secrets", lambda: place_secrets(config["secrets"])),
        ("units", lambda: start_units(config["start"], up)),
    ]


def until_done(name: str, step: Callable[[], T], sleep: Callable[[float], None] = time.sleep) -> T:
    """What `step` returns, repeated until it succeeds. A failure is told once, and again when it changes."""
    delay = FIRST_DELAY_S
    told = ""
    while True:
        try:
            return step()
        except (Failure, OSError, KeyError) as error:
            text = str(error) or repr(error)
            if text != told:
                say(f"FAILED at {name}, trying again every {LAST_DELAY_S:.0f} s at the latest: {text}")
                told = text
        sleep(delay)
        delay = min(delay * 2, LAST_DELAY_S)


def main() -> None:
    started = time.monotonic()
    for name, step in steps(until_done("payload", load_payload)):
        until_done(name, step)
    say(f"everything is in place and started ({time.monotonic() - started:.1f} s)")


if __name__ == "__main__":
    main()
