"""Members of etcds and API servers: where they are, what they boot from, and what replaces them."""

from __future__ import annotations

import base64
import json
import re

from cluster.files import PAYLOAD_DIGEST
from cluster.sources import source_of
from components.control_plane.ports import API_PORT, KONNECTIVITY_PORT
from etcd.members import members, settings
from network.addresses import ROLES
from sandbox.simcloud.values import at, plain
from stacks.azure import machines
from stacks.azure.etcd import disk_of
from stacks.payloads import payloads, worker_payloads

KINDS = {"premium_ssd_v2": "PremiumV2_LRS", "ultra_ssd": "UltraSSD_LRS"}


def all_members(account):
    return [member for role in ROLES for member in members(account.cluster, role, account.plan)]


def models(account):
    """Return the properties of machines, single ones and those of scale sets."""
    machines = account.of("compute:VirtualMachine")
    return machines + [scale_set["virtualMachineProfile"] for scale_set in account.of("compute:VirtualMachineScaleSet")]


def test_members_are_in_their_zones_with_their_addresses(account):
    hosts = {member.host: (member.zone, str(member.address)) for member in all_members(account)}
    addresses = {
        record.id: record.inputs["ipConfigurations"][0] for record in account.records("network:NetworkInterface")
    }
    placed = {}
    for machine in account.of("compute:VirtualMachine"):
        (interface,) = machine["networkProfile"]["networkInterfaces"]
        address = addresses[interface["id"]]
        assert address["subnet"]["id"].endswith("/subnets/etcd")
        assert address["privateIPAllocationMethod"] == "Static"
        assert machine["osProfile"]["computerName"] == machine["vmName"]
        (zone,) = machine["zones"]
        placed[machine["vmName"]] = (zone, address["privateIPAddress"])
    assert placed == hosts


