//! Package managers: other people's code from odd places, registries that
//! change, and what is published.

#![allow(
    clippy::too_many_lines,
    clippy::match_same_arms,
    reason = "a table reads better whole"
)]

use super::Danger;
use super::judge::ProgramCall;
use crate::text::lists;

pub(super) fn judge(call: &ProgramCall<'_>) -> Option<Danger> {
    let plain = call.plain();
    let first = plain.first().map_or("", |word| &*word.text);
    let second = plain.get(1).map_or("", |word| &*word.text);
    match &*call.name {
        "npm" | "pnpm" | "yarn" | "bun" | "npx" | "pnpx" | "bunx" | "yarnpkg" => {
            javascript(call, first, second)
        }
        "pip" | "pip3" | "pipx" | "uv" | "poetry" | "pdm" | "conda" | "mamba" | "easy_install" => {
            python(call, first, second)
        }
        "python" | "python3" if call.text(1) == "-m" && call.text(2) == "pip" => {
            python(call, call.text(3), second)
        }
        "python" | "python3" if call.text(1) == "-m" && call.text(2) == "twine" => {
            Some(Danger::Destroy)
        }
        "twine" | "flit" | "hatch" | "maturin" | "vsce" | "ovsx" | "semantic-release" | "lerna"
        | "changeset" => matches!(first, "upload" | "publish").then_some(Danger::Destroy),
        "cargo" => match first {
            "publish" | "yank" | "owner" | "login" => Some(Danger::Destroy),
            "install" => (call.has(&["--git", "--index", "--registry"]) || call.any(is_elsewhere))
                .then_some(Danger::Supply),
            _ => call
                .value(&["--config"])
                .is_some_and(|value| lists::within("runner wrapper linker rustc source", value))
                .then_some(Danger::Steers),
        },
        "gem" | "bundle" | "bundler" => match (first, second) {
            ("push" | "yank" | "owner", _) => Some(Danger::Destroy),
            ("sources" | "source", _) => call.has(&["-a", "--add", "-r"]).then_some(Danger::Supply),
            ("install", _) => (call.has(&["--source", "-s", "--clear-sources"])
                || call.any(is_elsewhere))
            .then_some(Danger::Supply),
            ("config", _) => call
                .any(|text| text.contains("mirror") || text.contains("://"))
                .then_some(Danger::Supply),
            _ => None,
        },
        "go" => match first {
            "install" | "get" => {
                let hosts = "\
                    golang.org github.com google.golang.org gopkg.in k8s.io sigs.k8s.io \
                    go.uber.org honnef.co mvdan.cc gitlab.com gotest.tools go.dev entgo.io \
                    gorm.io";
                let odd = |text: &str| {
                    text.split('/').next().is_some_and(|host| {
                        host.contains('.') && !host.starts_with('.') && !lists::has(hosts, host)
                    })
                };
                plain
                    .iter()
                    .skip(1)
                    .any(|word| odd(&word.text))
                    .then_some(Danger::Supply)
            }
            "env" => call.has(&["-w"]).then_some(Danger::Supply),
            "build" | "test" | "run" | "vet" => {
                call.has(&["-toolexec", "-exec"]).then_some(Danger::Steers)
            }
            _ => None,
        },
        "mvn" | "gradle" | "gradlew" | "mvnw" => {
            let publishes = plain.iter().any(|word| {
                matches!(
                    &*word.text,
                    "deploy" | "publish" | "release:perform" | "uploadArchives"
                )
            });
            let init = call.has(&["--init-script", "-I"])
                || plain.iter().any(|word| word.text.contains("exec:exec"));
            if init {
                Some(Danger::Steers)
            } else {
                publishes.then_some(Danger::Destroy)
            }
        }
        "apt-key" | "add-apt-repository" | "dpkg" | "rpm" | "installer" => (!call
            .has(&["-l", "-L", "-s", "-S", "-q", "-qa", "list", "--list"]))
        .then_some(Danger::Supply),
        "apt" | "apt-get" | "yum" | "dnf" | "apk" | "pacman" | "zypper" => {
            let odd = call.any(|text| {
                lists::within(":// AllowUnauthenticated ::", text)
                    || lists::begins("--allow-un --force --nogpg --repository", text)
                    || lists::has("-Rns -Rdd purge autoremove", text)
            });
            let essential = matches!(first, "remove" | "erase" | "del");
            (odd || essential).then_some(Danger::Supply)
        }
        "brew" => (first == "tap" && plain.len() > 2
            || first == "install" && is_elsewhere(second)
            || first == "uninstall" && call.has(&["--force", "--ignore-dependencies"]))
        .then_some(Danger::Supply),
        "composer" => (first == "config"
            && call.any(|text| {
                lists::within("repositories disable-tls secure-http allow-plugins", text)
            }))
        .then_some(Danger::Supply),
        "nuget" | "dotnet" => (plain.iter().any(|word| word.text == "push")
            || first == "nuget"
                && plain
                    .iter()
                    .any(|word| word.text == "add" || word.text == "delete"))
        .then_some(Danger::Destroy),
        "nix-env" | "nix" | "nix-shell" => call
            .any(|text| text.starts_with("http"))
            .then_some(Danger::Supply),
        "docker" | "podman" if first == "push" => {
            let image = plain.last().map_or("", |word| &*word.text);
            let host = image.split_once('/').map_or("", |(host, _)| host);
            let known = "\
                docker.io ghcr.io gcr.io pkg.dev amazonaws.com azurecr.io quay.io gitlab.com \
                aliyuncs.com digitalocean.com";
            let odd = host.contains('.')
                && !known
                    .split_ascii_whitespace()
                    .any(|end| host.ends_with(end))
                && !super::net::is_local(host);
            odd.then_some(Danger::SendsOut)
        }
        "uvx" => call.any(is_elsewhere).then_some(Danger::Supply),
        "docker" | "podman" => {
            (first == "login" && call.has(&["-p", "--password"])).then_some(Danger::Keys)
        }
        "code" | "cursor" => call.has(&["--install-extension"]).then_some(Danger::Supply),
        "claude" | "codex" | "gemini" => (call.any(|text| {
            text.starts_with("--dangerously") || text.contains("bypass") || text == "--yolo"
        }) || first == "mcp" && second.starts_with("add")
            || first == "config" && second == "set"
            || first == "plugin")
            .then_some(Danger::AgentSettings),
        _ => None,
    }
}

