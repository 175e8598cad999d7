#!/bin/sh
# The `git` that is first on the PATH of a box. Git itself does the work; what it could only do by half in this box is
# refused before it begins.
#
# Some files of the project are read-only in the box, since the host runs them: git cannot replace or remove them, and
# finds that out half-way. So git is asked beforehand which files a command would change. Where one of them is held,
# the command does not begin, and the reason is said. All of this is a convenience: the mounts are what protects, and
# whoever calls git by another path goes without the advice.

set -f
real=
IFS=:
for directory in $PATH; do
    # This file may have several names there, such as a symlink: each would call the other for ever.
    if [ -x "$directory/git" ] && ! [ "$directory/git" -ef "$0" ]; then real=$directory/git && break; fi
done
unset IFS
[ -n "$real" ] || { echo 'git: command not found' >&2 && exit 127; }

# Whether a command changes neither files that may be held nor the configuration. Nearly all are of this kind: Claude
# alone asks git some twenty times in a turn.
is_harmless() {
    case ${1-} in
        add | annotate | archive | blame | bundle | cat-file | check-attr | check-ignore | commit | commit-tree | count-objects | \
            describe | diff | diff-files | diff-index | diff-tree | fetch | for-each-ref | format-patch | fsck | gc | grep | \
            hash-object | help | init | log | ls-files | ls-remote | ls-tree | merge-base | mktree | name-rev | notes | \
            range-diff | receive-pack | reflog | rev-list | rev-parse | shortlog | show | show-branch | show-ref | status | \
            symbolic-ref | tag | update-index | update-ref | upload-pack | var | version | write-tree) ;;
        remote) case ${2-} in '' | -v | --verbose | get-url) ;; *) return 1 ;; esac ;;
        branch) case ${2-}:$# in :1 | --show-current:2 | --list:2 | -a:2 | -r:2 | -v:2 | -vv:2) ;; *) return 1 ;; esac ;;
        stash | worktree) case ${2-} in list) ;; *) return 1 ;; esac ;;
        *) return 1 ;;
    esac
}

# Whether an option that comes before the command is two words.
has_value() {
    case $1 in -C | -c | --git-dir | --work-tree | --namespace | --config-env | --attr-source) ;; *) return 1 ;; esac
}

# The same for a whole call. Claude says up to ten words before the command.
is_harmless_call() {
    while [ $# -gt 0 ]; do
        case $1 in -*) ;; *) break ;; esac
        if has_value "$1" && [ $# -gt 1 ]; then shift; fi
        shift
    done
    [ $# -eq 0 ] || is_harmless "$@"
}
# The rest of this file is long, and a shell reads on only if it gets there.
if is_harmless_call "$@"; then exec "$real" "$@"; fi

# A line for each place: `held`, the path and the reason; or `kept` and a directory that outlives the box. `layered` is
# a line of its own, if some of it is in a layer.
known=@KNOWN@
nl='
'
tab='	'
upstream_name='@{upstream}'
nothing=0000000000000000000000000000000000000000
by_user='Ask the user to do it outside of the box, or to start claudebox with --review.'

# Git with the words before the command, quoted, so that it can be asked with the same ones.
globals=
add_global() {
    rest=$1 quoted=
    while :; do
        case $rest in
            *"'"*) quoted="$quoted${rest%%"'"*}'\\''" rest=${rest#*"'"} ;;
            *) break ;;
        esac
    done
    globals="$globals '$quoted$rest'"
}

git_here() {
    eval "\"\$real\" $globals \"\$@\""
}

ask() {
    GIT_OPTIONAL_LOCKS=0 LC_ALL=C git_here -c core.quotePath=false "$@" 2>/dev/null
}

# The same from the top of the checkout, to which all names are relative.
ask_top() {
    ask -C "$top" --literal-pathspecs "$@"
}

commit_of() {
    ask rev-parse -q --verify "$1^{commit}"
}

refuse() {
    printf 'claudebox: "git %s" was not started: %s\n' "$command" "$1" >&2
    shift
    for line; do printf '  %s\n' "$line" >&2; done
    exit 1
}

