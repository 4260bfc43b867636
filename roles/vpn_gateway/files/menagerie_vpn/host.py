"""The machine, for the other modules: programs, settings, and state between runs."""

import hashlib
import json
import os
import subprocess

SETTINGS = "/etc/menagerie/vpn.json"
RUN = "/run/menagerie-vpn"


class Failed(Exception):
    """A program failed. The text is for the operator."""


def run(*command, check=True, text=None):
    try:
        done = subprocess.run(list(command), input=text, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Failed(f"{command[0]} is missing on this machine") from None
    if check and done.returncode:
        raise Failed(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def settings():
    with open(SETTINGS) as file:
        return json.load(file)


def did(what, check, *command):
    if not check:
        run(*command)
    return [what]


def digest(content):
    return hashlib.sha256(content).hexdigest()


def load(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def save(path, value):
    os.makedirs(RUN, mode=0o755, exist_ok=True)
    with open(path + ".new", "w") as file:
        json.dump(value, file)
    os.rename(path + ".new", path)
