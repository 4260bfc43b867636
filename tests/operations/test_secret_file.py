from __future__ import annotations

import os
import subprocess

import pytest

from clients.secret_file import secret_files


def test_a_child_process_can_read_the_file_and_other_users_can_not() -> None:
    with secret_files("one\n", "two\n") as paths:
        output = subprocess.run(["cat", *paths], capture_output=True, text=True, check=True).stdout
        assert output == "one\ntwo\n"
        assert {os.stat(path).st_mode & 0o777 for path in paths} == {0o600}


def test_the_file_is_on_no_file_system_and_is_gone_after_the_block() -> None:
    with secret_files("key") as (path,):
        assert os.readlink(path).startswith("/memfd:")
        assert os.stat(path).st_nlink == 0
    with pytest.raises(FileNotFoundError):
        os.stat(path)


def test_the_file_can_be_read_repeatedly() -> None:
    with secret_files("key") as (path,):
        assert [path.read_text() for _ in range(3)] == ["key"] * 3
