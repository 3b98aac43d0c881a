"""Runs one script's tests and says the counts in the line that the suite reads."""

import sys
import unittest

PREFIX = "counts:"


def main():
    program = unittest.main(module="__main__", exit=False, verbosity=2)
    result = program.result
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    skipped = len(result.skipped)
    passed = max(result.testsRun - failed - skipped, 0)
    sys.stderr.flush()
    print(f"{PREFIX} {passed} {failed} {skipped}", flush=True)
    sys.exit(1 if failed else 0)
