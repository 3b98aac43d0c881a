"""The least bot on the official Python SDK: a toast for every click.

usage: python.py DOMAIN APP_ID APP_SECRET
"""

import sys

import lark_oapi as lark
from lark_oapi.event.callback.model.p2_card_action_trigger import P2CardActionTriggerResponse

domain, app_id, app_secret = sys.argv[1:]


def clicked(event):
    return P2CardActionTriggerResponse({"toast": {"type": "info", "content": "seen"}})


events = lark.EventDispatcherHandler.builder("", "").register_p2_card_action_trigger(clicked).build()
client = lark.ws.Client(app_id, app_secret, event_handler=events, domain=domain, log_level=lark.LogLevel.ERROR)
client.start()