/// A package that no registry vouches for.
#[allow(
    clippy::case_sensitive_file_extension_comparisons,
    reason = "the text is in lower case, or its case counts"
)]
fn is_elsewhere(text: &str) -> bool {
    let lower = text.to_lowercase();
    let places = "\
        http: https: git+ git: git@ ssh: github: gitlab: bitbucket: gist: hg+ svn+ ftp: /tmp/";
    lists::begins(places, &lower)
        || lists::within("@http @git+ @github: @npm: @file:", &lower)
        || (lower.ends_with(".tgz") && lower.starts_with('/'))
}

/// Tools that many projects fetch and run every day. Anything else that is
/// fetched and run unasked is somebody's code of this very minute.
fn is_known(package: &str) -> bool {
    let name = package
        .rfind('@')
        .filter(|at| *at > 0)
        .map_or(package, |at| &package[..at]);
    let scopes = "\
        @angular/ @biomejs/ @changesets/ @commitlint/ @modelcontextprotocol/ @nestjs/ \
        @openapitools/ @playwright/ @redocly/ @remix-run/ @sentry/ @storybook/ @sveltejs/ \
        @tailwindcss/ @tauri-apps/ @types/ @vercel/ @vue/";
    let tools = "\
        ava biome c8 changeset commitlint concurrently create-expo-app create-next-app \
        create-react-app create-svelte create-t3-app create-vite create-vue cspell cypress \
        degit depcheck drizzle-kit esbuild eslint expo firebase http-server husky jest \
        json-server knip lerna license-checker lint-staged madge markdownlint-cli mocha msw \
        netlify next nodemon npm-check-updates nx nyc playwright prettier prisma react-native \
        rimraf rollup serve shadcn sort-package-json storybook stylelint sv svgo tailwindcss \
        ts-node tsc tsup tsx turbo typedoc typescript vercel vite vitest vue wait-on webpack \
        wrangler yo zx";
    name.is_empty()
        || lists::has(tools, name)
        || lists::begins(scopes, name)
        || name.starts_with(['.', '-'])
}

