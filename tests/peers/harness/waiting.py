"""Waiting for a state instead of for a time."""

import time


class NotReached(AssertionError):
    """A state that was waited for did not come."""


def wait_until(what, probe, limit=20.0, show=None):
    """Returns the first truthy value of `probe()`; fails naming `what` after `limit` seconds.

    `show()` adds what was there instead to the failure.
    """
    deadline = time.monotonic() + limit
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > deadline:
            instead = f"; instead:\n{show()}" if show else ""
            raise NotReached(f"{what}: not within {limit:g} s{instead}")
        time.sleep(0.02)
