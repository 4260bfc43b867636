#!/bin/sh
# Chooses the system's disk of jaguar-gpu-0001: exactly one must fit the rule, and hold nothing. Else nothing is written.
# Only what busybox has. A disk is empty when it has no partition and its first and last 4 MiB are zeros: that is where
# partition tables, LVM, MD, file systems, ZFS and Ceph keep what they are known by.
set -u
root=${MENAGERIE_ROOT:-}
pattern='nvme-Micron_7450*'
least=0
most=1099511627776
wipe_until=0
mib=1048576

tell() {
    echo "menagerie: $2"
    logger -t menagerie "$2" 2>/dev/null
    wget -q -O /dev/null http://10.8.255.5:8642/refused/02-00-0a-08-01-0b/"$1" 2>/dev/null
}

fits() {
    [ -d "$root/sys/block/$1" ] || return 1
    [ "$(cat "$root/sys/block/$1/removable")" = 0 ] && [ "$(cat "$root/sys/block/$1/ro")" = 0 ] || return 1
    bytes=$(($(cat "$root/sys/block/$1/size") * 512))
    [ "$bytes" -gt $((8 * mib)) ] && [ "$bytes" -ge "$least" ] && { [ "$most" -eq 0 ] || [ "$bytes" -le "$most" ]; }
}

# A disk from a MiB on, so many sectors. Its last MiB is seldom a whole one.
part() { dd if="$1" bs=512 skip=$(($2 * 2048)) count="$3" 2>/dev/null; }

# Of a disk that can't be read whole nobody knows what it holds.
is_zeros() { [ "$(part "$@" | wc -c)" -eq $(($3 * 512)) ] && [ "$(part "$@" | tr -d '\000' | head -c 1 | wc -c)" -eq 0 ]; }

holds() {
    for part in "$root/sys/block/$1/$1"*/partition; do [ -e "$part" ] && return 0; done
    is_zeros "$root/dev/$1" 0 8192 && is_zeros "$root/dev/$1" "$2" "$3" && return 1
    return 0
}

found=""
for link in "$root"/dev/disk/by-id/$pattern; do
    name=$(basename "$(readlink -f "$link")")
    case " $found " in *" $name "*) continue ;; esac
    if fits "$name"; then found="$found $name"; fi
done
set -- $found
if [ $# -eq 0 ]; then
    tell no-disk "no disk fits the rule: $pattern, $least to $most bytes"
    exit 1
fi
if [ $# -gt 1 ]; then
    tell several-disks "more than one disk fits the rule: $*"
    exit 1
fi

sectors=$(cat "$root/sys/block/$1/size")
last=$((sectors / 2048 - 4))
rest=$((sectors - last * 2048))
if holds "$1" "$last" "$rest"; then
    if [ "$wipe_until" -le "$(date +%s)" ]; then
        tell holds-something "/dev/$1 holds something; render with --wipe to overwrite it"
        exit 1
    fi
    dd if=/dev/zero of="$root/dev/$1" bs=512 count=8192 conv=notrunc 2>/dev/null
    dd if=/dev/zero of="$root/dev/$1" bs=512 seek=$((last * 2048)) count="$rest" conv=notrunc 2>/dev/null
fi
debconf-set partman-auto/disk "/dev/$1"
debconf-set grub-installer/bootdev "/dev/$1"