fn javascript(call: &ProgramCall<'_>, first: &str, second: &str) -> Option<Danger> {
    let sources = "\
        --registry --script-shell --node-options --unsafe-perm --userconfig --globalconfig \
        --prefix-config --git";
    let odd_option = call.any(|text| {
        let name = text.split('=').next().unwrap_or_default();
        let local = text.split_once('=').is_some_and(|(_, value)| {
            super::net::is_local(value) || value.contains("registry.npmjs.org")
        });
        (lists::has(sources, name) && !local)
            || text == "--ignore-scripts=false"
            || text == "--strict-ssl=false"
            || text.starts_with("--@") && text.contains(":registry")
            || text == "--foreground-scripts"
            || text == "--allow-scripts"
    });
    let registry = call.value(&["--registry"]);
    let known = "registry.npmjs.org registry.npmmirror.com registry.yarnpkg.com";
    let trusted =
        registry.is_some_and(|url| lists::within(known, url) || super::net::is_local(url));
    if odd_option && !(registry.is_some() && trusted) {
        return Some(Danger::Supply);
    }
    if matches!(&*call.name, "npx" | "pnpx" | "bunx") {
        let package = call.value(&["-p", "--package"]);
        let unasked = call.name != "npx" || call.has(&["-y", "--yes"]);
        let known = is_known(package.unwrap_or(first));
        return (is_elsewhere(first) || package.is_some_and(is_elsewhere) || (unasked && !known))
            .then_some(Danger::Supply);
    }
    if first == "dlx" && !is_known(second) {
        return Some(Danger::Supply);
    }
    match (first, second) {
        (
            "publish" | "unpublish" | "deprecate" | "owner" | "access" | "dist-tag" | "team"
            | "org" | "star" | "hook",
            _,
        ) => (!matches!(second, "ls" | "list")).then_some(Danger::Destroy),
        ("npm", "publish") => Some(Danger::Destroy),
        ("token" | "adduser" | "login" | "logout" | "profile", _) => Some(Danger::Keys),
        ("config" | "c", "set" | "delete" | "edit") | ("set", _) => {
            let harmless = "\
                save-exact fund audit progress loglevel color save-prefix engine-strict \
                nodeLinker enableTelemetry store-dir init-author-name init-license \
                package-lock";
            let key = if first == "set" {
                second
            } else {
                call.plain().get(2).map_or("", |word| &word.text)
            };
            (!lists::begins(harmless, key)).then_some(Danger::Supply)
        }
        ("pkg", "set" | "delete") | ("set-script", _) => {
            let words = call.plain();
            let about = "version name description author license type engines private";
            let mut keys = words.iter().skip(2);
            let name = keys.all(|word| lists::begins(about, &word.text));
            (first == "set-script" || !name).then_some(Danger::BuildFiles)
        }
        (
            "install" | "i" | "add" | "in" | "isntall" | "ci" | "dlx" | "create" | "init" | "link"
            | "exec" | "x" | "update",
            _,
        ) => call
            .plain()
            .iter()
            .skip(1)
            .any(|word| is_elsewhere(&word.text))
            .then_some(Danger::Supply),
        ("plugin", "import") => Some(Danger::Supply),
        ("run" | "run-script", _) => call
            .value(&["--script-shell"])
            .is_some()
            .then_some(Danger::Steers),
        ("approve-builds" | "rebuild", _) => (first == "approve-builds").then_some(Danger::Supply),
        _ => None,
    }
}

fn python(call: &ProgramCall<'_>, first: &str, second: &str) -> Option<Danger> {
    let sources = "\
        --index-url --extra-index-url -i --trusted-host --find-links -f --default-index --index \
        --proxy";
    let odd = call.any(|text| {
        let name = text.split('=').next().unwrap_or_default();
        lists::has(sources, name)
    });
    let installs = matches!(
        first,
        "install" | "add" | "pip" | "download" | "wheel" | "run" | "tool" | "sync" | "inject"
    ) || call.name == "easy_install";
    let mirrors = "pypi.org download.pytorch.org pypi.tuna.tsinghua.edu.cn mirrors.aliyun.com";
    let pypi = call.any(|text| lists::within(mirrors, text));
    if installs && (odd && !pypi || call.any(is_elsewhere)) {
        return Some(Danger::Supply);
    }
    match (first, second) {
        ("publish" | "upload", _) => Some(Danger::Destroy),
        ("config", _) | ("source", "add")
            if call.any(|text| lists::within(":// index repositories token trusted", text)) =>
        {
            Some(Danger::Supply)
        }
        _ => None,
    }
}
