#!/usr/bin/python3
"""Set words of the kernel's command line in GRUB, and report whether the machine needs a reboot. Reboots nothing.

    menagerie-boot apply [--check] [--json]    reconcile GRUB with /etc/menagerie/boot.json
    menagerie-boot status [--json]             why a reboot is needed, and how the machine was booted

Exits with 0, or 1 if GRUB can't be set. Placed by Menagerie's role boot. Standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SETTINGS = "etc/menagerie/boot.json"
DROP_IN = "etc/default/grub.d/95-menagerie.cfg"
"""Debian's and Ubuntu's grub-mkconfig reads these after /etc/default/grub, in order of their names. Ubuntu's cloud
images overwrite the variable in 50-cloudimg-settings.cfg."""
GRUB_CFG = "boot/grub/grub.cfg"
MARK = "menagerie.boot="
ASKED = "run/reboot-required"
"""Debian's and Ubuntu's packages write it, with their names in `.pkgs`; /run is in memory, so a boot removes it."""
ASKED_BY_US = "run/menagerie/reboot-required.d"
"""The first line of each file in it says why a reboot is needed."""
HOST_REPORT = "/usr/local/sbin/menagerie-host-report"
HUGE_PAGES = {"1G": "1048576kB", "2M": "2048kB"}
_FACTS = ("numa", "iommu", "acs_redirects", "slow")


class Refused(Exception):
    """GRUB can't be set as wanted."""


