"""Clouds behind the door of the autoscaler's tests: moto with what it lacks, and fakes of the documented HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import botocore.session
import pytest

from tests.doctor.fake_aws import Amazon
from tests.doctor.fake_azure import Subscription
from tests.doctor.fake_google import Project
from tests.scheduling.clouds.conftest import home, opened, pauses, trust
from tests.scheduling.clouds.door import Door, Upstream
from tests.stacks.fake_stores import moto

__all__ = ["home", "opened", "pauses", "trust"]


@pytest.fixture(scope="session", autouse=True)
def models() -> Iterator[None]:
    """Let all sessions share the models of botocore, which take a second to parse for EC2."""
    shared = cache(botocore.session.create_loader)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", lambda path=None: shared(path))
        yield


@pytest.fixture(scope="session")
def moto_at() -> Iterator[tuple[str, int]]:
    server = moto()
    yield server.get_host_and_port()
    server.stop()


@pytest.fixture
def amazon(moto_at: tuple[str, int]) -> Amazon:
    """An account that is ready for examples/aws-small."""
    return Amazon(moto_at)


@pytest.fixture
def aws_door(amazon: Amazon, opened: Callable[[Upstream], Door], monkeypatch: pytest.MonkeyPatch) -> Door:
    for name, value in (("ACCESS_KEY_ID", "a-key"), ("SECRET_ACCESS_KEY", "a-secret"), ("SESSION_TOKEN", "a-token")):
        monkeypatch.setenv(f"AWS_{name}", value)
    return opened(amazon.answer)


@pytest.fixture
def subscription() -> Subscription:
    """A subscription that is ready for examples/azure-small."""
    return Subscription()


@pytest.fixture
def azure_door(subscription: Subscription, opened: Callable[[Upstream], Door], monkeypatch: pytest.MonkeyPatch) -> Door:
    own = {"CLIENT_ID": "a-client", "CLIENT_SECRET": "a-secret", "TENANT_ID": "a-tenant", "SUBSCRIPTION_ID": "a-sub"}
    for name, value in own.items():
        monkeypatch.setenv(f"ARM_{name}", value)
    return opened(subscription.answer)


@pytest.fixture
def project() -> Project:
    """A project that is ready for examples/gcp-small."""
    return Project()


@pytest.fixture
def google_door(project: Project, opened: Callable[[Upstream], Door], monkeypatch: pytest.MonkeyPatch) -> Door:
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "t0ken")
    monkeypatch.setenv("GOOGLE_PROJECT", "a-project")
    return opened(project.answer)
