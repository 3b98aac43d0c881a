// The least bot on the official Node SDK: a toast for every click.
//
// usage: node.js DOMAIN APP_ID APP_SECRET
'use strict';

const sdk = require('@larksuiteoapi/node-sdk');

const [domain, appId, appSecret] = process.argv.slice(2);
const eventDispatcher = new sdk.EventDispatcher({ loggerLevel: sdk.LoggerLevel.error }).register({
  'card.action.trigger': async () => ({ toast: { type: 'info', content: 'seen' } }),
});
const loggerLevel = sdk.LoggerLevel.error;
new sdk.WSClient({ appId, appSecret, domain, loggerLevel }).start({ eventDispatcher });