class Machine:
    """root: where its files are. updater: the command that writes grub.cfg."""

    def __init__(self, root="/", updater=("update-grub",)):
        self.root, self.updater = Path(root), tuple(updater)
        settings = json.loads(self.text(SETTINGS) or "{}")
        self.words = list(settings.get("words", []))
        self.only_reports = settings.get("unsettable") == "report"

    def text(self, name):
        """Return a file's text, "" without the file."""
        try:
            return (self.root / name).read_text()
        except (FileNotFoundError, NotADirectoryError):
            return ""

    @property
    def drop_in(self):
        """The drop-in's text; "" for none. The spec allows only words without blanks and quotes."""
        if not self.words:
            return ""
        line = f'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT {" ".join(self.words)}"\n'
        return f"# Placed by Menagerie's role boot. Entries for recovery are booted without these words.\n{line}"

    @property
    def has_grub(self):
        return (self.root / GRUB_CFG).exists() and shutil.which(self.updater[0]) is not None

    @property
    def booted(self):
        """The running kernel's command line."""
        return self.text("proc/cmdline").split()

    def entries(self):
        """Return the words of each entry in grub.cfg that boots this system's Linux, except recovery entries."""
        section = re.search(r"### BEGIN \S*/10_linux ###(.*?)### END", self.text(GRUB_CFG), re.DOTALL)
        lines = re.findall(r"^\s*linux(?:efi|16)?\s+\S+(.*)$", section[1] if section else "", re.MULTILINE)
        entries = [line.split() for line in lines]
        return [words for words in entries if not {"single", "recovery"} & set(words)]

    def lacking(self):
        """Return what is wrong with grub.cfg, "" if nothing is."""
        entries = self.entries()
        if not entries:
            return f"/{GRUB_CFG} has no entry for this system's kernel"
        for words in entries:
            if missing := [word for word in self.words if word not in words]:
                return f"an entry of /{GRUB_CFG} lacks {' '.join(missing)}"
            if strange := [word for word in words if word.startswith(MARK) and word not in self.words]:
                return f"an entry of /{GRUB_CFG} still has {' '.join(strange)}"
        return ""

    def apply(self, check=False):
        """Return a line for each thing that was, or would be, changed."""
        if not self.has_grub:
            self._without_grub()
            return []
        before, path = self.text(DROP_IN), self.root / DROP_IN
        if before == self.drop_in and not (self.words and self.lacking()) and not self._left_behind():
            return []
        changes = [f"/{DROP_IN}: {' '.join(self.words) or 'removed'}"] if before != self.drop_in else []
        if check:
            return [*changes, f"/{GRUB_CFG}"]
        self._write(path, self.drop_in)
        done = subprocess.run(self.updater, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            self._write(path, before)
            last = done.stdout.decode(errors="replace").strip().splitlines()[-5:]
            raise Refused(f"{self.updater[0]} failed, and /{DROP_IN} is as it was:\n" + "\n".join(last))
        if lacking := self.lacking():
            raise Refused(
                f"{self.updater[0]} ran, but {lacking}: look for a file in /etc/default/grub.d or /etc/grub.d that "
                "sets GRUB_CMDLINE_LINUX_DEFAULT after this one, or writes entries without it"
            )
        return [*changes, f"/{GRUB_CFG}"]

    def _left_behind(self):
        """Return whether an entry still has words of settings that were removed."""
        return not self.words and any(word.startswith(MARK) for words in self.entries() for word in words)

    def _without_grub(self):
        if self.words and not self.only_reports:
            raise Refused(
                f"this host has no GRUB (no {self.updater[0]}, or no /{GRUB_CFG}), so {' '.join(self.words)} can't be "
                "set here. Set it in the host's own boot loader (systemd-boot: /etc/kernel/cmdline and "
                "kernel-install), then set boot_unsettable: report for its group, which only compares and reports"
            )

    @staticmethod
    def _write(path, text):
        if not text:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".new")  # grub-mkconfig reads *.cfg
        with beside.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)

    def reboot(self):
        """Return why a reboot is needed, a sentence for each reason."""
        reasons = []
        if self.has_grub:
            if missing := [word for word in self.words if word not in self.booted]:
                reasons.append(
                    f"the kernel runs without {' '.join(word for word in missing if MARK not in word) or missing[0]}"
                )
            elif any(word.startswith(MARK) and word not in self.words for word in self.booted):
                reasons.append("the kernel runs with settings that were removed")
        if (self.root / ASKED).exists():
            packages = sorted(set(self.text(f"{ASKED}.pkgs").split()))
            reasons.append(f"installed packages ask for a reboot: {', '.join(packages) or 'they left no names'}")
        for path in sorted((self.root / ASKED_BY_US).glob("*")):
            reasons.append((self.text(path.relative_to(self.root)).splitlines() or [path.name])[0])
        return reasons

    def notes(self):
        """Return what a reboot doesn't fix."""
        notes = []
        if not self.has_grub and (
            missing := [word for word in self.words if word not in self.booted and MARK not in word]
        ):
            notes.append(f"the kernel runs without {' '.join(missing)}; set them in this host's boot loader")
        sizes = [word.partition("=")[2] for word in self.words if word.startswith("hugepagesz=")]
        counts = [int(word.partition("=")[2]) for word in self.words if word.startswith("hugepages=")]
        for size, count in zip(sizes, counts) if set(self.words) <= set(self.booted) else ():
            kept = self.text(f"sys/kernel/mm/hugepages/hugepages-{HUGE_PAGES[size]}/nr_hugepages").strip() or "0"
            if int(kept) < count:
                notes.append(
                    f"the kernel reserved {kept} of {count} pages of {size}: memory was fragmented, or too small"
                )
        return notes

    def booted_at(self):
        """Return the Unix time, by the current clock, when the first process started; works in containers too."""
        since = re.search(r"^btime (\d+)$", self.text("proc/stat"), re.MULTILINE)
        first = self.text("proc/1/stat").rpartition(")")[2].split()
        return int(since[1]) + int(first[19]) / os.sysconf("SC_CLK_TCK") if since and len(first) > 19 else 0.0

    def status(self):
        return {
            "boot_id": self.text("proc/sys/kernel/random/boot_id").strip(),
            "booted_at": self.booted_at(),
            "booted": self.booted,
            "reboot": self.reboot(),
            "notes": self.notes(),
            "machine": facts(),
        }


def facts():
    """Return NUMA, IOMMU and ACS from role hardening's program; nothing without it."""
    with contextlib.suppress(OSError, ValueError):
        done = subprocess.run([HOST_REPORT, "--json"], check=False, stdout=subprocess.PIPE, timeout=60)
        report = json.loads(done.stdout)
        return {name: report[name] for name in _FACTS if name in report}
    return {}


def show(result):
    for name, value in result.items():
        for line in value if isinstance(value, list) and name != "booted" else [json.dumps(value)]:
            print(f"{name}: {line}")


def main():
    parser = argparse.ArgumentParser(prog="menagerie-boot", description=__doc__.splitlines()[0])
    parser.add_argument("verb", choices=["apply", "status"])
    parser.add_argument("--check", action="store_true", help="only report what apply would change")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    machine = Machine()
    if given.verb == "status":
        result = machine.status()
    else:
        try:
            changed = machine.apply(given.check)
        except Refused as error:
            sys.exit(f"menagerie-boot: {error}")
        result = {"changed": changed, "reboot": machine.reboot(), "notes": machine.notes()}
    print(json.dumps(result)) if given.json else show(result)


if __name__ == "__main__":
    main()
