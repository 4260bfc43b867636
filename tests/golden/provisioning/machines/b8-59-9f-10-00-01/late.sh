#!/bin/sh
# What lynx-gpu-1 is before its first boot: found by SSH, with its own address on its own card, and the right time.
set -eu
target=${MENAGERIE_TARGET:-/target}

mkdir -p "$target/etc/systemd/network" "$target/etc/chrony" "$target/etc/ssh/sshd_config.d"
cat > "$target/etc/systemd/network/10-menagerie.network" <<'END'
[Match]
PermanentMACAddress=b8:59:9f:10:00:01

[Link]
MTUBytes=9000

[Network]
Address=10.9.1.11/24
Gateway=10.9.1.1
LLDP=yes
END
printf 'auto lo\niface lo inet loopback\n' > "$target/etc/network/interfaces"
cat > "$target/etc/chrony/chrony.conf" <<'END'
server 10.9.255.1 iburst
server time.example.org iburst
makestep 1 3
rtcsync
driftfile /var/lib/chrony/chrony.drift
port 0
cmdport 0
END
cat > "$target/etc/ssh/sshd_config.d/10-menagerie.conf" <<'END'
PasswordAuthentication no
KbdInteractiveAuthentication no
END
cat > "$target/etc/resolv.conf" <<'END'
nameserver 10.9.255.1
END
home="$target/root"
mkdir -p "$home/.ssh"
cat > "$home/.ssh/authorized_keys" <<'END'
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICGTXi7fQMqDwQUUn6SciDSEk7spf23+bIK+GcfgbfcT ops@menagerie
END
chmod 700 "$home/.ssh"
chmod 600 "$home/.ssh/authorized_keys"
in-target systemctl enable systemd-networkd chrony ssh
# The key was made on this machine and its private half never leaves it. Told for an hour, for `machines install` may be
# interrupted and begun again.
again=0
while [ "$again" -lt 360 ]; do
    if in-target python3 -c 'import urllib.request as u; print(u.urlopen(u.Request("http://10.9.255.5:8642/key/b8-59-9f-10-00-01", data=open("/etc/ssh/ssh_host_ed25519_key.pub", "rb").read(), method="PUT"), timeout=20).status)'; then break; fi
    again=$((again + 1))
    sleep ${MENAGERIE_PAUSE:-10}
done
