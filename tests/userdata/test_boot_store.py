"""What the boot program fetches from the host's store: the payload, then the secrets."""

from __future__ import annotations

import json
import subprocess
from functools import partial

import pytest

from components.userdata import Payload
from tests.userdata.placed import boot


def secret(name, path, owner, mode=0o600):
    return {"name": name, "path": str(path), "mode": mode, "owner": owner}


class Store:
    """Stands in for the store's program. values: what the store holds for this host."""

    def __init__(self):
        self.values = {}
        self.silent = False
        self.requests = []

    def ask(self, names):
        self.requests.append(names)
        if self.silent:
            raise boot.StoreSilent("no route to host")
        if refused := [name for name in names if name not in self.values]:
            raise boot.Failure("\n".join(f"{name}: HTTP 403 Forbidden" for name in refused))
        return {name: self.values[name] for name in names}


@pytest.fixture
def store(monkeypatch):
    fake = Store()
    monkeypatch.setattr(boot, "ask_store", fake.ask)
    return fake


def test_secrets_with_one_path_are_joined_in_order(store, tmp_path, owner):
    store.values = {"main": "one", "events": "two\n\n"}
    boot.place_secrets([secret(name, tmp_path / "ca.crt", owner, 0o644) for name in ("main", "events")])
    assert (tmp_path / "ca.crt").read_bytes() == b"one\ntwo\n"
    assert (tmp_path / "ca.crt").stat().st_mode & 0o777 == 0o644


def test_a_single_secret_is_written_unchanged(store, tmp_path, owner):
    store.values = {"key": "\0no newline ä"}
    boot.place_secrets([secret("key", tmp_path / "key", owner)])
    assert (tmp_path / "key").read_bytes() == "\0no newline ä".encode()
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


def test_no_secret_is_written_while_any_is_refused_and_all_refused_are_named(store, tmp_path, owner):
    store.values = {"a": "1"}
    with pytest.raises(boot.Failure, match=r"^b: HTTP 403 Forbidden\nc: HTTP 403 Forbidden$"):
        boot.place_secrets([secret(name, tmp_path / name, owner) for name in ("a", "b", "c")])
    assert list(tmp_path.iterdir()) == []


def test_all_secrets_are_requested_at_once_and_each_once(store, tmp_path, owner):
    store.values = {"a": "1", "b": "2"}
    boot.place_secrets([secret(name, tmp_path / path, owner) for name, path in (("b", "x"), ("a", "y"), ("a", "z"))])
    assert store.requests == [["a", "b"]]
    assert [(tmp_path / path).read_text() for path in "xyz"] == ["2", "1", "1"]


def test_a_host_with_all_its_secrets_continues_without_the_store(store, tmp_path, owner, capsys):
    secrets = [secret("a", tmp_path / "a", owner)]
    store.values = {"a": "1"}
    boot.place_secrets(secrets)
    store.silent = True
    boot.place_secrets(secrets)
    assert (tmp_path / "a").read_bytes() == b"1"
    assert "no route to host" in capsys.readouterr().out


def test_a_host_that_lacks_a_secret_waits_for_the_store(store, tmp_path, owner):
    (tmp_path / "a").write_bytes(b"1")
    store.silent = True
    with pytest.raises(boot.StoreSilent, match="no route to host"):
        boot.place_secrets([secret(n, tmp_path / n, owner) for n in ("a", "b")])


def test_a_rotated_secret_replaces_the_one_on_disk(store, tmp_path, owner):
    for value in ("old", "new"):
        store.values = {"a": value}
        boot.place_secrets([secret("a", tmp_path / "a", owner)])
    assert (tmp_path / "a").read_bytes() == b"new"


@pytest.fixture
def store_program(tmp_path, monkeypatch):
    """Return store_program(text), which makes a shell script the host's store program."""

    def placed(script):
        program = tmp_path / "menagerie-secret"
        program.write_text("#!/bin/sh\n" + script)
        program.chmod(0o755)
        monkeypatch.setattr(boot, "STORE", str(program))

    return placed


def test_the_stores_program_runs_once_for_all_names(store_program):
    store_program("""printf '{"a": "%s", "b": "2"}' "$*"\n""")
    assert boot.ask_store(["a", "b"]) == {"a": "a b", "b": "2"}


def test_a_store_without_an_answer_is_distinguished_from_one_that_refuses(store_program):
    store_program("echo 'http://store: timed out' >&2; exit 69\n")
    with pytest.raises(boot.StoreSilent, match="^http://store: timed out$"):
        boot.ask_store(["a"])
    store_program("printf 'a: 403\\nb: 404\\n' >&2; exit 1\n")
    with pytest.raises(boot.Failure, match="^a: 403\n  b: 404$") as failure:
        boot.ask_store(["a", "b"])
    assert not isinstance(failure.value, boot.StoreSilent)