first() {
    printf '%s' "${1%%"$nl"*}"
}

split() {
    kind=${1%%"$tab"*} path=${1#*"$tab"}
    reason=${path#*"$tab"} path=${path%%"$tab"*}
}

# Where we are: `top`, `common`, what is held below the top (`rels`), whether the configuration is (`config`).
look_around() {
    places=$(ask rev-parse --path-format=absolute --git-common-dir --show-toplevel) || [ -n "$places" ] || return 1
    common=${places%%"$nl"*} top=${places#"$common"}
    top=${top#"$nl"}
    rels='' inner='' config='' modules='' linked='' kept=''
    for line in $known; do
        split "$line"
        case $kind:$path in
            "held:$common/config") config=1 ;;
            "held:$common/modules/"*/config) modules=1 ;;
            "held:$common/worktrees/"*/commondir) linked=$linked${path%/commondir}$nl ;;
        esac
        case $kind:$path in
            kept:*) kept=$kept$path$nl ;;
            "held:$top"/.git | "held:$top"/*/.git | held:*/.git/*) inner=$inner${path#"$top"/}$nl ;;
            "held:$top"/*) rels=$rels${path#"$top"/}$nl ;;
        esac
    done
}

# What a command would change of what is held: `found`, a name in each line.
found=
note() {
    [ -z "$1" ] || found=$found$1$nl
}

# The names that git says for these words, of what is held.
held_in() {
    [ -z "$rels" ] || note "$(ask_top "$@" -- $rels)"
}

# Between two commits.
between() {
    held_in diff-tree -r --name-only --no-renames "$1" "$2"
}

# Between a commit, or the index, and the files.
dirty() {
    held_in diff --no-ext-diff --no-renames --name-only "$@"
}

# In one of several commits.
touched() {
    held_in log -m --format= --name-only --no-renames "$@"
}

reason_of() {
    for line in $known; do
        split "$line"
        case $kind:$top/$1 in "held:$path" | "held:$path"/*) printf '%s' "$reason" && return ;; esac
    done
}

stop_if_found() {
    [ -n "$found" ] || return 0
    lines='' names='' count=0
    for name in $(printf %s "$found" | sort -u); do
        count=$((count + 1))
        [ $count -gt 3 ] || lines=$lines"$name ($(reason_of "$name"))$nl" names=$names" --writable $name"
    done
    [ $count -le 3 ] || lines=$lines"and $((count - 3)) more$nl"
    refuse 'it would change what this box holds read-only:' $lines \
        'Nothing has changed. Ask the user to do this outside of the box, or to start claudebox again with' \
        "--review, where changes wait until the user lands them, or with$names."
}

# The words of a command: `options`, `plain` ones, and `paths` after two dashes. `valued` has the options that are
# followed by a value.
collect() {
    plain='' paths='' options=' ' dashes='' awaited=''
    for word; do
        if [ -n "$dashes" ]; then
            paths=$paths$word$nl
        elif [ -n "$awaited" ]; then
            options="$options$awaited=$word " awaited=
        else
            case $word in
                --) dashes=1 ;;
                -) plain=$plain'@{-1}'$nl ;;
                -*) case " $valued " in *" $word "*) awaited=$word ;; *) options="$options$word " ;; esac ;;
                *) plain=$plain$word$nl ;;
            esac
        fi
    done
}

has() {
    for option; do
        case $options in *" $option "* | *" $option="*) return 0 ;; esac
    done
    return 1
}

value_of() {
    for option; do
        case $options in *" $option="*) value=${options#*" $option="} && printf '%s' "${value%% *}" && return ;; esac
    done
}

# What writes the configuration. Git fails at that when it has done the rest.
stop_if_config() {
    [ -z "$config" ] || refuse 'it would write .git/config, which this box holds read-only (git on the host obeys it).' \
        "Nothing has changed. $1"
}

check_config_of() {
    case $command in
        'sparse-checkout list' | 'sparse-checkout check-rules') return ;;
        'remote add' | 'remote re'* | 'remote rm' | 'remote set-url' | 'remote set-branches' | sparse-checkout* | \
            'submodule add' | 'submodule deinit' | 'submodule sync' | 'submodule set-'* | 'submodule absorbgitdirs')
            IFS=' '
            stop_if_config "Ask the user to run it outside of the box: git $command $*"
            IFS=$nl
            return
            ;;
        checkout | switch | 'worktree add') has -t --track || return 0 ;;
        push | pull) has -u --set-upstream || return 0 ;;
        branch) has -u --set-upstream-to --unset-upstream --edit-description -t --track || return 0 ;;
        *) return ;;
    esac
    stop_if_config "Leave out the option that does so, such as -u or --track. $by_user"
}

# Of what is held, only what the caller's own paths name is changed.
over_paths() {
    dirty ${1:+"$1"}
    candidates=$found found=
    [ -n "$candidates" ] || return 0
    named=$nl$(ask diff --no-ext-diff --no-renames --name-only ${1:+"$1"} -- $paths)$nl
    for name in $candidates; do
        case $named in *"$nl$name$nl"*) note "$name" ;; esac
    done
}

check_checkout() {
    if [ "$command" = switch ] && has --orphan; then
        between HEAD "$(ask hash-object -t tree /dev/null)"
        return
    fi
    word=$(first "$plain") target=
    [ -z "$word" ] || target=$(commit_of "$word") ||
        target=$(first "$(ask for-each-ref --format='%(objectname)' "refs/remotes/*/$word")")
    [ -z "$target" ] || plain=${plain#*"$nl"}
    paths=$plain$paths
    if [ -n "$paths" ]; then
        over_paths "$target"
    elif has -f --force --discard-changes; then
        dirty "${target:-HEAD}"
    elif [ -n "$target" ]; then
        between HEAD "$target"
    fi
}

