from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from cluster import node_labels
from cluster.artefacts import ArtefactSource
from components.control_plane import (
    controller_manager,
    host_config,
    konnectivity,
    kube_apiserver,
    kubeadm,
    manifests,
    paths,
    refreshing,
    scheduler,
    service_unit,
    units,
)
from components.control_plane.host import phases, serving
from network.addresses import plan

GOLDEN = Path(__file__).parents[1] / "golden" / "lab" / "api"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


def documents(cluster):
    return {d["kind"]: d for d in yaml.safe_load_all(kubeadm.render(cluster, plan(cluster)))}


def test_the_files_of_an_api_server_host_match_the_golden_files(config):
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites them; review the difference."""
    rendered = {file.path.lstrip("/"): file.text for file in config.files if not file.path.endswith(".py")}
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        shutil.rmtree(GOLDEN, ignore_errors=True)
        for path, text in rendered.items():
            (GOLDEN / path).parent.mkdir(parents=True, exist_ok=True)
            (GOLDEN / path).write_text(text)
    kept = {str(path.relative_to(GOLDEN)): path.read_text() for path in GOLDEN.rglob("*") if path.is_file()}
    assert rendered == kept


def test_nothing_in_it_names_a_particular_host(lab, config):
    everything = "".join(file.text for file in config.files)
    assert [host.name for host in plan(lab).api_servers if host.name in everything] == []
    assert [host.address for host in plan(lab).api_servers if f"{host.address}:" in everything] == []


def test_adding_an_api_server_or_a_worker_changes_only_what_it_must(build, source):
    two, three = ({f.path: f for f in host_config(c, plan(c), source).files} for c in (
        build(), build({"control_plane": {"api_servers": 3}})
    ))  # fmt: skip
    assert [path for path in two if two[path] != three[path]] == ["/etc/systemd/system/konnectivity-server.service"]


def test_a_program_without_a_checksum_is_named(lab):
    with pytest.raises(KeyError, match="kube-apiserver"):
        host_config(lab, plan(lab), ArtefactSource(mirror=None, sha256={}))


def test_units_start_after_the_units_that_they_depend_on(lab):
    in_order = units.units(lab, plan(lab))
    assert [unit.name for unit in in_order] == [
        name for name in units.ORDER if name not in ("gangs.service", "join-tokens.service")
    ]
    for unit in in_order:
        ours = [before for before in unit.after if before != "network-online.target"]
        assert all(units.ORDER.index(before) < units.ORDER.index(unit.name) for before in ours)


def test_every_unit_is_sandboxed_and_none_is_enabled(lab):
    for unit in units.units(lab, plan(lab)):
        text = service_unit.render(unit)
        assert "\nCapabilityBoundingSet=\n" in text
        assert "\nProtectSystem=strict\n" in text
        assert "[Install]" not in text


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze on this machine")
def test_systemd_understands_every_line_of_every_unit(lab, tmp_path):
    paths = []
    for unit in units.units(lab, plan(lab)):
        paths.append(tmp_path / unit.name)
        # Ignore programs and users that this machine does not have.
        text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", service_unit.render(unit), flags=re.MULTILINE)
        paths[-1].write_text(re.sub(r"^(User|Group|SupplementaryGroups)=.*\n", "", text, flags=re.MULTILINE))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *paths], check=False, capture_output=True, text=True
    )
    assert [line for line in done.stderr.splitlines() if str(tmp_path) in line or "Unknown" in line] == []


@pytest.mark.programs
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_real_program_accepts_its_flags(lab, program, name):
    """With --help last, the program parses every flag before it with its type."""
    table = {
        # systemd replaces the variable by the address.
        "kube-apiserver": lambda: kube_apiserver.flags(lab, plan(lab)) | {"advertise-address": "10.77.0.10"},
        "kube-controller-manager": lambda: controller_manager.flags(lab),
        "kube-scheduler": lambda: scheduler.flags(lab, "/etc/kubernetes/menagerie/scheduler.yaml", "/x"),
    }[name]()
    words = [f"--{flag}={value}" for flag, value in table.items()]
    done = subprocess.run([program(name), *words, "--help"], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    refused = subprocess.run([program(name), *words, "--no-such-flag", "--help"], check=False, capture_output=True)
    assert refused.returncode != 0


@pytest.mark.programs
def test_the_real_konnectivity_programs_accept_their_flags(lab, program):
    words = [f"--{flag}={value}" for flag, value in konnectivity.flags(lab, "/x").items()]
    agent = konnectivity.agent(lab, plan(lab))["spec"]["template"]["spec"]["containers"][0]["args"]
    for name, given in (("proxy-server", words), ("proxy-agent", agent)):
        done = subprocess.run([program(name), *given, "--help"], check=False, capture_output=True, text=True)
        assert "unknown flag" not in done.stderr
        assert done.returncode == 0


@pytest.mark.programs
def test_the_real_kubeadm_accepts_its_configuration(lab, program, tmp_path):
    text = kubeadm.render(lab, plan(lab)).replace(kubeadm.OWN_ADDRESS, "10.77.0.11")
    (tmp_path / "kubeadm.yaml").write_text(text)
    command = [program("kubeadm"), "config", "validate", "--config", tmp_path / "kubeadm.yaml"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "ok")
    assert "unknown field" not in done.stderr
    assert "W1" not in done.stderr


def test_the_api_certificate_covers_the_endpoint_the_first_service_address_and_the_names(build):
    cluster = build({"network": {"domain": "jaguar.example", "services": "10.48.0.0/16"}})
    names = documents(cluster)["ClusterConfiguration"]["apiServer"]["certSANs"]
    assert {"10.77.0.10", "10.48.0.1", "127.0.0.1", "kubernetes.default.svc.jaguar.example"} <= set(names)


def test_the_api_certificate_covers_a_public_endpoint(build):
    public = {"name": "api.example.org", "operators": ["198.51.100.0/24"]}
    assert (
        "api.example.org"
        in documents(build({"control_plane": {"public": public}}))["ClusterConfiguration"]["apiServer"]["certSANs"]
    )


def test_pods_find_the_api_behind_the_load_balancer(lab, config):
    """Workers may have no route to the API servers' own addresses."""
    assert kube_apiserver.flags(lab, plan(lab))["advertise-address"] == f"${{{kube_apiserver.ADVERTISED}}}"
    service = next(unit for unit in units.units(lab, plan(lab)) if unit.name == "kube-apiserver.service")
    assert f"EnvironmentFile={paths.ADVERTISED}" in service.settings
    settings = json.loads(next(file.text for file in config.files if file.path.endswith("host.json")))
    assert settings["advertised"] == {"path": paths.ADVERTISED, "variable": kube_apiserver.ADVERTISED}
    assert settings["balancers"] == ["10.77.0.10"]