def test_a_killed_store_program_is_reported(store_program):
    store_program("kill -9 $$\n")
    with pytest.raises(boot.Failure, match="menagerie-secret exited with -9"):
        boot.ask_store(["a"])


def test_a_truncated_answer_is_reported_and_not_shown(store_program):
    store_program("""printf '{"a": "KEY'\n""")
    with pytest.raises(boot.Failure, match="no JSON, or incomplete JSON") as failure:
        boot.ask_store(["a"])
    assert "KEY" not in str(failure.value)


def test_names_without_a_value_in_the_store_are_reported(store_program):
    store_program("""printf '{"a": "1", "b": ""}'\n""")
    with pytest.raises(boot.Failure, match="no value for b, c"):
        boot.ask_store(["a", "b", "c"])


PAYLOAD = Payload(json.dumps({"files": [], "name": "ä"}))


@pytest.fixture
def reference(tmp_path, monkeypatch):
    """Write what user data says about the payload."""
    path = tmp_path / "menagerie" / "payload.sha256"
    path.parent.mkdir()
    path.write_text(f"{PAYLOAD.sha256}  {PAYLOAD.name}\n")
    monkeypatch.setattr(boot, "PAYLOAD", path)
    return path


def test_a_payload_is_fetched_once_and_reused_without_the_store(store, reference):
    """By then the store may not answer, or hold only the payload of newer hosts."""
    store.values = {PAYLOAD.name: PAYLOAD.packed()}
    assert boot.load_payload() == json.loads(PAYLOAD.text)
    store.values = {}
    assert boot.load_payload() == json.loads(PAYLOAD.text)
    assert store.requests == [[PAYLOAD.name]]
    assert reference.with_name(PAYLOAD.name).stat().st_mode & 0o777 == 0o600


def test_the_kept_payload_can_be_checked_by_hand(store, reference):
    store.values = {PAYLOAD.name: PAYLOAD.packed()}
    boot.load_payload()
    command = ["sha256sum", "--check", "--strict", reference.name]
    assert subprocess.run(command, cwd=reference.parent, check=False, capture_output=True).returncode == 0


def test_a_kept_payload_that_was_damaged_is_fetched_again(store, reference):
    reference.with_name(PAYLOAD.name).write_text(PAYLOAD.text[:-1])
    store.values = {PAYLOAD.name: PAYLOAD.packed()}
    assert boot.load_payload() == json.loads(PAYLOAD.text)
    assert reference.with_name(PAYLOAD.name).read_text() == PAYLOAD.text


def test_another_payload_under_the_name_is_reported_with_both_checksums(store, reference):
    other = Payload(PAYLOAD.text + "\n")
    store.values = {PAYLOAD.name: other.packed()}
    with pytest.raises(boot.Failure, match=f"{PAYLOAD.name}: sha256 is {other.sha256}, expected {PAYLOAD.sha256}"):
        boot.load_payload()
    assert list(reference.parent.iterdir()) == [reference]


@pytest.mark.parametrize("length", [1, 2, 3, 4, 16, 40, -4, -1])
def test_a_truncated_payload_is_reported_and_leaves_no_file(store, reference, length):
    store.values = {PAYLOAD.name: PAYLOAD.packed()[:length]}
    with pytest.raises(boot.Failure, match=f"{PAYLOAD.name} is truncated or damaged"):
        boot.load_payload()
    assert list(reference.parent.iterdir()) == [reference]


@pytest.mark.parametrize(("silent", "kind"), [(True, boot.StoreSilent), (False, boot.Failure)])
def test_a_host_without_its_payload_waits_for_the_store(store, reference, silent, kind):
    store.silent = silent
    with pytest.raises(kind):
        boot.load_payload()
    assert list(reference.parent.iterdir()) == [reference]


def test_nothing_is_done_before_the_payload_is_complete(store, reference, monkeypatch, capsys):
    """The store does not answer, then refuses, then returns a wrong payload, and then the right one."""
    states = [{}, {PAYLOAD.name: Payload("{}").packed()}, {PAYLOAD.name: PAYLOAD.packed()}]
    done = []

    def next_state(_seconds):
        assert done == []
        store.silent, store.values = False, states.pop(0)

    monkeypatch.setattr(boot, "until_done", partial(boot.until_done, sleep=next_state))
    monkeypatch.setattr(boot, "steps", lambda config: [("files", lambda: done.append(config))])
    store.silent = True
    boot.main()
    assert (states, done) == ([], [json.loads(PAYLOAD.text)])
    output = capsys.readouterr().out
    order = [output.index(words) for words in ("no route to host", "HTTP 403", "sha256 is", "fetched", "in place")]
    assert order == sorted(order)
    assert output.count("FAILED at payload") == 3
