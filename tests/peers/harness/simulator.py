"""The local Feishu (`nod simulator`) through its control interface, as docs/simulator.md describes it."""

import base64
import json
import os
import re
import secrets
import time
import urllib.error
import urllib.request

from .model import QUOTES
from .processes import Child

# What a simulator starts with.
APP_ID = "cli_a1b2c3d4e5f60718"
APP_SECRET = "simulated-secret-Zq81kLmN0pQrStUv"
OWNER = "ou_owner0c14f3a59eaf2825dbe25359f15a"
STRANGER = "ou_stranger9e8d7c6b5a4f3e2d1c0b9a87"
GROUP = "oc_group5ce6d572455d361153b7cb51da13"

DECIDING = frozenset({"allow", "session", "always", "wider", "deny", "deny_with", "interrupt"})


def _objects(value):
    """Every object in a JSON value."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _objects(item)


def _strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


class Card:
    """A card as it was when it was looked at."""

    def __init__(self, message):
        self.id = message["message_id"]
        self.chat = message["chat_id"]
        self.thread = message.get("thread_id")
        self._json = message["card"]
        self.text = "\n".join(_strings(self._json))
        # The same without what only quotes a prompt, as a task's title does.
        self.said = "\n".join(text for text in _strings(self._json) if QUOTES not in text)

    def values(self):
        """The callback values of its buttons, by action."""
        found = {}
        for part in _objects(self._json):
            for behavior in part.get("behaviors", []) if part.get("tag") == "button" else []:
                if behavior.get("type") == "callback" and not part.get("disabled"):
                    found[behavior["value"]["action"]] = behavior["value"]
        return found

    def decides(self):
        """Whether a person can still decide on it."""
        return bool(DECIDING & self.values().keys())

    def input_name(self):
        """The name of its one text field."""
        (name,) = {part["name"] for part in _objects(self._json) if part.get("tag") == "input"}
        return name


class Outcome:
    """What the person who tapped sees."""

    def __init__(self, answer):
        self.answer = answer
        self.toast = answer["toast"]

    def __repr__(self):
        return json.dumps(self.answer, ensure_ascii=False)


class Simulator:
    def __init__(self, *arguments):
        command = [os.environ["NOD_BIN"], "simulator", "--port", "0", "--control-port", "0", *arguments]
        self._child = Child(command, {"PATH": os.environ["PATH"]})
        addresses = json.loads(self._child.first_line())
        self.domain = addresses["feishu"]
        self._control = f"{addresses['control']}/control/"
        # Where a person taps; the token reaches no server.
        self.page = f"{addresses['control']}/#{addresses['token']}"
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {addresses['token']}"}
        # A proxy of the machine's own has no business with loopback.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def _call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._control + path, data, self._headers)
        try:
            with self._opener.open(request, timeout=20) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.code} {error.read().decode()}") from None

    def cards(self):
        """Every card the app has sent, oldest first, as it is now."""
        messages = self._call("messages")["messages"]
        return [Card(message) for message in messages if message["card"] and message["sender_type"] == "app"]

    def card(self, message_id):
        return Card(self._call(f"messages/{message_id}"))

    def connections(self):
        return self._call("connections")["connections"]

    def history(self, kind):
        """What happened of this kind, oldest first."""
        return self._call(f"history?kind={kind}")["entries"]

    def violations(self):
        return self._call("violations")["violations"]

    def click(self, card, action, operator=OWNER, form=None):
        """Taps the button with this action on the card as it is now."""
        press = {"message_id": card.id, "user": operator, "value": {"action": action}, "form_value": form or {}}
        return Outcome(self._call("click", press))

    def press(self, card, text, form=None):
        """Taps the button that says `text`."""
        press = {"message_id": card.id, "user": OWNER, "text": text, "form_value": form or {}}
        return Outcome(self._call("click", press))

    def texts(self):
        """Every plain text the app has sent, oldest first."""
        messages = self._call("messages")["messages"]
        own = [message for message in messages if message["msg_type"] == "text" and message["sender_type"] == "app"]
        return [json.loads(message["content"])["text"] for message in own]

    def say_in_thread(self, card, text):
        """Writes into the thread that `card` stands in."""
        return self._call("text", {"user": OWNER, "text": text, "thread_id": card.thread})

    def click_stale(self, card, action, operator=OWNER):
        """Taps a button on a screen that still shows the card as it was."""
        event = {
            "operator": {"tenant_key": "stale", "open_id": operator},
            "token": f"c-{secrets.token_hex(20)}",
            "action": {"value": card.values()[action], "tag": "button"},
            "host": "im_message",
            "context": {"open_message_id": card.id, "open_chat_id": card.chat},
        }
        header = {
            "event_id": secrets.token_hex(16),
            "token": "",
            "create_time": str(time.time_ns() // 1000),
            "event_type": "card.action.trigger",
            "tenant_key": "stale",
            "app_id": APP_ID,
        }
        body = {"payload": {"schema": "2.0", "header": header, "event": event}}
        return Outcome(self._call("click/raw", body)["outcome"])

    def say(self, text, reply_to=None, user=OWNER):
        """Writes to the bot as a person, as a reply to a card if one is given."""
        return self._call("text", {"user": user, "text": text, "parent_id": reply_to.id if reply_to else None})

    def send_file(self, name, content):
        """Sends the bot a file, as the owner."""
        encoded = base64.b64encode(content).decode()
        return self._call("text", {"user": OWNER, "text": "", "file": encoded, "file_name": name})

    def scan(self, approve=True, user=OWNER):
        """Scans the newest registration link; the app's id, if one was made."""
        code = self._call("registrations")["registrations"][-1]["user_code"]
        return self._call("registration", {"user_code": code, "approve": approve, "user": user})["app_id"]

    def pairing_code(self):
        """The digits of the newest text the app has sent, if there is one."""
        texts = [message for message in self._call("messages")["messages"] if message["sender_type"] == "app"]
        digits = re.search(r"\b\d{6}\b", json.dumps(texts[-1])) if texts else None
        return digits and digits.group()

    def fault(self, fault):
        self._call("fault", fault)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._child.stop()
