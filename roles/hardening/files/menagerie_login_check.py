#!/usr/bin/python3
"""Check that sshd accepts a file of sshd_config.d, and that a user has a key to log in with. Changes nothing.

    menagerie-login-check FILE USER     0, or 1 with the reason

Placed by Menagerie's role hardening. Standard library only.
"""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import sys
import tempfile

MAIN = "/etc/ssh/sshd_config"
KEY = re.compile(r"(^|\s)(ssh-(rsa|ed25519)|ecdsa-sha2-\S+|sk-\S+@openssh\.com)\s+AAAA")


def asked(main, *words):
    done = subprocess.run(["sshd", *words, "-f", main], check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"sshd refuses it: {done.stderr.strip()}")
    return done.stdout


def key_files(settings, user):
    """Yield the files in which sshd looks for the user's keys (sshd_config(5), AuthorizedKeysFile)."""
    for name in settings.get("authorizedkeysfile", "").split():
        path = (
            name.replace("%%", "%")
            .replace("%h", user.pw_dir)
            .replace("%u", user.pw_name)
            .replace("%U", str(user.pw_uid))
        )
        yield path if path.startswith("/") else os.path.join(user.pw_dir, path)


def has_key(path):
    try:
        with open(path, errors="replace") as handle:
            return any(KEY.search(line) for line in handle if not line.lstrip().startswith("#"))
    except OSError:
        return False


def main():
    file, name = sys.argv[1:]
    with tempfile.NamedTemporaryFile("w", prefix="menagerie-sshd-") as whole:
        whole.write(f"Include {file}\nInclude {MAIN}\n")
        whole.flush()
        asked(whole.name, "-t")
        where = ["-C", f"user={name},host=localhost,addr=127.0.0.1"]
        lines = asked(whole.name, "-T", *where).splitlines()
    settings = dict(line.split(" ", 1) for line in lines if " " in line)
    if any(settings.get(each, "none") != "none" for each in ("trustedusercakeys", "authorizedkeyscommand")):
        return
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        sys.exit(f"there is no user {name} on this host")
    looked = list(key_files(settings, user))
    if not any(map(has_key, looked)):
        sys.exit(
            f"{name} has no public key in {', '.join(looked)}, so nobody could log in without a password; install one, "
            "or set hardening_ssh to false"
        )


if __name__ == "__main__":
    main()
