"""A host's program when the vault keeps values under generated names."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from cluster.files import JOIN_TOKEN
from stacks.cloud_store import bundle_name
from tests.stacks.fake_stores import READER, Azure, serve

BUNDLE = bundle_name(READER)
NAMES = {
    "payload-0123456789abcdef": "payload-api-servers1a2b3c4d",
    BUNDLE: f"{BUNDLE}5e6f7a8b",
    JOIN_TOKEN: "join-token9c0d1e2f",
}


@pytest.fixture
def vault():
    fake = Azure()
    stop = serve(fake)
    yield fake
    stop()


@pytest.fixture
def run(vault, tmp_path):
    """run(arguments, text): runs the program with these arguments, and this text on its standard input."""
    store = replace(vault.adapter(), names=NAMES)
    program = tmp_path / "menagerie-secret"
    program.write_text(store.script())

    def run_program(*arguments, text=""):
        command = [sys.executable, str(program), *arguments]
        return subprocess.run(command, check=False, capture_output=True, text=True, input=text)

    return run_program


def test_values_are_read_by_their_generated_names(vault, run):
    stored = ("packed", json.dumps({"etcd-main-ca.crt": "certificate"}), "token")
    vault.keep(dict(zip(NAMES.values(), stored, strict=True)))
    done = run("payload-0123456789abcdef", "etcd-main-ca.crt", JOIN_TOKEN)
    assert (done.returncode, done.stderr) == (0, "")
    expected = {"payload-0123456789abcdef": "packed", "etcd-main-ca.crt": "certificate", JOIN_TOKEN: "token"}
    assert json.loads(done.stdout) == expected


def test_a_missing_value_is_reported_by_the_hosts_own_name_for_it(vault, run):
    done = run("payload-0123456789abcdef")
    assert done.returncode == 1
    assert ": payload-0123456789abcdef: " in done.stderr


def test_the_join_token_is_written_to_the_name_that_workers_read(vault, run):
    vault.keep({NAMES[JOIN_TOKEN]: "none yet"})
    done = run("--put", JOIN_TOKEN, text="abcdef.0123456789abcdef")
    assert (done.returncode, done.stderr) == (0, "")
    assert vault.kept(NAMES[JOIN_TOKEN]) == "abcdef.0123456789abcdef"


def test_values_in_the_program_are_returned_without_any_request(tmp_path):
    """The lines of a certificate stay intact, and no metadata service is needed."""
    held = {"payload-0123456789abcdef": "H4sI+/=", "kubernetes-ca.crt": "-----BEGIN CERTIFICATE-----\nMIIB\n"}
    store = replace(Azure().adapter(), held=held, metadata="http://127.0.0.1:9", url="http://127.0.0.1:9")
    (tmp_path / "program").write_text(store.script())
    command = [sys.executable, str(tmp_path / "program"), *held]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr, json.loads(done.stdout)) == (0, "", held)


def test_values_of_the_program_and_of_the_vault_are_returned_together(vault, tmp_path):
    vault.keep({NAMES[BUNDLE]: json.dumps({"etcd-main-ca.crt": "certificate"})})
    store = replace(vault.adapter(), names={BUNDLE: NAMES[BUNDLE]}, held={"payload-0123456789abcdef": "packed"})
    (tmp_path / "program").write_text(store.script())
    command = [sys.executable, str(tmp_path / "program"), "payload-0123456789abcdef", "etcd-main-ca.crt"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"payload-0123456789abcdef": "packed", "etcd-main-ca.crt": "certificate"}