def test_jobs_at_a_site_survive_a_cut_tunnel_and_others_are_evicted_as_usual(build):
    cloud = build({"pools": {"workers": None, "gpu": {"machine": "large"}}, "sites": None})
    seconds = [kube_apiserver.flags(c, plan(c))["default-unreachable-toleration-seconds"] for c in (build(), cloud)]
    assert seconds == ["86400", "300"]


def test_a_single_api_server_never_sends_goaway(build):
    single = build({"control_plane": {"api_servers": 1}})
    assert "goaway-chance" not in kube_apiserver.flags(single, plan(single))
    assert konnectivity.flags(single, "")["server-count"] == "1"


def test_kube_proxy_keeps_the_hosts_connection_table(lab):
    conntrack = documents(lab)["KubeProxyConfiguration"]["conntrack"]
    assert conntrack["maxPerCore"] == conntrack["min"] == 0


def test_kubelets_get_the_clusters_dns(build):
    cluster = build({"network": {"dns_ip": "10.201.0.53", "max_pods": 60}})
    kubelet = documents(cluster)["KubeletConfiguration"]
    assert (kubelet["clusterDNS"], kubelet["maxPods"]) == (["10.201.0.53"], 60)
    service = next(o for o in manifests.objects(cluster, plan(cluster)) if o["kind"] == "Service")
    assert service["spec"]["clusterIP"] == "10.201.0.53"


def test_every_manifest_has_its_path_and_only_configmaps_yield(lab):
    listed = json.loads(manifests.render(lab, plan(lab)))
    paths = {item["path"]: item["force"] for item in listed}
    assert "/apis/apps/v1/namespaces/kube-system/daemonsets/konnectivity-agent" in paths
    assert "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/menagerie:flannel" in paths
    names = ("coredns", node_labels.POOLS, node_labels.TABLE)
    yielding = {path for path, force in paths.items() if not force}
    serving = {f"/api/v1/namespaces/menagerie-serving/configmaps/{name}" for name in ("hosts", "workers")}
    assert yielding == serving | {f"/api/v1/namespaces/kube-system/configmaps/{name}" for name in names}


