"""menagerie-gpu on made-up hosts: trees of /sys, and programs that answer like the real ones.

No GPU was available. The output of dpkg, apt, systemctl and nvidia-smi comes from their manuals: dpkg-query(1), apt-cache(8),
systemctl(1), NVIDIA's "nvidia-smi" manual and "Multi-Instance GPU User Guide".
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
import yaml
from menagerie_gpu import __main__ as program
from menagerie_gpu import driver
from menagerie_gpu.edge import Edge, Refused

from components.workers.roles import _Role

ROLE = Path(__file__).parents[2] / "roles" / "gpu"
NVIDIA, DRIVER = ["nvidia-driver-cuda", "nvidia-kernel-open-dkms"], "580.95.05-1"
SETTINGS = {
    "driver": {"source": "nvidia", "branch": "580", "packages": NVIDIA, "repository": "https://x/", "key": "KEY\n"},
    "packages": ["nvidia-container-toolkit"],
    "fabric_manager": ["nvidia-fabricmanager"],
    "persistence": True,
    "dcgm": False,
    "peermem": False,
    "mig": "leave",
    "mig_profiles": [],
}


class Made:
    """Answers of a made-up host; `Edge` provides its files."""

    def __init__(self, root, gpus, switches, modules, packages, candidate):
        super().__init__(root)
        self.ran, self.packages, self.candidate, self.held, self.active = (
            [],
            dict(packages),
            candidate,
            set(),
            set(),
        )
        self.cut: dict[str, list[str]] = {}
        self.mig: dict[str, str] = {}
        for kind, count in (("0x030200", gpus), ("0x068000", switches)):
            for number in range(count):
                bus = f"/sys/bus/pci/devices/0000:{number:02x}:{kind[4]}0.0"
                self.write(f"{bus}/vendor", "0x10de\n")
                self.write(f"{bus}/class", f"{kind}\n")
        for module in modules:
            self.load(module)

    def load(self, module):
        self.write(f"/sys/module/{module}/version", f"{self.packages.get(NVIDIA[0], DRIVER).split('-')[0]}\n")

    def run(self, *words):
        self.ran.append(" ".join(words))
        name = {"apt-get": "apt", "modprobe": "modprobe"}.get(words[0], words[0].replace("-", "_"))
        return getattr(self, name, lambda *_: (127, f"{words[0]} is not here"))(*words[1:])

    def dpkg_query(self, *_):
        rows = [f"{'hi' if name in self.held else 'ii'}  {name} {of}" for name, of in self.packages.items()]
        return 0, "\n".join([*rows, "rc  nvidia-old 470.1-1"])

    def apt_cache(self, *_):
        return 0, f"x:\n  Installed: (none)\n  Candidate: {self.candidate}\n  Version table:\n"

    def apt(self, *words):
        if "install" in words:
            names = [word for word in words[words.index("install") + 1 :] if not word.startswith("-")]
            self.packages |= {n: "1.18.0-1" if "container" in n else self.candidate for n in names}
        return 0, ""

    def apt_mark(self, verb, *names):
        self.held |= set(names)
        return 0, "\n".join(sorted(self.held))

    def modprobe(self, *words):
        if words[0] == "--remove":
            return 1, "modprobe: FATAL: Module nouveau is in use."
        self.load(words[0].replace("-", "_"))
        return 0, ""

    def systemctl(self, verb, *words):
        if verb == "enable":
            self.active.add(words[-1])
            return 0, ""
        state = "active" if words[0] in self.active else "inactive"
        return 0, f"LoadState=loaded\nActiveState={state}\nUnitFileState=enabled\n"

    def nvidia_ctk(self, *_):
        return 0, ""

    def nvidia_smi(self, *words):
        if words[0].startswith("--query"):
            return 0, "".join(f"{gpu}, {mode}\n" for gpu, mode in self.mig.items())
        if words[0] == "-i":
            self.mig[words[1]] = "Enabled" if words[3] == "1" else "Disabled"
            return 0, f"Enabled MIG Mode for GPU {words[1]}\n"
        gpu_, verb = words[2], words[3]
        if verb == "-cgi":
            self.cut[gpu_] = words[4].split(",")
        if verb == "-dgi":
            self.cut[gpu_] = []
        return 0, "".join(
            f"|   0  MIG {profile}          9        1          0:1     |\n" for profile in self.cut.get(gpu_, [])
        )


@pytest.fixture
def make(tmp_path):
    """Return a function that makes a host: make(gpus=1). Its `ran` lists the commands that ran."""
    host = type("Host", (Made, Edge), {})
    count = itertools.count()

    def made(gpus=1, switches=0, modules=(), packages=(), candidate=DRIVER):
        return host(str(tmp_path / str(next(count))), gpus, switches, modules, packages, candidate)

    return made


def converged(host, settings=SETTINGS):
    """Run the program. Return what it did."""
    return program.converge(host, settings, False, False)


def test_a_host_without_a_gpu_is_left_alone_and_says_so(make, capsys):
    host = make(gpus=0)
    assert program.main([], host) == 0
    assert capsys.readouterr().out == "no NVIDIA GPU on PCI: nothing to do\n"
    assert host.ran == []  # no program ran, and no settings were read


def test_a_driver_of_the_branch_is_installed_held_and_loaded(make):
    host = make()
    assert converged(host) == [
        "install nvidia-driver-cuda, nvidia-kernel-open-dkms, nvidia-container-toolkit",
        "hold nvidia-driver-cuda, nvidia-kernel-open-dkms",
        "load nvidia",
        "load nvidia_uvm",
        "start nvidia-persistenced.service",
    ]
    assert host.read("/etc/apt/preferences.d/menagerie-nvidia") == (
        "Package: *nvidia* cuda-drivers* libcuda*\nPin: version 580.*\nPin-Priority: 1001\n"
    )
    assert "Signed-By: /etc/apt/keyrings/menagerie-nvidia.asc" in host.read(driver.SOURCES)
    assert host.read(driver.KEYRING) == "KEY\n"
    assert [line for line in host.ran if "install" in line and "linux-headers-" in line]


def test_the_second_run_changes_nothing(make):
    host = make()
    converged(host)
    host.ran.clear()
    assert converged(host) == []
    assert [line for line in host.ran if line.startswith(("apt-get", "modprobe", "apt-mark hold"))] == []


def test_a_check_only_reports_what_would_be_done(make, capsys, monkeypatch):
    host = make()
    host.write(program.SETTINGS, json.dumps(SETTINGS))
    assert program.main(["--check"], host) == 2
    assert capsys.readouterr().out.startswith("install nvidia-driver-cuda")
    assert [line for line in host.ran if line.startswith(("apt-get", "modprobe", "nvidia-ctk"))] == []
    assert not host.exists(driver.PIN)


def test_a_repository_without_the_branch_is_named_and_nothing_is_installed(make):
    host = make(candidate="570.172.08-1")
    with pytest.raises(Refused, match=r"no package nvidia-driver-cuda of branch 580: apt has 570\.172\.08-1"):
        converged(host)
    assert [line for line in host.ran if " install " in line] == []


def test_a_loaded_driver_of_another_branch_is_not_replaced_under_running_pods(make):
    old = dict.fromkeys(NVIDIA, "570.172.08-1")
    host = make(modules=["nvidia", "nvidia_uvm"], packages=old)
    with pytest.raises(Refused, match=r"driver 570\.172\.08 is loaded, branch 580 is wanted; drain the host, run"):
        converged(host)
    assert program.converge(host, SETTINGS, False, True)[0].startswith("install nvidia-driver-cuda")


def test_a_driver_from_the_image_is_held_and_nothing_is_installed(make):
    settings = {**SETTINGS, "driver": {**SETTINGS["driver"], "source": "image"}}
    host = make(packages={**dict.fromkeys(NVIDIA, "550.1-1"), "nvidia-container-toolkit": "1.18.0-1", "bash": "5"})
    done = converged(host, settings)
    assert done[0] == "hold nvidia-driver-cuda, nvidia-kernel-open-dkms"
    assert [line for line in host.ran if line.startswith("apt-get")] == []


def test_nouveau_that_can_not_be_unloaded_needs_a_reboot(make):
    host = make(modules=["nouveau"])
    with pytest.raises(Refused, match=r"nouveau holds the GPU .* reboot: /etc/modprobe\.d/menagerie-gpu\.conf"):
        converged(host)


def test_nvswitches_need_the_fabric_manager(make):
    host = make(gpus=8, switches=4)
    done = converged(host)
    assert "nvidia-fabricmanager" in done[0]
    assert done[-1] == "start nvidia-fabricmanager.service"
    assert not any("fabricmanager" in step for step in converged(make()))


@pytest.mark.parametrize(("peermem", "loaded"), [(True, True), (False, False)])
def test_peermem_is_loaded_only_if_enabled(make, peermem, loaded):
    assert ("load nvidia_peermem" in converged(make(), {**SETTINGS, "peermem": peermem})) is loaded


def test_mig_cuts_each_gpu_once(make):
    settings = {**SETTINGS, "mig": "on", "mig_profiles": ["1g.10gb", "2g.20gb"]}
    host = make(gpus=2)
    host.mig = {"0": "Disabled", "1": "Enabled"}
    done = converged(host, settings)
    assert [step for step in done if "GPU" in step] == [
        "MIG on on GPU 0",
        "cut GPU 1 into 1g.10gb, 2g.20gb",
        "cut GPU 0 into 1g.10gb, 2g.20gb",
    ]
    assert converged(host, settings) == []
    other = {**settings, "mig_profiles": ["7g.80gb"]}
    assert [step for step in converged(host, other)] == ["cut GPU 0 into 7g.80gb", "cut GPU 1 into 7g.80gb"]


def test_mig_on_is_refused_on_a_gpu_without_mig_and_off_changes_nothing(make):
    host = make()
    host.mig = {"0": "[N/A]"}
    with pytest.raises(Refused, match="GPU 0 has no MIG"):
        converged(host, {**SETTINGS, "mig": "on", "mig_profiles": ["1g.10gb"]})
    assert converged(host, {**SETTINGS, "mig": "off"}) == []  # the previous run installed the driver


def test_a_ready_host_gets_a_new_cdi_specification(make, capsys):
    host = make()
    host.write(program.SETTINGS, json.dumps(SETTINGS))
    assert program.main([], host) == 0
    assert host.ran[-1] == "nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml"
    assert capsys.readouterr().out.endswith("1 GPUs are ready\n")


@pytest.mark.parametrize(
    ("name", "held"),
    [("nvidia-driver-cuda", True), ("libnvidia-ml1", True), ("libcuda1", True), ("nvidia-container-toolkit", False)]
    + [("libnvidia-container1", False), ("bash", False), ("cuda-drivers", True), ("nvidia-fabricmanager", True)],
)
def test_only_packages_of_the_driver_are_held(name, held):
    assert bool(driver.DRIVERS.match(name)) is held


@pytest.mark.parametrize("version", ["580.95.05-1", "1:580.95.05-0ubuntu1", "580.126.09"])
def test_the_branch_is_the_first_number(version):
    assert driver.branch_of(version) == "580"


@pytest.fixture
def role():
    """Return a function that renders the role's files from variables and defaults."""
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    return lambda **given: {
        file["path"]: file["text"]
        for file in _Role("gpu", {**defaults, "gpu_driver_source": "image", **given}).value("{{ _gpu_settings_files }}")
    }