check_restore() {
    if has -S --staged && ! has -W --worktree; then return; fi
    paths=$plain$paths
    over_paths "$(value_of -s --source)"
}

check_reset() {
    target=$(first "${plain:-HEAD}")
    ! has --hard || dirty "$target"
    ! has --merge --keep || between HEAD "$target"
}

# A merge keeps our side of what the other has not changed since the two parted.
merged() {
    other=$(commit_of "$1") || return 0
    between HEAD "$other"
    base=$(ask merge-base HEAD "$other") || return 0
    all=$rels rels=$found found=
    between "$base" "$other"
    rels=$all
}

check_merge() {
    for word in ${plain:-$upstream_name}; do merged "$word"; done
}

check_pull() {
    [ -n "$rels" ] || return 0
    # What comes is known only when it is here. If it cannot be fetched, git itself says why.
    git_here fetch -q $plain 2>/dev/null </dev/null || return 0
    rebases=$(value_of --rebase)
    [ -n "$rebases" ] || rebases=$(ask config pull.rebase)
    ! has -r --rebase || rebases=${rebases:-true}
    ! has --no-rebase --ff-only || rebases=false
    case $rebases in
        '' | false) merged FETCH_HEAD ;;
        *) between HEAD FETCH_HEAD && touched FETCH_HEAD..HEAD ;;
    esac
}

check_rebase() {
    upstream=$(first "${plain:-$upstream_name}") onto=$(value_of --onto) branch=
    [ "$plain" = "${plain#*"$nl"}" ] || branch=$(first "${plain#*"$nl"}")
    if has --root; then
        touched "$(first "${plain:-HEAD}")"
        return
    fi
    [ -z "$branch" ] || between HEAD "$branch"
    has --keep-base || between HEAD "${onto:-$upstream}"
    touched "$upstream..${branch:-HEAD}"
}

check_pick() {
    for word in $plain; do
        case $word in
            *..*) touched "$word" ;;
            *) between "$word^" "$word" ;;
        esac
    done
}