def test_the_konnectivity_agent_has_no_more_rights_than_it_needs(lab):
    pod = konnectivity.agent(lab, plan(lab))["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert [volume for volume in pod["volumes"] if "hostPath" in volume] == []


def test_programs_and_manifests_agree_on_names_and_sockets(lab, config):
    text = next(file.text for file in config.files if file.path.endswith("manifests.json"))
    subjects = {s["name"] for item in json.loads(text) for s in item["object"].get("subjects", [])}
    settings = json.loads(next(file.text for file in config.files if file.path.endswith("host.json")))
    assert set(settings["users"].values()) <= subjects
    kubeconfigs = {path for unit in units.units(lab, plan(lab)) for _, path in unit.credentials}
    kubeconfigs.add(str(serving.KUBECONFIG))
    assert {f"{paths.KUBERNETES}/{name}.conf" for name in settings["users"]} <= kubeconfigs
    egress = next(file.text for file in config.files if file.path.endswith("egress.yaml"))
    assert f"udsName: {paths.KONNECTIVITY_SOCKET}\n" in egress


def test_a_program_is_restarted_for_every_file_that_systemd_copies_to_it(build):
    cluster = build({"pools": {"cpu": {"machine": "large"}}})
    watched: dict[str, set[str]] = {}
    for consumer in refreshing.refresh(cluster, plan(cluster)).consumers:
        watched.setdefault(consumer.unit, set()).update(consumer.paths)
    for unit in units.units(cluster, plan(cluster)):
        assert {path for _, path in unit.credentials} <= watched.get(unit.name, set()), unit.name


def test_every_watched_file_exists_on_the_host(lab, config):
    """It comes from the store or from kubeadm's phases."""
    users = json.loads(next(file.text for file in config.files if file.path.endswith("host.json")))
    created = {f"{paths.PKI}/{name}.{end}" for name in phases.LEAVES for end in ("crt", "key")}
    created |= {f"{paths.KUBERNETES}/{name}.conf" for name in phases.kubeconfigs(users)}
    watched = {path for consumer in config.refresh.consumers for path in consumer.paths}
    assert watched <= created | {secret.path for secret in config.secrets}


def test_the_controller_manager_signs_with_one_authority_and_publishes_all(config):
    """It refuses to sign with a file of several authorities."""
    text = next(file.text for file in config.files if file.path.endswith("/kube-controller-manager.service"))
    for signer in ("kubelet-client", "kube-apiserver-client"):
        assert f"--cluster-signing-{signer}-cert-file=/etc/kubernetes/pki/ca-signing.crt" in text
        assert f"--cluster-signing-{signer}-key-file=/etc/kubernetes/pki/ca.key" in text
    assert "--root-ca-file=/etc/kubernetes/pki/ca.crt" in text
    named = {secret.name: secret.path for secret in config.secrets}
    assert named["kubernetes-ca-signing.crt"] == "/etc/kubernetes/pki/ca-signing.crt"


def test_serving_certificates_of_kubelets_have_an_authority_that_api_servers_and_metrics_server_alone_trust_for_them(
    config,
):
    own = "/etc/kubernetes/pki/kubelet-serving-ca"
    units = {Path(file.path).name: file.text for file in config.files if file.path.startswith("/etc/systemd/")}
    naming = {f"{unit} {word}" for unit, text in units.items() for word in text.split() if own in word}
    assert naming == {
        f"kube-apiserver.service --kubelet-certificate-authority={own}.crt",
        f"kube-apiserver.service InaccessiblePaths=-{own}.key",
        f"kube-controller-manager.service --cluster-signing-kubelet-serving-cert-file={own}-signing.crt",
        f"kube-controller-manager.service --cluster-signing-kubelet-serving-key-file={own}.key",
        # For metrics-server, which asks kubelets too.
        f"metrics-keys.service LoadCredential=kubelet-serving-ca.crt:{own}.crt",
    }
    modes = {secret.path: secret.mode for secret in config.secrets if own in secret.path}
    assert modes == {f"{own}.crt": 0o644, f"{own}-signing.crt": 0o644, f"{own}.key": 0o600}