def test_the_role_writes_every_setting_that_the_program_reads(make, role):
    settings = json.loads(role()["/etc/menagerie/gpu.json"])
    assert set(settings) == set(SETTINGS)
    assert set(settings["driver"]) == set(SETTINGS["driver"])
    assert (settings["driver"]["source"], settings["driver"]["branch"], settings["mig"]) == ("image", "580", "leave")
    assert converged(make(), {**settings, "dcgm": False}) == [
        "load nvidia",
        "load nvidia_uvm",
        "start nvidia-persistenced.service",
    ]


def test_nouveau_is_blacklisted_and_so_is_peermem_unless_enabled(role):
    path = "/etc/modprobe.d/menagerie-gpu.conf"
    assert "blacklist nouveau\n" in role()[path]
    assert "blacklist nvidia_peermem\n" in role()[path]
    assert "peermem" not in role(gpu_peermem=True)[path]


def test_containerd_finds_devices_through_the_roles_own_file(role):
    import tomllib

    text = role(gpu_containerd_config_version=3)["/etc/containerd/conf.d/60-gpu.toml"]
    document = tomllib.loads(text)
    assert document["version"] == 3
    assert document["plugins"]["io.containerd.cri.v1.runtime"]["cdi_spec_dirs"] == ["/etc/cdi", "/var/run/cdi"]
