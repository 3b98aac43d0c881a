"""A program in a pseudo-terminal, and the screen a person would see."""

import codecs
import fcntl
import os
import pty
import re
import signal
import struct
import termios
import threading
import time
import unicodedata

from .processes import marked
from .waiting import wait_until

ROWS, COLUMNS = 50, 160

ESCAPE = re.compile(
    r"\x1b\[(?P<private>[?<=>]?)(?P<numbers>[\d;:]*)[ -/]*(?P<final>[@-~])"
    r"|\x1b\](?:[^\x07\x1b]|\x1b(?!\\))*(?:\x07|\x1b\\)"
    r"|\x1b[PX^_](?:[^\x1b]|\x1b(?!\\))*\x1b\\"
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-Z\\`-~]"
)


class Screen:
    """The visible text: cursor moves and erasures, no colours, no scrollback."""

    def __init__(self, rows=ROWS, columns=COLUMNS):
        self.rows, self.columns = rows, columns
        self.row = self.column = 0
        self.saved = (0, 0)
        self.cells = [[" "] * columns for _ in range(rows)]
        self._rest = ""

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells).strip("\n")

    def feed(self, text):
        text = self._rest + text
        self._rest = ""
        at = 0
        while at < len(text):
            char = text[at]
            if char != "\x1b":
                self._put(char)
                at += 1
                continue
            match = ESCAPE.match(text, at)
            if match is None:
                # An unfinished sequence waits for its rest; 4 KiB of one is noise.
                if len(text) - at < 4096:
                    self._rest = text[at:]
                    return
                at += 1
                continue
            self._escape(match)
            at = match.end()

    def _put(self, char):
        if char == "\r":
            self.column = 0
        elif char == "\n":
            self._line_feed()
        elif char == "\b":
            self.column = max(self.column - 1, 0)
        elif char == "\t":
            self.column = min(self.column // 8 * 8 + 8, self.columns - 1)
        elif char >= " " and not unicodedata.combining(char):
            width = 2 if unicodedata.east_asian_width(char) in "WF" else 1
            if self.column + width > self.columns:
                self.column = 0
                self._line_feed()
            self.cells[self.row][self.column] = char
            if width == 2:
                self.cells[self.row][self.column + 1] = ""
            self.column += width

    def _line_feed(self):
        if self.row + 1 < self.rows:
            self.row += 1
        else:
            self.cells.pop(0)
            self.cells.append([" "] * self.columns)

    def _escape(self, match):
        final = match["final"]
        if final is None:
            if match[0] == "\x1b7":
                self.saved = (self.row, self.column)
            elif match[0] == "\x1b8":
                self.row, self.column = self.saved
            return
        numbers = [int(part or 0) for part in re.split("[;:]", match["numbers"])]
        count = max(numbers[0], 1)
        if match["private"]:
            if match["private"] == "?" and final in "hl" and 1049 in numbers:
                self._erase_rows(0, self.rows)
                self.row = self.column = 0
        elif final == "A":
            self.row = max(self.row - count, 0)
        elif final in "Be":
            self.row = min(self.row + count, self.rows - 1)
        elif final in "Ca":
            self.column = min(self.column + count, self.columns - 1)
        elif final == "D":
            self.column = max(self.column - count, 0)
        elif final == "E":
            self.row, self.column = min(self.row + count, self.rows - 1), 0
        elif final == "F":
            self.row, self.column = max(self.row - count, 0), 0
        elif final in "G`":
            self.column = min(count, self.columns) - 1
        elif final == "d":
            self.row = min(count, self.rows) - 1
        elif final in "Hf":
            second = max(numbers[1], 1) if len(numbers) > 1 else 1
            self.row, self.column = min(count, self.rows) - 1, min(second, self.columns) - 1
        elif final == "J":
            self._erase_display(numbers[0])
        elif final == "K":
            self._erase_line(numbers[0])
        elif final == "P":
            line = self.cells[self.row]
            self.cells[self.row] = (line[: self.column] + line[self.column + count :] + [" "] * count)[: self.columns]
        elif final == "X":
            for column in range(self.column, min(self.column + count, self.columns)):
                self.cells[self.row][column] = " "
        elif final in "LM":
            for _ in range(min(count, self.rows - self.row)):
                blank = [" "] * self.columns
                if final == "L":
                    self.cells.insert(self.row, blank)
                    self.cells.pop()
                else:
                    self.cells.pop(self.row)
                    self.cells.append(blank)
        elif final == "s":
            self.saved = (self.row, self.column)
        elif final == "u":
            self.row, self.column = self.saved

    def _erase_rows(self, first, last):
        for row in range(first, last):
            self.cells[row] = [" "] * self.columns

    def _erase_display(self, kind):
        if kind == 0:
            self._erase_line(0)
            self._erase_rows(self.row + 1, self.rows)
        elif kind == 1:
            self._erase_line(1)
            self._erase_rows(0, self.row)
        else:
            self._erase_rows(0, self.rows)

    def _erase_line(self, kind):
        first = self.column if kind == 0 else 0
        last = self.column + 1 if kind == 1 else self.columns
        for column in range(first, min(last, self.columns)):
            self.cells[self.row][column] = " "


class Terminal:
    """A program on a pseudo-terminal of its own; `with` ends it."""

    def __init__(self, command, environment, cwd, rows=ROWS, columns=COLUMNS):
        environment = {"TERM": "xterm-256color", **marked(environment)}
        command = [str(part) for part in command]
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.chdir(cwd)
                # Whoever started the tests may ignore Ctrl-C, as a shell's background does.
                for ignored in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
                    signal.signal(ignored, signal.SIG_DFL)
                os.execve(command[0], command, environment)
            finally:
                os._exit(127)
        self.exit_code = None
        self._screen = Screen(rows, columns)
        self._written = ""
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            try:
                chunk = os.read(self._master, 65536)
            except OSError:
                return
            if not chunk:
                return
            text = decoder.decode(chunk)
            with self._lock:
                self._screen.feed(text)
                self._written += text

    def screen(self):
        with self._lock:
            return self._screen.text()

    def shows(self, text, limit=30.0):
        """Waits until `text` (a string, or a regular expression) is on the screen."""
        pattern = text if isinstance(text, re.Pattern) else re.compile(re.escape(text))
        wait_until(f"screen shows {pattern.pattern!r}", lambda: pattern.search(self.screen()), limit, self.screen)

    def written(self):
        """Everything it wrote so far, what has scrolled away included, without escape sequences."""
        with self._lock:
            return ESCAPE.sub("", self._written)

    def writes(self, text, limit=30.0):
        """Waits until it has written `text`."""
        wait_until(f"terminal wrote {text!r}", lambda: text in self.written(), limit, self.screen)

    def hides(self, text, limit=30.0):
        """Waits until `text` is gone from the screen."""
        wait_until(f"screen no longer shows {text!r}", lambda: text not in self.screen(), limit, self.screen)

    def send(self, keys):
        os.write(self._master, keys.encode())

    def running(self):
        if self.exit_code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.exit_code = os.waitstatus_to_exitcode(status)
        return self.exit_code is None

    def close(self):
        for number, seconds in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
            if not self.running():
                break
            os.kill(self.pid, number)
            deadline = time.monotonic() + seconds
            while self.running() and time.monotonic() < deadline:
                time.sleep(0.02)
        # The reader ends by itself once the last holder of the other side is gone.
        self._reader.join(2)
        os.close(self._master)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
