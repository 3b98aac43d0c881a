"""Sixty exact rules, judged by the real CLI: the same command is not asked about again, and whatever lies beside is.

Every rule comes the whole way: the CLI asks, nod shows a card, a person taps, the CLI writes its settings. Then a new
session of the CLI, with a hook that denies everything, shows what still asks.
"""

from judged import Judged

from harness import report
from harness.model import bash

# The exact command, and commands that lie beside it.
EXACT = [
    ("./probe", ["./probe x", "./prob", "./probe2", "sub/probe", "env ./probe", "bash ./probe"]),
    ("./probe a", ["./probe a b", "./probe ab", "./probe b", "./probe  a", "./probe 'a'", "FOO=1 ./probe a"]),
    ("./probe a1", ["./probe a1 > out", "./probe a1 >> out", "./probe a1 2> out", "./probe a1 | tee out"]),
    ("./probe a2", ["./probe a2 | sh", "./probe a2 && ./probe zz", "./probe a2; ./probe zz", "./probe a2 & ./probe zz"]),
    ("./probe a3", ["PATH=. ./probe a3", "LD_PRELOAD=x ./probe a3", "sudo ./probe a3", "xargs ./probe a3"]),
    ("./probe a4", ["$(./probe a4)", "echo $(./probe a4)", "./probe a4 <(./probe zz)", "./probe a4\n./probe zz"]),
    ("./probe 'b c'", ["./probe b c", "./probe 'b d'", "./probe 'b c' d"]),
    ('./probe "d e"', ["./probe 'd e'", './probe "d f"']),
    ("./probe f\\ g", ["./probe f g", "./probe f\\ h"]),
    ("./probe '(h)'", ["./probe h", "./probe '(i)'"]),
    ("./probe \"it's\"", ["./probe its", './probe "it"']),
    ("./probe 'x\\y'", ["./probe 'x'", "./probe 'xy'"]),
    ("./probe '#j'", ["./probe", "./probe '#k'"]),
    ("./probe k 2>&1", ["./probe k", "./probe k 2>&1 > out", "./probe k2 2>&1"]),
    ("PORT=1 ./probe l", ["./probe l", "PORT=2 ./probe l", "BAR=1 ./probe l"]),
    ("PORT=1 DEBUG=2 ./probe m", ["PORT=1 ./probe m", "DEBUG=2 ./probe m", "./probe m"]),
    ("NODE_ENV=test ./probe n", ["./probe n", "NODE_ENV=test ./probe n2"]),
    ("./probe --o=1,2:3@4", ["./probe --o=1,2:3@5", "./probe --o=1"]),
    ("./probe -p src/x.rs", ["./probe -p src/y.rs", "./probe -p", "./probe src/x.rs"]),
    ("./probe src/x.rs", ["./probe src/x.rs src/y.rs", "./probe src"]),
    ("./probe -- -x", ["./probe -x", "./probe --"]),
    ("./probe +q", ["./probe q"]),
    ("./probe 100%", ["./probe 100"]),
    ("./probe a.b.c", ["./probe aXbXc", "./probe a.b"]),
    ("./probe 'a|b'", ["./probe a", "./probe 'a|c'"]),
    ("./probe 'a;b'", ["./probe a", "./probe 'a;c'"]),
    ("./probe 'a && b'", ["./probe a", "./probe a && ./probe b"]),
    ("./probe ''", ["./probe ' '"]),
    ("./probe r s t u v w", ["./probe r s t u v", "./probe r s t u v w x"]),
    ("./probe 'a  b'", ["./probe 'a b'"]),
    ("./probe x~", ["./probe x"]),
    ("./probe 1.0.0-rc.1", ["./probe 1.0.0"]),
    ("./probe ^up", ["./probe up"]),
    ("./probe key=value", ["./probe key=other", "./probe key"]),
    ("./probe https://a.example/x", ["./probe https://a.example/y", "./probe https://b.example/x"]),
    ("src/tool", ["src/tool x", "./src/tool", "tool"]),
    ("./src/tool one", ["./src/tool", "./src/tool two", "src/tool one"]),
    ("make", ["make all", "make -f other.mk", "make SHELL=./probe", "make -C src"]),
    ("make check", ["make", "make check install", "make check SHELL=./probe", "MAKEFLAGS=x make check"]),
    ("make -s check", ["make -s", "make -s check -f other.mk"]),
    ("make V=1", ["make V=2", "make V=1 SHELL=./probe"]),
    ("git config user.name lin", ["git config core.fsmonitor ./probe", "git config user.name", "git config user.name x"]),
    ("git config user.email lin@a.example", ["git config core.pager ./probe", "git -c a.b=c config user.email x"]),
    ("git add file", ["git add .", "git add -A", "git add file probe"]),
    ("git commit -m one", ["git commit -m two", "git commit -m one --amend", "git commit", "git commit -am one"]),
    ("git commit -m 'fix (a)'", ["git commit -m 'fix (b)'", "git commit -m 'fix (a)' -n"]),
    ("git tag v1", ["git tag v2", "git tag -d v1"]),
    ("git branch topic", ["git branch other", "git branch -D topic"]),
    ("git stash", ["git stash drop", "git stash pop"]),
    ("git fetch --dry-run", ["git fetch", "git fetch --dry-run --upload-pack=./probe", "git fetch --dry-run ../x"]),
    ("mkdir made", ["mkdir other", "mkdir -p made/x"]),
    ("touch made-file", ["touch other", "touch made-file probe"]),
    ("cp file copy", ["cp file probe", "cp probe copy", "cp -r file copy"]),
    ("rm copy", ["rm file", "rm copy file", "rm -r copy"]),
    ("chmod +x file", ["chmod +x copy", "chmod 777 file"]),
    ("python3 script.py", ["python3 script.py x", "python3 other.py", "python3 -c 'print(1)'", "python3"]),
    ("python3 -m unittest", ["python3 -m pdb", "python3 -m unittest x", "python3 -m http.server"]),
    ("tar -cf made.tar file", ["tar -cf made.tar probe", "tar -cf made.tar file --to-command=./probe", "tar -xf made.tar"]),
    ("git ls-tree HEAD", ["git ls-tree HEAD > out", "git ls-tree", "git ls-tree HEAD file", "git show-ref"]),
    ("git show-ref --head", ["git show-ref", "git show-ref --head x"]),
]


class Exact(Judged):
    def test_an_exact_rule_lets_its_command_pass_and_nothing_beside_it(self):
        commands = [command for command, _ in EXACT]
        toasts = self.tap_each([bash(command) for command in commands], "always")
        self.assertEqual({"已始终允许，后续相同操作将自动批准"}, set(toasts))
        escaped = [c.translate({ord(x): f"\\{x}" for x in "\\()"}) for c in commands]
        self.assertEqual([f"Bash({command})" for command in escaped], self.left())
        beside = [bash(other) for _, others in EXACT for other in others if other not in commands]
        self.compare([bash(command) for command in commands], beside)
        print(f"{len(commands)} exact rules, {len(beside)} commands beside them")


if __name__ == "__main__":
    report.main()
