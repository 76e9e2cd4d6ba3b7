import t from 'tap';
import { pollDeviceEvents, pollDeviceToken, startDeviceAuthorization } from '../../../src/device/device.ts';
import { clientOf } from './support/client-of.ts';
import { deviceClient } from './support/clients.ts';
import { headlessBrowser } from './support/headless-browser.ts';
import { startProvider, user } from './support/start-provider.ts';

/** The provider answers at once, so there is nothing to wait for. */
const sleep = async () => {};

t.test('a device gets its token after the user has entered its code', async (t) => {
  const provider = await startProvider({ clients: [deviceClient] });
  t.teardown(provider.stop);
  const client = clientOf(provider, deviceClient);
  const device = await startDeviceAuthorization(client, { scope: 'openid email' });
  t.match(device.userCode, /^[A-Z]{4}-[A-Z]{4}$/);
  const types: string[] = [];
  for await (const event of pollDeviceEvents(client, device, { sleep })) {
    types.push(event.type);
    if (types.length === 2) await headlessBrowser().visit(device.verificationUriComplete ?? '');
    if (event.type === 'token') t.match((await event.token.get('/me')).parsed, { sub: user.sub });
  }
  t.same(types, ['waiting', 'waiting', 'token']);
});

t.test('a device whose code has expired gets expired_token', async (t) => {
  const provider = await startProvider({ clients: [deviceClient] });
  t.teardown(provider.stop);
  const client = clientOf(provider, deviceClient);
  const device = await startDeviceAuthorization(client, { scope: 'openid' });
  const poll = pollDeviceToken(client, { ...device, deviceCode: 'another' }, { sleep });
  await t.rejects(poll, { name: 'TokenResponseError', code: 'invalid_grant' });
});
