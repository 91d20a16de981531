#!/bin/sh
# Runs the two commands of the README in a new Debian 12 with nothing but Python, git and certificates. Part of the release check.
# Needs root, debootstrap and Debian's mirror (DEBIAN_MIRROR names another). Arguments go to ./test. The folder (BARE_MACHINE, or a
# new one) is kept when a command fails.
set -eu
source=$(cd "$(dirname -- "$0")/.." && pwd)
machine=${BARE_MACHINE:-$(mktemp -d /var/tmp/greenroom-bare.XXXXXX)}
say() { printf '== %s\n' "$*" >&2; }

if [ ! -e "$machine/bin/sh" ]; then
    say "making Debian 12 in $machine"
    debootstrap --variant=minbase --include=python3,git,ca-certificates bookworm "$machine" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$machine.log"
fi
leave() {
    for mount in dev/shm dev/pts dev sys proc; do umount -l "$machine/$mount" 2>/dev/null || true; done
}
trap leave EXIT
mount -t proc proc "$machine/proc"
mount -t sysfs -o ro sysfs "$machine/sys"
mount --rbind --make-rslave /dev "$machine/dev"
# What a machine of a company has and the mirror's packages do not: its resolver, its certificates, its package indexes.
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/uv/uv.toml /etc/npmrc; do
    [ ! -e "$file" ] || { mkdir -p "$machine${file%/*}" && cp -L "$file" "$machine$file"; }
done
cp -L /etc/ssl/certs/ca-certificates.crt "$machine/etc/ssl/certs/ca-certificates.crt"

rm -rf "$machine/srv/greenroom"
git clone --quiet "$source" "$machine/srv/greenroom"
inside() { env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 CI=true chroot "$machine" sh -c "cd /srv/greenroom && $*"; }

say "./demo"
# Until it prints its addresses; the first run fetches everything.
inside "timeout 600 sh -c './demo >/tmp/demo.log 2>&1 & i=0; until grep -q \"^visitors\" /tmp/demo.log; do i=\$((i + 1)); [ \$i -lt 590 ] || exit 1; sleep 1; done; kill \$!' || { cat /tmp/demo.log; exit 1; }"
say "./test $*"
inside "./test $*"
leave
rm -rf "$machine" "$machine.log"
say "both commands work on a bare machine"
