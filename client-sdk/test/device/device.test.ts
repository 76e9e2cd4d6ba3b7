import t from 'tap';
import { Client } from '../../src/client.ts';
import { pollDeviceToken, startDeviceAuthorization } from '../../src/device/device.ts';
import { createAuthorizationServer } from '../../src/testing/authorization-server.ts';

function makeClient(throwOnError = true) {
  const server = createAuthorizationServer({ clients: [{ clientId: 'tv' }] });
  const client = new Client({
    ...{ clientId: 'tv', clientAuth: 'none', throwOnError, fetch: server.fetch, now: server.now },
    ...{ site: server.issuer, deviceAuthorizationEndpoint: server.endpoints.deviceAuthorization },
  });
  const sleep = async (delayMs: number) => server.advance(delayMs / 1000);
  return { server, client, sleep };
}

for (const throwOnError of [true, false]) {
  t.test(`a device gets its token when its user agrees, with throwOnError ${throwOnError}`, async (t) => {
    const { server, client, sleep } = makeClient(throwOnError);
    const device = await startDeviceAuthorization(client, { scope: 'read' });
    t.match(device, {
      userCode: /^\w{8}$/,
      intervalSeconds: 5,
      verificationUriComplete: new RegExp(device.userCode),
    });
    let polls = 0;
    const token = await pollDeviceToken(client, device, {
      async sleep(delayMs) {
        await sleep(delayMs);
        polls += 1;
        if (polls === 3) server.decideDevice(device.userCode);
      },
    });
    t.equal(polls, 3);
    t.ok(server.isActive(token.token));
    t.same(token.scope, ['read']);
  });
}

t.test('a device whose user refuses gets access_denied', async (t) => {
  const { server, client, sleep } = makeClient(false);
  const device = await startDeviceAuthorization(client);
  server.decideDevice(device.userCode, { deny: true });
  await t.rejects(pollDeviceToken(client, device, { sleep }), {
    name: 'TokenResponseError',
    code: 'access_denied',
  });
});

t.test('polling continues with a stored transaction', async (t) => {
  const { server, client, sleep } = makeClient();
  const device = JSON.parse(JSON.stringify(await startDeviceAuthorization(client)));
  server.decideDevice(device.userCode);
  t.ok((await pollDeviceToken(client, device, { sleep })).token);
});

t.test('the default wait ends at once when the signal is aborted', async (t) => {
  const { client } = makeClient();
  const device = await startDeviceAuthorization(client);
  const controller = new AbortController();
  const polling = pollDeviceToken(client, device, { signal: controller.signal });
  controller.abort(new Error('enough'));
  await t.rejects(polling, { name: 'AbortError' });
});

t.test('a client without the endpoint, and a server that refuses, are errors of their own', async (t) => {
  const { server, client } = makeClient();
  const lost = new Client({ site: server.issuer, clientId: 'tv', fetch: server.fetch });
  await t.rejects(startDeviceAuthorization(lost), {
    name: 'ConfigurationError',
    message: /deviceAuthorizationEndpoint/,
  });
  await t.rejects(startDeviceAuthorization(client, { client_id: 'nobody' }), {
    name: 'OAuthError',
    code: 'invalid_client',
  });
});
