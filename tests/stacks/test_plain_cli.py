"""The ordinary CLI: `pulumi preview`, `up` and `destroy` of the checkout's own Pulumi.yaml and __main__.py.

The language host is a stand-in that runs the commands of the real one (tests/stacks/language_host), unless
MENAGERIE_LANGUAGE_HOST names the folder of the real one. The clouds are simulated, and the state is in a folder.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cluster.spec import Cloud
from operations.plain import WITHOUT_RECORD
from stacks.plain import ALLOW_UNKNOWN
from stacks.validation.plugin import dynamic_resources
from tests.stacks.plain_checkout import LOGINS, STACKS, Checkout, checkout_of

STACK, PROJECT = STACKS[Cloud.GCP], "apes-prod"
UNKNOWN = "c3-standard-5"
PROVIDERS = "PULUMI_DEBUG_PROVIDERS"
TOKEN = LOGINS[Cloud.GCP]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    with checkout_of(Cloud.GCP, tmp_path_factory.mktemp("checkout")) as checkout_:
        yield checkout_


def test_the_cli_reports_a_missing_stack_and_missing_credentials_before_any_request(
    checkout: Checkout,
) -> None:
    code, output = checkout.pulumi("preview")
    assert code != 0
    assert f"no stack named '{STACK}' found" in output
    assert checkout.pulumi("stack", "init")[0] == 0
    code, output = checkout.pulumi("preview")
    assert code != 0
    assert f"{STACK} isn't ready to build" in output
    assert "no project is configured: set GOOGLE_PROJECT" in output
    assert "no credentials: run gcloud auth application-default login" in output
    assert f"./menagerie validate {STACK}" in output
    assert "Traceback" not in output
    assert list(checkout.world) == []


def test_an_environment_without_pip_is_refused_as_by_the_real_language_host(checkout: Checkout, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    whole = (checkout.folder / ".venv").readlink()
    (checkout.folder / ".venv").unlink()
    (checkout.folder / ".venv").symlink_to(tmp_path / "venv")
    try:
        code, output = checkout.pulumi("preview", **TOKEN)
    finally:
        (checkout.folder / ".venv").unlink()
        (checkout.folder / ".venv").symlink_to(whole)
    assert code != 0
    assert "failed to discover package requirements: calling `" in output
    assert "-m pip list --format json`: exit status 1" in output


def test_the_configuration_may_name_the_project_and_the_spec(checkout: Checkout) -> None:
    assert checkout.pulumi("config", "set", "gcp:project", PROJECT)[0] == 0
    code, output = checkout.pulumi("preview")
    assert code != 0
    assert "no project" not in output
    assert "no credentials" in output
    (checkout.folder / "elsewhere.yaml").write_text("name: nobody\n")
    assert checkout.pulumi("config", "set", "spec", "elsewhere.yaml")[0] == 0
    code, output = checkout.pulumi("preview", **TOKEN)
    assert code != 0
    assert "elsewhere.yaml:1:1: error[CFG-013] control_plane is missing" in output
    assert checkout.pulumi("config", "rm", "spec")[0] == 0


def test_a_wrong_spec_is_refused_as_by_check_and_an_unknown_machine_can_be_allowed(
    checkout: Checkout,
) -> None:
    pool = {"machine": UNKNOWN, "min": 2, "max": 12}
    checkout.write({"pools": {"cpu": pool}})
    try:
        code, output = checkout.pulumi("preview", **TOKEN)
        assert code != 0
        assert f"error[CLD-002] {UNKNOWN} isn't a gcp size" in output
        assert f"{ALLOW_UNKNOWN}=1 pulumi up" in output
        assert "Traceback" not in output
        # Without credentials the run ends right after the check of the spec, which is all that this test is about.
        _, output = checkout.pulumi("preview", **{ALLOW_UNKNOWN: "1"})
        assert f"warning[CLD-002] {UNKNOWN}" in output
        assert "no credentials" in output
    finally:
        checkout.write({})


def test_a_cluster_is_planned_created_shared_with_menagerie_and_deleted_after_its_release(checkout: Checkout) -> None:
    there_and_back(checkout)
    written = yaml.safe_load((checkout.folder / f"Pulumi.{STACK}.yaml").read_text())
    assert written.pop("encryptionsalt")
    assert written == {"config": {"gcp:project": PROJECT, "menagerie:release": "true"}}
    assert checkout.pulumi("config", "rm", "release")[0] == 0


@pytest.mark.soak
@pytest.mark.parametrize("cloud", [Cloud.AWS, Cloud.AZURE])
def test_clusters_of_the_other_clouds_go_the_same_way(cloud: Cloud, tmp_path: Path) -> None:
    with checkout_of(cloud, tmp_path) as checkout:
        code, output = checkout.pulumi("stack", "init")
        assert code == 0, output
        code, output = checkout.pulumi("preview")
        assert code != 0
        assert f"{checkout.stack} isn't ready to build" in output
        assert "Traceback" not in output
        there_and_back(checkout)


def there_and_back(checkout: Checkout) -> None:
    """Create a cluster with the ordinary CLI, change it with menagerie, release and delete it with the CLI.

    Nothing simulates the bucket of records, so it can't be read once the cluster is built.
    """
    login = checkout.login
    code, output = checkout.pulumi("preview", **login)
    assert code == 0, output
    assert "to create" in output
    assert list(checkout.world) == []
    code, output = checkout.pulumi("up", "--yes", "--skip-preview", **login)
    assert code == 0, output
    count = len(list(checkout.world))
    assert count > 50
    code, output = checkout.pulumi("preview", "--expect-no-changes", **login)
    assert code == 0, output
    assert "pulumi up would be refused now: can't use bucket" in output
    checkout.continued_by_menagerie()
    code, output = checkout.pulumi("preview", "--expect-no-changes", **login)
    assert code == 0, output
    assert checkout.pulumi("config", "set", "release", "true")[0] == 0
    # Plugins that the CLI starts have served keys three times by now; one process serves them from here on.
    with dynamic_resources() as plugin:
        attached = {**login, PROVIDERS: f"{checkout.environment[PROVIDERS]},{plugin}"}
        code, output = checkout.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes", **attached)
        assert code == 0, output
        exported_and_imported(checkout)
        code, output = checkout.pulumi("up", "--yes", "--skip-preview", **attached)
        assert code != 0
        assert f"{WITHOUT_RECORD}=1 pulumi up -s {checkout.stack}" in output
        assert "Traceback" not in output
        assert checkout.pulumi("stack", "output", "outputs")[0] == 0, "the refused run has lost the outputs"
        code, output = checkout.pulumi("up", "--yes", "--skip-preview", **attached, **{WITHOUT_RECORD: "1"})
        assert code == 0, output
        assert len(list(checkout.world)) == count
        code, output = checkout.pulumi("destroy", "--yes", "--skip-preview", **attached)
    assert code == 0, output
    assert list(checkout.world) == []


def exported_and_imported(checkout: Checkout) -> None:
    """Write the state to a file and read it back, as before an edit by hand."""
    file = checkout.folder / "state.json"
    assert checkout.pulumi("stack", "export", "--file", str(file))[0] == 0
    code, output = checkout.pulumi("stack", "import", "--file", str(file))
    assert code == 0, output
    file.unlink()


def test_the_engine_refuses_a_release_that_is_not_a_boolean(checkout: Checkout) -> None:
    assert checkout.pulumi("config", "set", "release", "soon")[0] == 0
    code, output = checkout.pulumi("preview", **TOKEN)
    assert code != 0
    assert "release" in output
    assert "boolean" in output
    assert checkout.pulumi("config", "rm", "release")[0] == 0
