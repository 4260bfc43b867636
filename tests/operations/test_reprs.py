"""Objects with secrets in a trace or a log."""

from __future__ import annotations

import pytest

from clients.access import Access
from operations.provisioning.trust import Login
from stacks.certificates import Signed
from tests.operations.conftest import outputs

SECRET = "nobody-may-read-this"
HOLDERS = [
    Access(outputs(), "cert", SECRET, "cert", SECRET, SECRET, {"main": SECRET}, SECRET),
    Login("root", SECRET, "./menagerie secret jaguar bmc-sjc1"),
    Signed("cert", SECRET),
]


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda holder: type(holder).__name__)
def test_representations_do_not_show_secrets(holder: object) -> None:
    assert SECRET in str(vars(holder))
    assert SECRET not in f"{holder!r} {holder}"
