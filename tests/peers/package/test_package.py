"""What `.ci/package` made, installed as a person would: npm, dpkg, a bare tarball; each in an empty place."""

import base64
import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
import unittest
import urllib.parse
from pathlib import Path

from harness import report

MADE = os.environ["NOD_PACKAGE_DIR"]
AGAIN = os.environ["NOD_PACKAGE_AGAIN"]
CRATE = os.environ["NOD_PACKAGE_CRATE"]
OLD_ROOT = os.environ.get("NOD_OLD_ROOT")
GLIBC = (2, 28)
# What the demo says once every scene has ended as it should.
PLAYED = "each ended as it should"


def only(pattern):
    found = sorted(Path(MADE).glob(pattern))
    assert len(found) == 1, f"{pattern}: {found}"
    return found[0]


def run(command, **options):
    options = {"capture_output": True, "text": True, "timeout": 240, "check": False, **options}
    done = subprocess.run([str(word) for word in command], **options)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


class Registry:
    """As much of an npm registry as an installation asks for."""

    def __init__(self, tarballs):
        self.held = {}
        held = self.held

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = held.get(urllib.parse.unquote(self.path).strip("/"))
                self.send_response(200 if body else 404)
                self.end_headers()
                self.wfile.write(body or b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        for path in tarballs:
            self.hold(path)

    def hold(self, path):
        whole = path.read_bytes()
        with tarfile.open(path) as archive:
            package = json.load(archive.extractfile("package/package.json"))
        name, version = package["name"], package["version"]
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(whole).digest()).decode()
        package["dist"] = {"tarball": f"{self.url}{path.name}", "integrity": integrity}
        about = {"name": name, "dist-tags": {"latest": version}, "versions": {version: package}}
        self.held[path.name], self.held[name] = whole, json.dumps(about).encode()

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Package(unittest.TestCase):
    def setUp(self):
        self.home = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="nod-package-")))
        self.environment = {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}

    def demo(self, nod, **options):
        told = run([nod, "demo", "--auto"], env=self.environment, cwd=self.home, **options)
        self.assertIn(PLAYED, told)

    def npm(self, prefix, made):
        """Installs as people do, from a registry that holds these and nothing else."""
        npm = ["npm", "install", "--global", "--prefix", prefix, "--no-audit", "--no-fund", "--ignore-scripts"]
        with Registry(Path(MADE).glob(made)) as registry:
            run([*npm, "--registry", registry.url, "nod-feishu"], env=self.environment, cwd=self.home)

    def test_the_sums_are_right_and_name_every_file(self):
        listed = dict(reversed(line.split("  ")) for line in only("SHA256SUMS").read_text().splitlines())
        there = {path.name for path in Path(MADE).iterdir()} - {"SHA256SUMS"}
        self.assertEqual(there, set(listed))
        for name, wanted in listed.items():
            self.assertEqual(wanted, hashlib.sha256(Path(MADE, name).read_bytes()).hexdigest(), name)

    def test_two_builds_have_one_checksum(self):
        self.assertEqual(only("SHA256SUMS").read_text(), Path(AGAIN, "SHA256SUMS").read_text())

    def test_the_crate_holds_what_it_is_built_from_and_nothing_else(self):
        (crate,) = Path(CRATE).glob("nod-feishu-*.crate")
        with tarfile.open(crate) as archive:
            names = ["/".join(name.split("/")[1:]) for name in archive.getnames()]
        around = {name for name in names if not name.startswith("src/")}
        wanted = {"Cargo.toml", "Cargo.lock", "Cargo.toml.orig", ".cargo_vcs_info.json", "README.md", "LICENSE"}
        wanted |= {".env.example", "docs/CHANGELOG.md", "proto/hook-socket.md", "proto/pbbp2.proto"}
        self.assertEqual(wanted, around)
        self.assertEqual([], [name for name in names if "tests" in name.replace(".rs", "").split("/")])

    def test_the_tarball_holds_what_a_person_needs(self):
        with tarfile.open(only("nod-feishu-*.tar.gz")) as archive:
            archive.extractall(self.home, filter="data")
        (top,) = self.home.iterdir()
        for wanted in (
            "bin/nod", "share/man/man1/nod.1.gz", "share/bash-completion/completions/nod",
            "share/zsh/site-functions/_nod", "share/fish/vendor_completions.d/nod.fish",
            "share/doc/nod-feishu/LICENSE", "share/doc/nod-feishu/THIRD-PARTY.txt",
        ):
            self.assertGreater((top / wanted).stat().st_size, 500, wanted)
        told = run([top / "bin/nod", "--version"], env=self.environment)
        self.assertRegex(told, r"^nod \d+\.\d+\.\d+ \([0-9a-f]{10}(\.dirty)?, \S+\)\n$")

    def test_no_symbol_is_newer_than_the_oldest_glibc(self):
        with tarfile.open(only("nod-feishu-*.tar.gz")) as archive:
            archive.extractall(self.home, filter="data")
        (nod,) = self.home.glob("*/bin/nod")
        told = run(["objdump", "-T", nod])
        versions = {tuple(map(int, one.split("."))) for one in re.findall(r"GLIBC_([0-9.]+)", told)}
        self.assertTrue(versions, "no symbol of glibc was seen at all")
        self.assertLessEqual(max(versions), GLIBC)

    def test_no_path_of_the_build_machine_is_in_the_binary(self):
        with tarfile.open(only("nod-feishu-*.tar.gz")) as archive:
            archive.extractall(self.home, filter="data")
        (nod,) = self.home.glob("*/bin/nod")
        whole = nod.read_bytes()
        cargo = os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo"))
        for place in (cargo, os.getcwd(), str(Path(MADE).parent)):
            self.assertNotIn(place.encode(), whole)

    def test_npm_installs_it_and_the_demo_runs(self):
        prefix = self.home / "prefix"
        self.npm(prefix, "*.tgz")
        self.demo(prefix / "bin/nod")
        failed = subprocess.run([prefix / "bin/nod", "no-such-command"], env=self.environment, capture_output=True, timeout=20, check=False)
        self.assertEqual(2, failed.returncode, "the launcher passes the exit code on")

    def test_the_launcher_says_what_is_missing(self):
        prefix = self.home / "prefix"
        self.npm(prefix, "nod-feishu-[0-9]*.tgz")
        bare = subprocess.run([prefix / "bin/nod"], env=self.environment, capture_output=True, text=True, timeout=20, check=False)
        self.assertEqual(1, bare.returncode)
        self.assertIn("is not installed", bare.stderr)

    def test_the_bill_names_every_crate_of_the_binary(self):
        bill = json.loads(only("*.cdx.json").read_text())
        names = {one["name"] for one in bill["components"]}
        self.assertLessEqual({"tokio", "rustls", "serde_json", "rusqlite"}, names)
        self.assertNotIn("proptest", names)
        self.assertTrue(all(one["licenses"][0]["expression"] for one in bill["components"]))
        refs = {one["bom-ref"] for one in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
        for row in bill["dependencies"]:
            self.assertLessEqual({row["ref"], *row["dependsOn"]}, refs)

    def test_ruby_reads_the_formula(self):
        self.assertIn("Syntax OK", run(["ruby", "-c", only("*.rb")]))


@unittest.skipUnless(OLD_ROOT, "no old Debian could be had: the symbols alone were looked at")
class OldDebian(unittest.TestCase):
    """dpkg in the root of an older Debian, which has seen no nod before."""

    def setUp(self):
        # A program finds itself by it.
        run(["mount", "-t", "proc", "proc", Path(OLD_ROOT, "proc")])
        self.addCleanup(run, ["umount", Path(OLD_ROOT, "proc")])

    def inside(self, *command):
        return run(["chroot", OLD_ROOT, "/usr/bin/env", "-i", "HOME=/tmp/empty", "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C.UTF-8", *command])

    def files(self):
        told = self.inside("find", "/", "-xdev", "-not", "-path", "/proc/*", "-not", "-path", "/tmp/*", "-not", "-path", "/var/lib/dpkg/*", "-not", "-path", "/var/log/*")
        return set(told.splitlines())

    def test_dpkg_installs_runs_and_purges_it(self):
        before = self.files()
        self.assertNotIn("/usr/bin/nod", before)
        Path(OLD_ROOT, "tmp/empty").mkdir(exist_ok=True)
        shutil.copy(only("*.deb"), Path(OLD_ROOT, "tmp/nod.deb"))
        self.inside("dpkg", "-i", "/tmp/nod.deb")
        self.addCleanup(subprocess.run, ["chroot", OLD_ROOT, "dpkg", "--purge", "nod-feishu"], capture_output=True, check=False)
        self.assertIn(PLAYED, self.inside("nod", "demo", "--auto"))
        self.inside("dpkg", "--purge", "nod-feishu")
        self.assertEqual(before, self.files())


if __name__ == "__main__":
    report.main()
