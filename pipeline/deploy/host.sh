#!/bin/sh
# What a deployment does on the host: `ssh HOST sh -s -- FUNCTION ARGUMENT... < host.sh`. Only the last
# line does anything, so a script that was cut off on its way does nothing.
#
#   current  -> releases/VERSION  what answers; its .venv -> ../../venvs/LOCK-PYTHON
#   previous -> releases/VERSION  what answered before it
#   started  -> releases/VERSION  what the process was started from; since then only bundles were reloaded
#
# Everything else in the folder, .env above all, is the owner's and stays as it is.
set -eu
umask 022 # the server is another user

RELEASES_KEPT=3

die() {
    echo "$*" >&2
    exit 1
}

# Whether a deployment can come to a good end here. Writes nothing.
preflight() { # APP PYTHON PACKAGE_KB LOCK VENV_KB
    for tool in rsync sha256sum flock; do
        command -v "$tool" >/dev/null || die "the host has no $tool: install it"
    done
    case $(uname -sm) in
    "Linux x86_64" | "Linux aarch64") ;;
    *) die "the host is $(uname -sm): there are packages for Linux on x86_64 and aarch64" ;;
    esac
    command -v "$2" >/dev/null || die "the host has no $2: install it, or name another in RALPH_HOST_PYTHON"
    "$2" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        die "$2 of the host is $("$2" -V): 3.11 is needed; name another in RALPH_HOST_PYTHON"
    # A 64-bit kernel may have a 32-bit Python, and Alpine's C library is another one.
    "$2" -c 'import platform, sys; sys.exit(sys.maxsize < 2**32 or platform.libc_ver()[0] != "glibc")' ||
        die "$2 of the host is not built for 64 bits and glibc, which the packages are for"
    "$2" -c 'import ensurepip, venv' 2>/dev/null || die "$2 of the host makes no venv: install python3-venv"
    parent=$1
    while [ ! -d "$parent" ]; do parent=$(dirname "$parent"); done
    [ -w "$parent" ] || die "$parent: $(id -un) may not write there"
    needed=$3
    [ -e "$1/venvs/$(venv_name "$4" "$2")/.complete" ] || needed=$((needed + $5))
    free=$(df -Pk "$parent" | awk 'NR == 2 { print $4 }')
    [ "$free" -ge "$needed" ] ||
        die "$parent has $((free / 1024)) MB free of the $((needed / 1024 + 1)) MB that are needed"
    echo "$("$2" -V), $(uname -m), $((free / 1024)) MB free"
}

# The manifest of the bundle that answers now; nothing where there is none.
manifest() { # APP
    [ ! -e "$1/current/bundle/manifest.json" ] || cat "$1/current/bundle/manifest.json"
}

# Keeps others out until the client ends, however it ends, and makes room for a version. What an earlier
# upload of the same one left behind is gone on with.
hold() { # APP [VERSION]
    mkdir -p "$1"
    cd "$1"
    busy="another deployment to this folder is under way: wait until it has ended"
    exec 9>.lock
    flock -n 9 || die "$busy"
    # A step may go on when its client is gone.
    flock -n .working true || die "$busy"
    mkdir -p releases venvs
    for each in releases/.incoming-*; do
        if [ -L "$each" ] || [ "$each" != "releases/.incoming-${2-}" ]; then rm -rf "$each"; fi
    done
    echo held
    cat >/dev/null
}

# Lets the next one begin only when this step has ended, which it may do after its client. An upload has the
# same lock.
work_in() { # APP
    cd "$1"
    exec 8>.working
    flock 8
}

# Gives the room back that a failed upload took.
discard() { # APP VERSION
    work_in "$1"
    rm -rf "releases/.incoming-$2"
}

# Turns what arrived into a release that can be started: every byte checked, and its packages there.
install() { # APP VERSION PYTHON LOCK
    work_in "$1"
    cd releases
    is_whole ".incoming-$2" "$2" || die "what arrived is not what was sent; deploy again"
    venv=$(venv_name "$4" "$3")
    make_venv "../venvs/$venv" "$3" ".incoming-$2/requirements.txt"
    equip ".incoming-$2" "$venv"
    if [ -d "$2" ] && [ ! -L "$2" ] && is_whole "$2" "$2"; then
        if ! same_venv "$2" ".incoming-$2"; then
            equip "$2" "$venv"
            rm -f ../started # what runs has the packages of another Python
        fi
        rm -rf ".incoming-$2"
    else
        if [ -e "$2" ] || [ -L "$2" ]; then mv -T "$2" ".incoming-damaged-$2"; fi
        mv -T ".incoming-$2" "$2"
        rm -rf ".incoming-damaged-$2"
    fi
    touch "$2" # its age decides which releases are pruned
}

is_whole() { # FOLDER VERSION
    (
        cd "$1"
        [ "$(sha256sum SHA256SUMS | cut -c 1-12)" = "$2" ] &&
            sha256sum --quiet --strict -c SHA256SUMS &&
            [ "$(find . -type f ! -name '*.pyc' ! -path ./SHA256SUMS | wc -l)" -eq "$(wc -l <SHA256SUMS)" ]
    )
}

# Gives a release its packages, and compiles it for their Python.
equip() { # RELEASE VENV
    # The server may not write there. All files have one time, so it cannot tell whether they changed.
    "../venvs/$2/bin/python" -m compileall -q --invalidation-mode unchecked-hash "$1/handler"
    ln -sfn "../../venvs/$2" "$1/.venv-new"
    mv -fT "$1/.venv-new" "$1/.venv"
}

