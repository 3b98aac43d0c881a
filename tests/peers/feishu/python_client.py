"""A bot on the official Python SDK: sends one card, then answers clicks and hears messages.

usage: python_client.py DOMAIN APP_ID APP_SECRET OWNER_OPEN_ID
Prints `peer: JSON` lines for its driver; the SDK prints its own log beside them.
"""

import json
import sys

import lark_oapi as lark
from lark_oapi.api.im.v1 import CreateMessageRequest, CreateMessageRequestBody
from lark_oapi.event.callback.model.p2_card_action_trigger import P2CardActionTriggerResponse

domain, app_id, app_secret, owner = sys.argv[1:]


def tell(**what):
    print("peer: " + json.dumps(what, ensure_ascii=False), flush=True)


def card(title):
    with_button = {
        "tag": "button",
        "text": {"tag": "plain_text", "content": "批准"},
        "behaviors": [{"type": "callback", "value": {"action": "allow", "request_id": "peer-1"}}],
    }
    return {
        "schema": "2.0",
        "header": {"title": {"tag": "plain_text", "content": title}},
        "body": {"elements": [with_button]},
    }


def clicked(event):
    action, operator = event.event.action, event.event.operator
    tell(clicked=action.value, by=operator.open_id, message=event.event.context.open_message_id)
    return P2CardActionTriggerResponse(
        {
            "toast": {"type": "success", "content": f"已批准 {action.value['request_id']}"},
            "card": {"type": "raw", "data": card("decided")},
        }
    )


def heard(event):
    tell(heard=json.loads(event.event.message.content)["text"], by=event.event.sender.sender_id.open_id)


rest = lark.Client.builder().app_id(app_id).app_secret(app_secret).domain(domain).build()
body = (
    CreateMessageRequestBody.builder()
    .receive_id(owner)
    .msg_type("interactive")
    .content(json.dumps(card("waiting")))
    .build()
)
sent = rest.im.v1.message.create(CreateMessageRequest.builder().receive_id_type("open_id").request_body(body).build())
if not sent.success():
    sys.exit(f"send failed: {sent.code} {sent.msg}")
tell(card=sent.data.message_id)

events = (
    lark.EventDispatcherHandler.builder("", "")
    .register_p2_card_action_trigger(clicked)
    .register_p2_im_message_receive_v1(heard)
    .build()
)
lark.ws.Client(app_id, app_secret, event_handler=events, domain=domain).start()
