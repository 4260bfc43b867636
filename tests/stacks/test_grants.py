"""When the hook of a grant asks the engine to try again, and what it says; tests/simcloud/test_engine.py runs it in the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pulumi
import pytest

from stacks import grants
from stacks.azure import roles
from stacks.gcp import keys

T = TypeVar("T")

ACCOUNT = "urn:pulumi:koala::menagerie::azure-native:storage:StorageAccount::koala"
NOT_YET = (
    'Status=409 Code="KeyVaultAuthenticationFailure" Message="The operation failed because of authentication issue."'
)


def failed(*errors: str, operation: str = "create") -> pulumi.ErrorHookArgs:
    """errors: newest first, as the engine passes them."""
    return pulumi.ErrorHookArgs(ACCOUNT, "", "koala", "", failed_operation=operation, errors=list(errors))


def done(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return its result. `asyncio.run` would leave the thread without a loop, which other tests of programs need."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()


def ask(wait: grants.Wait, *errors: str, operation: str = "create") -> bool:
    """Return whether the engine would try again; no time passes."""
    with grants.simulated_time():
        return done(wait(failed(*errors, operation=operation)))


@pytest.fixture
def wait() -> grants.Wait:
    return grants.Wait("the identity of storage may use the key", roles.SLOW)


@pytest.mark.parametrize(
    ("slow", "refusal"),
    [
        (roles.SLOW, NOT_YET),
        (roles.SLOW, 'Code="KeyVaultAccessForbidden" Message="Unable to access key vault resource"'),
        (roles.SLOW, "If role assignments, deny assignments or role definitions were changed recently, please observe"),
        (roles.SLOW, 'Code="AuthorizationPermissionMismatch" Message="This request is not authorized"'),
        (
            roles.SLOW,
            'resource partially created but read failed Status=404 Code="ResourceNotFound": Code="KeyVaultAccessForbidden"',
        ),
        (keys.SLOW, "1 error occurred:\n\t* googleapi: Error 403: Permission denied on Cloud KMS key. Please ensure that"),
        (keys.SLOW, "Error 400: Cloud KMS error when using key k: Permission 'cloudkms.cryptoKeyVersions.useToEncrypt' denied"),
        (keys.SLOW, "Error 403: Permission 'cloudkms.cryptoKeyVersions.useToDecrypt' denied on resource 'k'"),
    ],
)  # fmt: skip
def test_a_refusal_for_lack_of_a_grant_is_tried_again(slow: grants.SlowGrants, refusal: str) -> None:
    assert ask(grants.Wait("a grant", slow), refusal)


@pytest.mark.parametrize(
    "error",
    [
        'Status=403 Code="AuthorizationFailed" Message="The client does not have authorization to perform action"',
        'Status=409 Code="StorageAccountAlreadyTaken" Message="The storage account named koala is already taken."',
        "cannot create already existing resource '/subscriptions/0/resourceGroups/koala'",
        "googleapi: Error 403: Permission denied on Cloud KMS key",  # another cloud's
    ],
)
def test_every_other_error_fails_at_once(wait: grants.Wait, error: str) -> None:
    assert not ask(wait, error)
    assert not ask(wait, error, NOT_YET)


def test_a_failed_deletion_is_never_repeated(wait: grants.Wait) -> None:
    assert not ask(wait, NOT_YET, operation="delete")


@pytest.mark.parametrize(
    ("slow", "error"),
    [
        (roles.SLOW, f"1 error occurred:\n\t* {NOT_YET}\n\n"),
        (
            keys.SLOW,
            f"1 error occurred:\n\t* creating {ACCOUNT}: 1 error occurred:\n\t* Permission denied on Cloud KMS key\n\n",
        ),
    ],
    ids=["azure", "gcp"],
)
def test_a_resource_that_exists_is_not_created_again_but_left_to_the_next_run(
    slow: grants.SlowGrants, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The engine keeps it in the state, and would lose it if a second creation were refused."""
    assert not ask(grants.Wait("a grant", slow), error)
    assert "koala exists, but could not use its grant yet" in capsys.readouterr().err
    assert ask(grants.Wait("a grant", slow), error, operation="update")


def test_it_gives_up_after_a_quarter_of_an_hour_and_names_the_grant(wait: grants.Wait) -> None:
    async def until_the_end() -> int:
        errors = [NOT_YET]
        while await wait(failed(*errors)):
            errors.insert(0, NOT_YET)
        return len(errors)

    with grants.simulated_time(), pytest.raises(TimeoutError) as end:
        done(until_the_end())
    text = str(end.value)
    assert text.startswith("the grant does not work after 15 min: the identity of storage may use the key.")
    assert "run the same command again" in text
    assert text.endswith(f"Azure said: {NOT_YET}")


@pytest.mark.parametrize("slow", [roles.SLOW, keys.SLOW], ids=["azure", "gcp"])
def test_the_engine_allows_as_many_tries_as_the_time_holds(slow: grants.SlowGrants) -> None:
    async def tries() -> int:
        wait, errors = grants.Wait("a grant", slow), ["Code=KeyVaultAccessForbidden Permission denied on Cloud KMS key"]
        try:
            while await wait(failed(*errors)):
                errors.append(errors[0])
        except TimeoutError:
            pass
        return len(errors)

    with grants.simulated_time():
        assert 20 < done(tries()) < 100


def test_each_resource_has_its_own_time(wait: grants.Wait) -> None:
    async def two() -> bool:
        for _ in range(29):
            await wait(failed(*[NOT_YET] * 4))
        other = pulumi.ErrorHookArgs("urn:other", "", "other", "", failed_operation="create", errors=[NOT_YET])
        return all([await wait(other) for _ in range(25)])

    with grants.simulated_time():
        assert done(two())