check_stash() {
    case $action in
        push | save)
            ! has -S --staged || return 0
            dirty HEAD
            ! has -u --include-untracked || held_in ls-files --others --exclude-standard
            ! has -a --all || held_in ls-files --others
            ;;
        pop | apply | branch)
            [ $action != branch ] || plain=${plain#*"$nl"}
            stashed=$(first "${plain:-refs/stash}")
            case $stashed in *[!0-9]*) ;; *) stashed="stash@{$stashed}" ;; esac
            between "$stashed^" "$stashed"
            [ $action != branch ] || between HEAD "$stashed^"
            held_in ls-tree -r --name-only "$stashed^3"
            ;;
    esac
}

check_patch() {
    if has --cached --check --stat --numstat --summary || [ -z "$rels" ]; then return; fi
    copy=
    [ "$plain" != "@{-1}$nl" ] || plain=  # a dash: what comes
    if [ -z "$plain$paths" ] && [ ! -t 0 ]; then
        # What comes once is read twice.
        copy=$(mktemp) || return 0
        cat >"$copy"
    fi
    for file in $plain $paths $copy; do
        [ -f "$file" ] || continue
        for name in $(sed -n "s/$tab.*//; s,^[-+][-+][-+] [^/]*/,,p; s/^rename from //p; s/^rename to //p" "$file"); do
            for rel in $rels; do
                case $name in "$rel" | "$rel"/*) note "$name" ;; esac
            done
        done
    done
    [ -z "$copy" ] || { exec <"$copy" && rm -f "$copy"; }
}

check_bisect() {
    case $action in
        reset)
            start=${1:-$(cat "$(ask rev-parse --git-path BISECT_START)" 2>/dev/null)}
            [ -z "$start" ] || between HEAD "$start"
            ;;
        start | good | bad | old | new | skip | run)
            for word in $plain $(ask for-each-ref --format='%(objectname)' refs/bisect); do
                ! commit_of "$word" >/dev/null || touched "$word...HEAD"
            done
            ;;
    esac
}

# `clean`, `rm` and `mv` say themselves what they would do: a held name is among it, in it or around it.
check_removal() {
    for word; do
        shift
        case $word in -q | --quiet) ;; *) set -- "$@" "$word" ;; esac
    done
    said=$(ask "$command" -n "$@" | sed -n "s/^Would remove //p; s/^rm '\(.*\)'\$/\1/p; s/^Renaming //p")
    [ "$command" != clean ] || prefix=$(ask rev-parse --show-prefix)
    for name in $said; do
        name=${prefix-}${name%/}
        for held in $rels $inner; do
            case "${name#./}/" in "$held/"* | *" to $held/"*) note "$held" && continue ;; esac
            case "$held/ to " in "${name%% to *}/"*) note "$held" ;; esac
        done
    done
    stop_if_found
    [ "$command" != mv ] || move "$said"
}

# A rename out of a directory that is a mount, or of a directory in a layer, is refused by the kernel, and git gives up
# where it is. `mv` copies instead. What is unusual is left to git.
move() {
    if has -f --force -k -v --verbose; then return; fi
    case $globals in *" '-C' "*) return ;; esac
    roots=
    for line in $1; do
        for root in $roots; do
            case $line in "${root%% to *}"/*) continue 2 ;; esac
        done
        roots=$roots$line$nl
        # A submodule knows where it is, and a name with special characters is quoted.
        case $line in *' to '*' to '*) return ;; esac
        case $nl$(ask_top ls-files -s -- "${line%% to *}") in "$nl" | *"$nl"160000* | *'"'*) return ;; esac
    done
    [ -n "$roots" ] || return 0
    for line in $roots; do
        from=${line%% to *} to=${line#* to } index=
        for entry in $(ask_top ls-files -s -- "$from"); do
            name=${entry#*"$tab"}
            index=$index"0 $nothing$tab$name$nl${entry%%"$tab"*}$tab$to${name#"$from"}$nl"
        done
        mv -- "$top/$from" "$top/$to" || exit 1
        printf '%s' "$index" | ask_top update-index --index-info || exit 1
    done
    exit 0
}

# The real path of a name, of which the last parts need not exist.
real_of() {
    case $1 in /*) place=$1 ;; *) place=$PWD/$1 ;; esac
    ending=
    while [ ! -d "$place" ]; do
        ending=/${place##*/}$ending place=${place%/*}
        place=${place:-/}
    done
    printf '%s%s' "$(cd -P "$place" && pwd -P)" "$ending"
}

check_worktree() {
    place=$(first "$plain$paths")
    case $action in
        add) [ -z "$place" ] || check_worktree_add ;;
        prune) has -n --dry-run || check_worktree_prune ;;
        remove | move) check_worktree_of ;;
    esac
}

check_worktree_add() {
    # Relative to where `-C` leads: git itself says it if that is nowhere.
    case $globals:$place in *" '-C' "*:[!/]*) return ;; esac
    place=$(real_of "$place")
    for above in $kept; do
        case $place/ in "$above"/*) return ;; esac
    done
    # Who names a place for what is temporary wants no more.
    case $place/ in "$HOME"/*) ;; /tmp/* | /var/tmp/*) return ;; esac
    refuse "$place would be gone when the box ends: only these stay:" $kept \
        "Nothing has changed. Choose a place in there, for example .claude/worktrees/${place##*/}, or ask the user for" \
        "--mount-rw with a directory for worktrees."
}

