// A bot on the official Node SDK: sends one card, then answers clicks and hears messages.
//
// usage: node_client.js DOMAIN APP_ID APP_SECRET OWNER_OPEN_ID
// Prints `peer: JSON` lines for its driver; the SDK prints its own log beside them.
'use strict';

const sdk = require('@larksuiteoapi/node-sdk');

const [domain, appId, appSecret, owner] = process.argv.slice(2);
const tell = (what) => console.log(`peer: ${JSON.stringify(what)}`);

const card = (title) => ({
  schema: '2.0',
  header: { title: { tag: 'plain_text', content: title } },
  body: {
    elements: [
      {
        tag: 'button',
        text: { tag: 'plain_text', content: '批准' },
        behaviors: [{ type: 'callback', value: { action: 'allow', request_id: 'peer-1' } }],
      },
    ],
  },
});

const events = new sdk.EventDispatcher({}).register({
  'card.action.trigger': async (event) => {
    const { value } = event.action;
    tell({ clicked: value, by: event.operator.open_id, message: event.context.open_message_id });
    return {
      toast: { type: 'success', content: `已批准 ${value.request_id}` },
      card: { type: 'raw', data: card('decided') },
    };
  },
  'im.message.receive_v1': async (event) => {
    tell({ heard: JSON.parse(event.message.content).text, by: event.sender.sender_id.open_id });
  },
});

async function main() {
  const rest = new sdk.Client({ appId, appSecret, domain });
  const sent = await rest.im.v1.message.create({
    params: { receive_id_type: 'open_id' },
    data: { receive_id: owner, msg_type: 'interactive', content: JSON.stringify(card('waiting')) },
  });
  if (sent.code !== 0) throw new Error(`send failed: ${sent.code} ${sent.msg}`);
  tell({ card: sent.data.message_id });
  new sdk.WSClient({ appId, appSecret, domain }).start({ eventDispatcher: events });
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
