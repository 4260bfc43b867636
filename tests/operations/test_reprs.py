"""What holds a secret, in a trace or a log."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from operations.access import Access
from provisioning.trust import Login
from scheduling.autoscaler.clouds.aws.signing import Credentials
from scheduling.autoscaler.clouds.bearer import Token
from scheduling.autoscaler.clouds.http import Request
from stacks.certificates import Signed
from tests.operations.conftest import outputs

SECRET = "nobody-may-read-this"
HOLDERS = [
    Access(outputs(), "cert", SECRET, "cert", SECRET, SECRET, {"main": SECRET}, SECRET),
    Credentials("AKIA", SECRET, SECRET),
    Login("root", SECRET),
    Request("GET", "https://cloud", {"Authorization": SECRET}, SECRET.encode()),
    Signed("cert", SECRET),
    Token(SECRET, datetime(2026, 1, 1, tzinfo=UTC)),
]


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda holder: type(holder).__name__)
def test_the_text_of_what_holds_a_secret_does_not_show_it(holder: object) -> None:
    assert SECRET in str(vars(holder))
    assert SECRET not in f"{holder!r} {holder}"