check_worktree_prune() {
    for name in $(LC_ALL=C git_here worktree prune -n -v 2>&1 | sed -n 's,^Removing worktrees/\(.*\): .*,\1,p'); do
        case $nl$linked in
            *"/$name$nl"*)
                refuse "the worktree \"$name\" is not gone, this box just does not see it, or may not change it." \
                    'Nothing has changed. For one of your own: git worktree remove PATH. The rest is for the user to do.'
                ;;
        esac
    done
}

check_worktree_of() {
    for one in $linked; do
        read -r pointer <"$one/gitdir" || continue
        case ${pointer%/.git} in
            "$(real_of "$place")" | */"${place%/}")
                refuse "${pointer%/.git} was there before this box, which holds its .git (git on the host goes where it says)." \
                    "Nothing has changed. Ask the user to do it outside of the box: git $command $place"
                ;;
        esac
    done
}

# Git itself changes the branches, and then fails at its configuration, even if that says nothing of them.
check_branch() {
    [ -n "$config" ] || return 0
    if has -m -M --move -c -C --copy; then
        old=$(first "$plain")
        [ "$plain" != "$old$nl" ] || old=$(ask symbolic-ref -q --short HEAD)
        ! ask config --local --get-regexp "^branch\\.$old\\." >/dev/null ||
            stop_if_config "Make another branch, and leave \"$old\": git switch -c NAME"
    elif ! has -d -D --delete; then
        return 0
    fi
    { said=$(LC_ALL=C git_here branch "$@" 2>&1 >&3) && status=0 || status=$?; } 3>&1
    # Newer git begins its messages with a small letter.
    case $said in *'ranch is renamed, but update of config-file failed'* | *'ranch is copied, but update of'*) status=0 ;; esac
    printf '%s' "$said" | sed '/config file .*: Device or resource busy/d; /pdate of config-file failed/d' >&2
    exit $status
}

check_config() {
    git_here config "$@"
    status=$?
    # 4: the file cannot be written.
    [ $status -ne 4 ] || printf '%s\n' >&2 \
        'claudebox: this box holds .git/config read-only (git on the host obeys it).' \
        '  For one command: git -c NAME=VALUE … For good: ask the user to do it outside of the box.'
    exit $status
}

