# shellcheck shell=sh
# The first process of a machine: makes its file system, then waits until its standard input is closed.
#
# usage: unshare --fork --pid --mount --net -- sh machine.sh DIRECTORY [FILE...]
#
# Everything of the real machine is at its place, but /nix is DIRECTORY/nix, and over /etc lie the files of
# DIRECTORY/etc. Each FILE is there as an empty one that cannot be executed.
set -eu
directory=$1
shift
root=$directory/root

mkdir "$root" "$directory/work"
# Not a mount over the real /nix: there need not be a place for one, and making it would show on the real machine.
mount -t tmpfs -o mode=755 tmpfs "$root"
for entry in /* /.[!.]*; do
    [ ! -L "$entry" ] || { cp -P "$entry" "$root" && continue; }
    case $entry in
    /etc | /nix | /proc) ;;
    *)
        if [ -d "$entry" ]; then
            mkdir "$root$entry" && mount --rbind "$entry" "$root$entry"
        elif [ -e "$entry" ]; then
            : >"$root$entry" && mount --bind "$entry" "$root$entry"
        fi
        ;;
    esac
done
mkdir "$root/etc" "$root/nix" "$root/proc" "$root/before"
mount -t overlay -o "lowerdir=/etc,upperdir=$directory/etc,workdir=$directory/work" overlay "$root/etc"
mount --bind "$directory/nix" "$root/nix"
mount -t proc proc "$root/proc"
: >"$directory/nothing"
chmod 0 "$directory/nothing"
for file in "$@"; do
    mount --bind "$directory/nothing" "$root$file"
done

# Not chroot: where that was done nobody can make a user namespace, so no bwrap would start.
cd "$root"
pivot_root . before
cd /
umount -l /before
rmdir /before
umount -l "$root" # the copy of it that came with the directory it is in
# A way out that leads nowhere: with none at all Nix behaves differently, and pasta has nothing to go by.
ip -batch - <<END
link set lo up
link add eth0 up type veth peer name nowhere
link set nowhere up
address add 192.0.2.2/24 dev eth0
route add default via 192.0.2.1
END

echo ready
trap '' CHLD # and the kernel buries those whose parents died
exec cat >/dev/null
