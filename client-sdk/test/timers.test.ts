import t from 'tap';
import { pollDeviceToken, startDeviceAuthorization } from '../src/device/device.ts';
import { Client } from '../src/index.ts';
import { nodeTransport } from '../src/node.ts';
import { createRetryPolicy } from '../src/retry.ts';
import { sleep } from '../src/timers.ts';
import { TokenManager } from '../src/token-manager.ts';
import { recordingFetch } from './support/recording-fetch.ts';

const longest = 2 ** 31 - 1;
const refusal = (name: string) => ({
  name: 'ConfigurationError',
  message: new RegExp(`\`${name}\` must be`),
});

function makeClient(...answers: (() => Response)[]) {
  const { fetch, sent } = recordingFetch(...answers);
  const site = 'https://as.test';
  return {
    client: new Client({ clientId: 'id', site, fetch, deviceAuthorizationEndpoint: '/device' }),
    sent,
  };
}

for (const ms of [longest + 1, Number.POSITIVE_INFINITY, -1, Number.NaN]) {
  t.test(`a timer of ${ms} ms is rejected wherever it can be given`, async (t) => {
    const { client, sent } = makeClient(() => Response.json({}));
    t.throws(() => new Client({ timeoutMs: ms }), refusal('timeoutMs'));
    await t.rejects(client.request('GET', '/x', { timeoutMs: ms }), refusal('timeoutMs'));
    t.throws(() => createRetryPolicy({ baseDelayMs: ms }), refusal('baseDelayMs'));
    t.throws(() => createRetryPolicy({ maxDelayMs: ms }), refusal('maxDelayMs'));
    t.throws(() => new TokenManager({ client, leaseSeconds: ms }), refusal('leaseSeconds'));
    t.throws(() => nodeTransport({ connectTimeoutMs: ms }), refusal('connectTimeoutMs'));
    t.throws(() => nodeTransport({ idleTimeoutMs: ms }), refusal('idleTimeoutMs'));
    await t.rejects(sleep(ms), { name: 'ConfigurationError' });
    t.same(sent, []);
  });
}

t.test('the longest timer is accepted', async (t) => {
  const { client } = makeClient(() => Response.json({ ok: true }));
  t.equal((await client.request('GET', '/x', { timeoutMs: longest })).status, 200);
  t.ok(new Client({ timeoutMs: longest }));
});

t.test('a Retry-After beyond the limit is not honoured', async (t) => {
  const headers = { 'retry-after': '99999999' };
  const { fetch, sent } = recordingFetch(() => new Response('', { status: 503, headers }));
  const retry = createRetryPolicy({ deadlineMs: Number.POSITIVE_INFINITY });
  const client = new Client({ site: 'https://as.test', fetch, retry });
  await t.rejects(client.request('GET', '/x'), { name: 'OAuthError' });
  t.equal(sent.length, 1);
});

t.test('a device interval beyond the limit is rejected', async (t) => {
  const fields = { device_code: 'd', user_code: 'u', verification_uri: 'https://v.test', expires_in: 1e9 };
  const { client, sent } = makeClient(() => Response.json({ ...fields, interval: 3e6 }));
  await t.rejects(startDeviceAuthorization(client), { name: 'ParseError', message: /interval/ });
  const device = { deviceCode: 'd', userCode: 'u', verificationUri: 'https://v.test' };
  const polling = pollDeviceToken(client, { ...device, expiresAt: 1e12, intervalSeconds: 3e6 });
  await t.rejects(polling, { name: 'ConfigurationError' });
  t.equal(sent.length, 1);
});