# Git would write the configuration of each submodule anew, which is held. Those that are here only need a checkout.
check_submodule() {
    if [ "$action" != update ] || [ -z "$modules$config" ]; then return; fi
    for option in $(printf %s "$options" | tr ' ' '\n'); do
        case $option in
            --init | --recursive | --checkout | -q | --quiet | -N | --no-fetch | -f | --force | --progress) ;;
            *) stop_if_config "Without $option it would work for submodules that are here. $by_user" ;;
        esac
    done
    modules=$(ask -C "$top" ls-files -s -- $plain $paths | sed -n 's/^160000 //p')
    for module in $modules; do
        place=${module#*"$tab"}
        [ -e "$top/$place/.git" ] || stop_if_config "The submodule $place is not here yet. $by_user"
    done
    for module in $modules; do
        place=$top/${module#*"$tab"} wanted=${module%% *}
        if [ "$("$real" -C "$place" rev-parse HEAD)" != "$wanted" ]; then
            "$real" -C "$place" cat-file -e "$wanted" 2>/dev/null || "$real" -C "$place" fetch -q origin || exit 1
            "$0" -C "$place" checkout -q --detach "$wanted" || exit 1
            has -q --quiet || printf "Submodule path '%s': checked out '%s'\n" "${module#*"$tab"}" "$wanted"
        fi
        if has --recursive && [ -e "$place/.gitmodules" ]; then "$0" -C "$place" submodule update --recursive || exit 1; fi
    done
    exit 0
}

# A row for each command: what checks it, and its options that are followed by a value.
check_command() {
    action='' check=$command valued=''
    case $command in
        checkout | switch) check=checkout valued='-b -B -c -C --orphan --conflict --pathspec-from-file' ;;
        restore) valued='-s --source --conflict --pathspec-from-file' ;;
        reset) valued='--pathspec-from-file' ;;
        merge) valued='-m -F --file -s -X --strategy --strategy-option --into-name --cleanup' ;;
        pull) valued='-s -X --strategy --strategy-option --depth --upload-pack -j --jobs -o --server-option' ;;
        rebase) valued='--onto -s -X -x --exec --strategy --strategy-option --whitespace --empty' ;;
        cherry-pick | revert) check=pick valued='-m --mainline -s -X --strategy --strategy-option --cleanup' ;;
        stash) valued='-m --message --pathspec-from-file' ;;
        am | apply)
            check=patch
            valued='-p -C --directory --exclude --include --whitespace --patch-format --empty --quoted-cr --build-fake-ancestor'
            ;;
        bisect) valued='--term-good --term-bad --term-old --term-new' ;;
        worktree) valued='-b -B --reason --expire' ;;
        branch) valued='-u --set-upstream-to --sort --contains --no-contains --merged --no-merged --points-at --format' ;;
        clean | rm | mv) check=removal ;;
        push | remote | sparse-checkout) check=nothing ;;
        submodule) ;;
        *) return 0 ;;
    esac
    case $command in
        stash) case ${1-} in '' | -*) action=push ;; *) action=$1 && shift ;; esac ;;
        bisect | worktree | remote | submodule | sparse-checkout)
            while [ "${1-}" = -q ] || [ "${1-}" = --quiet ]; do shift; done
            action=${1-}
            [ $# -eq 0 ] || shift
            command="$command $action"
            ;;
    esac
    collect "$@"
    case $check in
        merge | rebase | pick | patch)
            ! has --abort --continue --skip --quit --resolved -r --edit-todo --show-current-patch || return 0
            ;;
        removal) ! has -n --dry-run --cached || return 0 ;;
    esac
    check_config_of "$@"
    [ $check = nothing ] || "check_$check" "$@"
    stop_if_found
}

check() {
    while :; do
        case $1 in -*) ;; *) break ;; esac
        if has_value "$1"; then add_global "$1" && shift; fi
        add_global "$1"
        shift
    done
    command=$1
    shift
    alias=
    case $command in
        # Git takes no alias in the place of a command of its own.
        config) check_config "$@" ;;
        checkout | switch | branch | push | pull | merge | rebase | reset | restore | remote | rm | mv) ;;
        *) alias=$(ask config --get "alias.$command") || alias= ;;
    esac
    case $alias in
        '' | '!'*) ;;
        *)
            # Only words are split: what the alias quotes is no option and no commit.
            IFS=" $tab$nl"
            # shellcheck disable=SC2086
            set -- $alias "$@"
            command=$1
            shift
            ;;
    esac
    IFS=$nl
    # In a layer a hard link has another number than its file, for which git takes it as an attack.
    case $command:$nl$known$nl in clone:*"${nl}layered$nl"*) git_here clone --no-hardlinks "$@" && exit || exit $? ;; esac
    look_around || return 0
    check_command "$@"
}

check "$@"
exec "$real" "$@"
