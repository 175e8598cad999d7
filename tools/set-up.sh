# Getting what claudebox and its tests need, for `claudebox` and `run-tests`, which set `root` and source this.
# Everything said goes to standard error: standard output belongs to the program. Administrators' directories count,
# though PATH often lacks them.
# shellcheck shell=sh disable=SC2154

# PATH may hold the current directory, which is somebody's project: only the system's own programs are run from here.
user_path=$PATH:/usr/sbin:/sbin:/usr/local/sbin
system_path=/usr/bin:/bin:/usr/sbin:/sbin:/run/wrappers/bin:/run/current-system/sw/bin
PATH=$system_path
refreshed=

say() {
    printf 'claudebox: %s\n' "$*" >&2
}

die() {
    printf 'error: %s\n' "$1" >&2
    [ -z "${2-}" ] || printf '\nhint: %s\n' "$2" >&2
    exit 125
}

# Is that program installed, as the user would find it? Only a look: what is run is found with `command -v`.
have() {
    PATH=$user_path
    command -v "$1" >/dev/null
    found=$?
    PATH=$system_path
    return "$found"
}

# The package that holds a program, for the package manager in $manager.
package_of() {
    case $manager:$1 in
    *:bwrap) echo bubblewrap ;;
    # A compiler is of no use without the C library's own files.
    apt-get:gcc) echo gcc libc6-dev ;;
    apk:gcc) echo gcc musl-dev ;;
    dnf:ip) echo iproute ;;
    *:ip) echo iproute2 ;;
    *:man) echo man-db ;;
    *:mkfs.ext4) echo e2fsprogs ;;
    zypper:mkfs.btrfs) echo btrfsprogs ;;
    *:mkfs.btrfs) echo btrfs-progs ;;
    *:mkfs.xfs) echo xfsprogs ;;
    *:nft) echo nftables ;;
    *:node) echo nodejs ;;
    apt-get:nix) echo nix-bin ;; # without the daemon, which is another package
    *:pasta) echo passt ;;
    pacman:pip3) echo python-pip ;;
    apk:pip3) echo py3-pip ;;
    *:pip3) echo python3-pip ;;
    dnf:ps | pacman:ps) echo procps-ng ;;
    dnf:sqlite3 | pacman:sqlite3 | apk:sqlite3) echo sqlite ;;
    *:ps) echo procps ;;
    pacman:python) echo python ;;
    *:python) echo python3 ;;
    # Where the default is too old, a newer one has its version in the name.
    apt-get:newer-python) echo python3.11 ;;
    dnf:newer-python) echo python3.12 ;;
    zypper:newer-python) echo python311 ;;
    pacman:newer-python) echo python ;;
    *:newer-python) echo python3 ;;
    # Debian keeps pip's bootstrap out of python3.
    apt-get:ensurepip) echo python3-venv ;;
    zypper:ensurepip | pacman:ensurepip) ;;
    apk:ensurepip) echo py3-pip ;;
    dnf:ensurepip) echo python3-pip ;;
    dnf:shellcheck | zypper:shellcheck) echo ShellCheck ;;
    # Not the server, which a package of that name would bring along.
    apt-get:ssh) echo openssh-client ;;
    dnf:ssh | zypper:ssh) echo openssh-clients ;;
    pacman:ssh) echo openssh ;;
    apk:ssh) echo openssh-client ;;
    *) echo "$1" ;;
    esac
}

find_manager() {
    for manager in apt-get dnf pacman zypper apk; do
        command -v "$manager" >/dev/null && return
    done
    manager=
}

# Set `authority` to what makes a command one of root's. Fails if there is nothing.
find_authority() {
    authority=
    [ "$(id -u)" = 0 ] && return
    for tool in sudo doas; do
        if command -v "$tool" >/dev/null; then
            authority="$tool "
            return
        fi
    done
    return 1
}

# Set `refresh` and `install` to the commands that install some packages.
find_commands() {
    refresh=
    case $manager in
    apt-get) refresh="apt-get update" install="apt-get install -y --no-install-recommends$*" ;;
    dnf) install="dnf install -y$*" ;;
    pacman) install="pacman -Sy --needed --noconfirm$*" ;;
    zypper) install="zypper --non-interactive install$*" ;;
    apk) install="apk add$*" ;;
    esac
}

# Show a command, then run it.
run() {
    say "  $authority$*"
    # Not our standard input: it may hold a prompt for claude.
    # shellcheck disable=SC2086
    $authority env DEBIAN_FRONTEND=noninteractive "$@" </dev/null >&2 || say "that failed"
}

# Set `needed` to the command that installs the packages of some programs, or to the nearest thing to one. Fails if
# nobody here could run it.
find_command() {
    find_manager
    packages=
    for program in "$@"; do
        package=$(package_of "$program")
        packages="$packages${package:+ $package}"
    done
    if [ -z "$manager" ]; then
        needed="install$packages"
        return 1
    fi
    find_commands "$packages"
    if ! find_authority; then
        needed="as root: ${refresh:+$refresh && }$install"
        return 1
    fi
    needed="${refresh:+$authority$refresh && }$authority$install"
}

# Install the packages of some programs, or fail. `needed` says what the user can do about it.
install_programs() {
    find_command "$@" || return
    say "installing$packages:"
    # shellcheck disable=SC2086
    [ -z "$refresh" ] || [ -n "$refreshed" ] || run $refresh
    refreshed=yes
    # shellcheck disable=SC2086
    run $install
}

# Set `python` to the first good interpreter, or to nothing. The system's own come first: other users can run them too,
# and the first on PATH may belong to the project. Nothing below the current directory is ever run.
find_python() {
    saved_ifs=$IFS
    IFS=:
    # shellcheck disable=SC2086
    set -- /usr/bin /usr/local/bin /bin /run/current-system/sw/bin /nix/var/nix/profiles/default/bin $user_path
    IFS=$saved_ifs
    for directory in "$@"; do
        case $directory in
        /*) real=$(cd -P -- "$directory" 2>/dev/null && pwd) || continue ;;
        *) continue ;;
        esac
        case $real/ in
        "$(pwd -P)"/*) continue ;;
        esac
        for name in python3 python3.14 python3.13 python3.12 python3.11; do
            [ -x "$real/$name" ] || continue
            # Where it really is: that path goes away with an upgrade, and then it is time to look again.
            python=$("$real/$name" -I -S -c '
import os, sys
sys.version_info >= (3, 11) and print(os.path.realpath(sys.executable))' 2>/dev/null)
            [ -z "$python" ] || return 0
        done
    done
    return 1
}

# Python and some programs, or the end.
need() {
    missing=
    for program in "$@"; do
        have "$program" || missing="$missing $program"
    done
    if ! find_python; then
        if have python3; then missing="$missing newer-python"; else missing="$missing python"; fi
    fi
    [ -n "$missing" ] || return 0
    # shellcheck disable=SC2086
    install_programs $missing || die "missing:$missing" "$needed"
    for program in "$@"; do
        have "$program" || die "\`$program\` is still missing" "$needed"
    done
    [ -n "${python-}" ] || find_python || die "there is no Python 3.11 or newer" "$needed"
}

# What `claudebox` needs to start. Git is wished for: whoever cannot install it is told by --check.
set_up_claudebox() {
    need bwrap
    if ! have git && find_authority; then
        install_programs git || :
    fi
    "$python" -I "$root/tools/venv.py" "$root" "$python" >&2 || :
}