same_venv() { # RELEASE RELEASE
    [ "$(readlink "$1/.venv")" = "$(readlink "$2/.venv")" ]
}

# What the packages of a lock are called: they are those of one Python, whose next version does not find them.
venv_name() { # LOCK PYTHON
    "$2" -c 'import sys; print("{}-{}.{}".format(sys.argv[1], *sys.version_info))' "$1"
}

make_venv() { # FOLDER PYTHON REQUIREMENTS
    # Its interpreter may have been removed since, if it was another one of the same version.
    if [ -e "$1/.complete" ] && "$1/bin/python" -c '' 2>/dev/null; then return; fi
    rm -rf "$1"
    if "$2" -m venv "$1" &&
        "$1/bin/python" -m pip install -q --disable-pip-version-check --no-input --no-cache-dir \
            --require-hashes --only-binary :all: -r "$3" >&2; then
        touch "$1/.complete"
    else
        rm -rf "$1"
        die "the packages of requirements.txt could not be installed; nothing was switched"
    fi
}

# Makes a release the current one. When it does not answer, the one before it is current again.
activate() { # APP VERSION RESTART RELOAD URL TIMEOUT_S
    trap '' HUP PIPE # so that it comes to a good end when the client is cut off
    work_in "$1"
    restart=$3 reload=$4 url=$5 timeout_s=$6
    old=$(release current) older=$(release previous)
    [ -d "releases/$2/" ] || die "release $2 is gone; deploy again"
    if [ -n "$old" ] && [ "$old" != "$2" ]; then point previous "$old"; fi
    point current "$2"
    if start "$2" && answers "$2"; then
        prune
        say "$2 answers"
        return
    fi
    # What was current already, and was perhaps never seen to answer, goes back to what was before it.
    if [ "$old" = "$2" ]; then old=$older older=; fi
    if [ -z "$old" ] || [ "$old" = "$2" ]; then
        die "$2 is current and does not answer; there is no release to go back to"
    fi
    point current "$old"
    if [ -n "$older" ]; then point previous "$older"; else rm -f previous; fi
    rm -f started # so that it is a restart: what runs now is in doubt
    if start "$old" && answers "$old"; then
        die "$2 does not answer; $old is current again, and answers"
    fi
    die "$2 does not answer; $old is current again, and does not answer either"
}

# Makes the previous release the current one; a second time takes that back.
rollback() { # APP RESTART RELOAD URL TIMEOUT_S
    trap '' HUP PIPE
    work_in "$1"
    restart=$2 reload=$3 url=$4 timeout_s=$5
    old=$(release current) new=$(release previous)
    [ -n "$new" ] && [ "$new" != "$old" ] || die "there is no previous release to go back to"
    if [ -n "$old" ]; then point previous "$old"; fi
    point current "$new"
    if start "$new" && answers "$new"; then
        say "$new answers"
        return
    fi
    die "$new is current again, and does not answer"
}

say() {
    echo "$*" || : # to a client that may be gone
}

# The version that a link stands for; nothing where it leads nowhere.
release() { # LINK
    [ ! -d "$1/" ] || basename "$(readlink "$1")"
}

point() { # LINK VERSION
    ln -sfn "releases/$2" ".$1-new"
    mv -fT ".$1-new" "$1" # one rename(2): there is no moment without the link
}

# A running server reads another bundle by itself; for another program, or other packages, it begins anew.
start() { # VERSION
    if [ -d started/ ] && same_venv started "releases/$1" &&
        [ "$(program started)" = "$(program "releases/$1")" ]; then
        if sh -c "$reload" 8>&-; then return; fi # else there is nobody to be told
    fi
    rm -f started
    sh -c "$restart" 8>&- && point started "$1"
}

program() { # FOLDER
    grep -v '  bundle/' "$1/SHA256SUMS"
}

# Waits until the server says that it answers from this release's bundle.
answers() { # VERSION
    "releases/$1/.venv/bin/python" -c '
import http.client, json, signal, sys, time, urllib.request
url, manifest, timeout_s = sys.argv[1:]
expected = json.load(open(manifest, encoding="utf-8"))["version"]
end = time.monotonic() + float(timeout_s)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
def late(*_):
    raise TimeoutError("no end of its answer")
signal.signal(signal.SIGALRM, late)
while True:
    try:
        # The timeout of an opener begins again with every byte.
        signal.setitimer(signal.ITIMER_REAL, max(1, end - time.monotonic()))
        with opener.open(url) as answer:
            found = "it answers from bundle " + str(json.load(answer)["bundle"])
            if found.endswith(" " + expected):
                sys.exit()
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        found = str(error) or repr(error)
    signal.setitimer(signal.ITIMER_REAL, 0)
    if time.monotonic() > end:
        sys.exit(f"{url}: {found}; bundle {expected} was awaited for {timeout_s} s")
    time.sleep(0.2)
' "$url" "releases/$1/bundle/manifest.json" "$timeout_s"
}

# Removes releases but the newest and those that a link stands for, and venvs that no release has.
prune() {
    # shellcheck disable=SC2012 # versions are hexadecimal digits
    kept=$(
        ls -1t releases | head -n "$RELEASES_KEPT"
        for link in current previous started; do release "$link"; done
    )
    for each in releases/*; do
        echo "$kept" | grep -qx "$(basename "$each")" || rm -rf "$each"
    done
    venvs=$(for each in releases/*/.venv; do basename "$(readlink "$each")"; done)
    for each in venvs/*; do
        echo "$venvs" | grep -qx "$(basename "$each")" || rm -rf "$each"
    done
}

case $1 in
hold) "$@" ;;
*) "$@" </dev/null ;; # the script itself is the standard input
esac
