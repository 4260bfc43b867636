#!/bin/sh
# Make an image for pools with GPUs out of Debian's image for a cloud. As root, while the image is built.
#
# usage: BRANCH=580 REPOSITORY=https://... NVSWITCH=true install.sh FOLDER
# FOLDER has packages.txt, nvidia-packages.txt, manifest.py, and nvidia.asc, the public key of the repository.
set -eu
folder=$1
export DEBIAN_FRONTEND=noninteractive
add="apt-get --yes --no-install-recommends -o DPkg::Lock::Timeout=300 install"

listed() {
    grep -v '^#' "$1"
}

# cloud-init and unattended-upgrades may still be at work.
command -v cloud-init >/dev/null && cloud-init status --wait >/dev/null || true
apt-get -o DPkg::Lock::Timeout=300 update
# shellcheck disable=SC2046,SC2086 # names of packages, one a word
$add $(listed "$folder/packages.txt")

# NVIDIA's driver: of one branch, from one repository, and held, as role gpu does at sites.
install -D -m 0644 "$folder/nvidia.asc" /etc/apt/keyrings/menagerie-nvidia.asc
cat >/etc/apt/preferences.d/menagerie-nvidia <<EOF
Package: *nvidia* cuda-drivers* libcuda*
Pin: version $BRANCH.*
Pin-Priority: 1001
EOF
cat >/etc/apt/sources.list.d/menagerie-nvidia.sources <<EOF
Types: deb
URIs: $REPOSITORY
Suites: /
Signed-By: /etc/apt/keyrings/menagerie-nvidia.asc
EOF
printf 'blacklist nouveau\noptions nouveau modeset=0\n' >/etc/modprobe.d/menagerie-gpu.conf
apt-get update
# Headers of the running kernel, and of each that follows it, so that the modules are compiled again.
# shellcheck disable=SC2046,SC2086
$add "linux-headers-$(uname -r)" linux-headers-cloud-amd64 $(listed "$folder/nvidia-packages.txt")
if [ "$NVSWITCH" = true ]; then
    $add nvidia-fabricmanager
    systemctl enable nvidia-fabricmanager.service
fi
dkms status | grep '^nvidia.*installed' || { echo "the driver's modules are not compiled: dkms status" >&2; exit 1; }
dpkg-query --show --showformat '${Package}\n' | grep -E '^(lib)?nvidia-|^libcuda' | grep -v container | xargs apt-mark hold
systemctl enable nvidia-persistenced.service nvidia-dcgm.service

# What is in it, and nothing that machines must not share.
install -d /usr/share/menagerie
python3 "$folder/manifest.py" >/usr/share/menagerie/image.json
apt-get clean
command -v cloud-init >/dev/null && cloud-init clean --logs || true
rm -f /etc/ssh/ssh_host_*
: >/etc/machine-id