def test_each_member_has_its_own_disk_in_its_zone_as_in_the_spec(account):
    expected = {}
    for role in ROLES:
        etcd = settings(account.cluster, role)
        for member in members(account.cluster, role, account.plan) if etcd.disk != "local-nvme" else ():
            expected[member.name] = ([member.zone], KINDS[etcd.disk], etcd.disk_size // 2**30, etcd.iops)
    declared = {
        disk["diskName"]: (disk["zones"], disk["sku"]["name"], disk["diskSizeGB"], disk["diskIOPSReadWrite"])
        for disk in account.of("compute:Disk")
    }
    assert declared == expected


def test_a_host_finds_each_disk_where_it_is_attached(account):
    disks = {record.id: record.inputs["diskName"] for record in account.records("compute:Disk")}
    by_name = {member.name: role for role in ROLES for member in members(account.cluster, role, account.plan)}
    attached = 0
    for machine in account.of("compute:VirtualMachine"):
        for data in machine["storageProfile"]["dataDisks"]:
            role = by_name[disks[data["managedDisk"]["id"]]]
            assert f"/dev/disk/azure/data/by-lun/{data['lun']}" in disk_of(account.cluster, role).devices
            assert (data["deleteOption"], data["caching"]) == ("Detach", "None")
            attached += 1
    assert attached == len(disks)


def test_local_disks_are_searched_only_among_local_ones(wide):
    assert all("local" in link or "Direct_Disk" in link for link in disk_of(wide.cluster, "events").devices)


def test_every_disk_is_encrypted_with_the_clusters_key(account):
    (chosen,) = account.records("compute:DiskEncryptionSet")
    (key,) = account.records("keyvault:Key")
    assert chosen.inputs["activeKey"]["keyUrl"] == key.outputs["keyUriWithVersion"]
    assert chosen.inputs["rotationToLatestKeyVersionEnabled"]
    for disk in account.of("compute:Disk"):
        assert disk["encryption"]["diskEncryptionSetId"] == chosen.id
        assert (disk["networkAccessPolicy"], disk["publicNetworkAccess"]) == ("DenyAll", "Disabled")
    for model in models(account):
        assert model["storageProfile"]["osDisk"]["managedDisk"]["diskEncryptionSet"]["id"] == chosen.id
        assert model["securityProfile"]["encryptionAtHost"] is True


def test_hosts_use_secure_boot_where_azure_and_drivers_permit_it(wide):
    boot_by_size = {}
    for scale_set in wide.of("compute:VirtualMachineScaleSet"):
        security = scale_set["virtualMachineProfile"]["securityProfile"]
        boot = security.get("uefiSettings", {}).get("secureBootEnabled")
        boot_by_size[scale_set["sku"]["name"]] = (security.get("securityType"), boot)
    assert boot_by_size["Standard_D4s_v5"] == ("TrustedLaunch", True)
    assert boot_by_size["Standard_ND96isr_H100_v5"] == ("TrustedLaunch", False)
    assert boot_by_size["Standard_ND96amsr_A100_v4"] == (None, None)
    machines = wide.of("compute:VirtualMachine")
    assert all(machine["securityProfile"]["uefiSettings"]["secureBootEnabled"] for machine in machines)


def test_nobody_can_log_in(account):
    for model in models(account):
        profile = model["osProfile"]
        assert "adminPassword" not in profile
        assert profile["linuxConfiguration"]["disablePasswordAuthentication"] is True
        assert profile["allowExtensionOperations"] is False


def test_user_data_is_within_azures_limit_and_contains_only_names_of_secrets(account, text_of):
    secrets = [str(value) for secret_ in account.of("keyvault:Secret") for value in at(secret_, "properties.value")]
    bundles = [json.loads(secret) for secret in secrets if secret.startswith("{")]
    # Public certificates that workers need, and a digest that the user data itself contains.
    public = {"kubernetes-ca.crt", "kubernetes-ca-signing.crt", "kubelet-serving-ca.crt"}
    public |= {"kubelet-serving-ca-signing.crt", PAYLOAD_DIGEST}
    values = [value for bundle in bundles for name, value in bundle.items() if name not in public]
    lines = {line for value in values for line in re.findall(r"[A-Za-z0-9+/]{48,}", value)}
    assert len(lines) > 20
    for model in models(account):
        text = text_of(model["osProfile"]["customData"])
        assert len(base64.b64decode(model["osProfile"]["customData"])) <= 65535
        assert "PRIVATE KEY" not in text
        assert not any(line in text for line in lines)


def held(text):
    """Return the values that the program in user data contains."""
    (values,) = re.findall(r"HELD: dict\[str, str\] = json.loads\(r\"{3}(.*)\"{3}\)", text)
    return json.loads(values)


def test_user_data_contains_the_vaults_names_of_the_hosts_secrets(account, text_of):
    stored = {record.outputs["name"] for record in account.records("keyvault:Secret")}
    (vault,) = account.records("keyvault:Vault")
    uri = vault.outputs["properties"]["vaultUri"].rstrip("/")
    for model in models(account):
        text = text_of(model["osProfile"]["customData"])
        (names,) = re.findall(r'RENAMED = "(.*)"', text)
        names_in_vault = dict(pair.split("=") for pair in names.split())
        assert names_in_vault
        assert set(names_in_vault.values()) <= stored
        assert f'connect("{uri}")' in text


def test_a_payload_is_in_the_user_data_and_not_in_the_vault(account, text_of):
    arguments = (account.cluster, account.plan, source_of(account.cluster.spec))
    machine = machines.program(account.cluster)
    all_payloads = payloads(*arguments, disks=lambda role: disk_of(account.cluster, role), machine=machine)
    all_payloads |= worker_payloads(*arguments)
    packed = {payload.name: payload.packed() for payload in all_payloads.values()}
    for model in models(account):
        text = text_of(model["osProfile"]["customData"])
        (name,) = re.findall(r'content: "[0-9a-f]{64}  (payload-\w+)', text)
        assert held(text)[name] == packed[name]
    assert not [record for record in account.records("keyvault:Secret") if "::payload-" in record.urn]


def test_workers_get_the_cas_to_trust_in_their_user_data(account, text_of):
    pools = [record for record in account.records("compute:VirtualMachineScaleSet") if "::pool-" in record.urn]
    assert pools
    for pool in pools:
        values = held(text_of(plain(pool.inputs)["virtualMachineProfile"]["osProfile"]["customData"]))
        assert values["kubernetes-ca.crt"].startswith("-----BEGIN CERTIFICATE-----")
        assert values["kubelet-serving-ca.crt"].startswith("-----BEGIN CERTIFICATE-----")
        assert len(values) == 3


def test_existing_machines_keep_their_image_and_user_data(account):
    """A new payload changes the user data of all machines at once."""
    kind = "azure-native:compute:VirtualMachine"
    machines = {
        urn.rpartition("::")[2]: resource for urn, resource in account.state().items() if resource["type"] == kind
    }
    assert set(machines) == {member.host for member in all_members(account)}
    for name, machine in machines.items():
        assert set(machine["ignoreChanges"]) == {"osProfile.customData", "storageProfile.imageReference"}, name
    locks = {lock["scope"] for lock in account.of("authorization:ManagementLockByScope")}
    assert locks == {record.id for record in account.records("compute:VirtualMachine")}


def test_api_servers_are_a_group_across_all_zones_watched_by_the_balancers_probe(account):
    plane = account.cluster.spec.control_plane
    group = account.called("compute:VirtualMachineScaleSet", "api-servers").inputs
    balancer = account.called("network:LoadBalancer", "api")
    probe = group["virtualMachineProfile"]["networkProfile"]["healthProbe"]["id"]
    assert group["zones"] == list(map(str, plane.zones))
    assert group["sku"]["capacity"] == plane.api_servers
    assert probe == f"{balancer.id}/probes/ready"
    assert group["automaticRepairsPolicy"] == {"enabled": True, "gracePeriod": "PT30M", "repairAction": "Replace"}
    rolling = group["upgradePolicy"]["rollingUpgradePolicy"]
    assert (group["upgradePolicy"]["mode"], rolling["maxSurge"]) == ("Rolling", True)
    assert rolling["maxBatchInstancePercent"] * plane.api_servers // 100 <= 1


def test_the_balancer_is_internal_with_a_fixed_address_and_probes_readiness_without_events(account):
    balancer = plain(account.called("network:LoadBalancer", "api").inputs)
    (frontend,) = balancer["frontendIPConfigurations"]
    (probe,) = balancer["probes"]
    assert [frontend["privateIPAddress"]] == [str(address) for address in account.plan.balancers]
    assert frontend["zones"] == ["1", "2", "3"]
    assert frontend["subnet"]["id"].endswith("/subnets/api-servers")
    assert (probe["protocol"], probe["port"]) == ("Https", API_PORT)
    path, _, query = probe["requestPath"].partition("?")
    assert path == "/readyz"
    assert set(query.split("&")) == {"exclude=etcd-override-0", "exclude=etcd-override-readiness-0"}
    rules = {(rule["frontendPort"], rule["backendPort"]) for rule in balancer["loadBalancingRules"]}
    assert rules == {(API_PORT, API_PORT), (KONNECTIVITY_PORT, KONNECTIVITY_PORT)}
    assert all(rule["probe"]["id"].endswith("/probes/ready") for rule in balancer["loadBalancingRules"])


def test_operators_on_the_internet_have_a_separate_balancer_with_only_the_apis_port(wide):
    address = wide.called("network:PublicIPAddress", "api-public")
    public = wide.called("network:LoadBalancer", "api-public")
    balancer = plain(public.inputs)
    (frontend,), (rule,), (probe,) = (
        balancer[part] for part in ("frontendIPConfigurations", "loadBalancingRules", "probes")
    )
    assert frontend["publicIPAddress"]["id"] == address.id
    assert (address.inputs["zones"], address.inputs["sku"]["name"]) == (["1", "2", "3"], "Standard")
    assert (rule["frontendPort"], rule["backendPort"]) == (API_PORT, API_PORT)
    assert rule["disableOutboundSnat"] is True
    inside = plain(wide.called("network:LoadBalancer", "api").inputs)
    assert probe == inside["probes"][0]


def test_api_servers_are_behind_both_balancers_and_the_internal_one_decides_health(wide):
    group = plain(wide.called("compute:VirtualMachineScaleSet", "api-servers").inputs)
    network = group["virtualMachineProfile"]["networkProfile"]
    (interface,) = network["networkInterfaceConfigurations"]
    pools = [pool["id"] for pool in interface["ipConfigurations"][0]["loadBalancerBackendAddressPools"]]
    names = ("api", "api-public")
    balancers = [wide.called("network:LoadBalancer", name).id for name in names]
    assert pools == [f"{balancer}/backendAddressPools/api-servers" for balancer in balancers]
    assert network["healthProbe"]["id"] == f"{balancers[0]}/probes/ready"


def test_outputs_say_what_the_public_name_must_point_at(wide):
    address = wide.called("network:PublicIPAddress", "api-public").outputs["ipAddress"]
    assert wide.outputs()["public_target"] == address
    assert wide.outputs()["public_name"] == "api.wide.example.org"


def test_without_a_public_endpoint_there_is_only_an_internal_balancer(koala):
    assert len(koala.records("network:LoadBalancer")) == 1
    assert koala.outputs()["public_target"] is None
