# shellcheck shell=bash
# Sourced: brings Debian packages onto the machine and the outside programs, each
# pinned, into $cache. Nothing is fetched twice; what can't be had is a failure.

PYTHON_SDK=1.7.5
NODE_SDK=1.74.0
CLAUDE_CLI=2.1.325
PLAYWRIGHT=1.56.1

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
    "$2" "$target"
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

# A driver without browsers of its own: Debian's Chromium is the browser.
playwright() {
    PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 \
        retry npm install --silent --no-audit --no-fund --prefix "$1" "playwright-core@$PLAYWRIGHT"
}

# A browser to look at pages with, and letters for their Chinese.
install_browser() {
    need_command chromium chromium
    dpkg -s fonts-noto-cjk >/dev/null 2>&1 || debian fonts-noto-cjk
    need_command npm npm
    once "playwright-$PLAYWRIGHT" playwright
    export NOD_PEERS_BROWSER NOD_PEERS_PLAYWRIGHT=$cache/playwright-$PLAYWRIGHT/node_modules
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
    export NOD_PEERS_PYTHON=$cache/python-$PYTHON_SDK/bin/python
    export NOD_PEERS_NODE_MODULES=$cache/node-$NODE_SDK/node_modules
    export NOD_PEERS_CLAUDE=$cache/claude-$CLAUDE_CLI/claude
    install_browser
}
