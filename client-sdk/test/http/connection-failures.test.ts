import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type Certificate, makeCertificates } from '@tollgate/testkit/certificates';
import t, { type Test } from 'tap';
import { type DevicePollEvent, pollDeviceEvents } from '../../src/device/device.ts';
import { isTlsFailure } from '../../src/http/connection-failures.ts';
import { type AccessToken, Client, type Fetch } from '../../src/index.ts';
import { nodeTransport } from '../../src/node.ts';
import { createRetryPolicy } from '../../src/retry.ts';

const certificates = makeCertificates();
t.teardown(certificates.remove);
const { ca, server, issue } = certificates;

async function startServer(t: Test, { cert, key }: Certificate) {
  let connections = 0;
  const listener = createServer({ cert, key }, (_request, response) => response.end('{}'));
  listener.on('connection', () => {
    connections += 1;
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  t.teardown(() => void listener.close());
  // A listening TCP server has such an address.
  const { port } = listener.address() as AddressInfo;
  return { site: `https://localhost:${port}`, connections: () => connections };
}

function transportOf(t: Test, options: Parameters<typeof nodeTransport>[0]): Fetch {
  const transport = nodeTransport(options);
  t.teardown(transport.close);
  return transport;
}

const cases: readonly (readonly [what: string, certificate: Certificate, fetch: (t: Test) => Fetch])[] = [
  ['an authority that the global fetch does not know', server, () => (url, init) => fetch(url, init)],
  ['an authority that the transport does not know', server, (t) => transportOf(t, {})],
  [
    'a certificate of another name',
    issue({ name: 'other', subjectAltNames: ['DNS:other.test'] }),
    (t) => transportOf(t, { ca: ca.cert }),
  ],
  ['an expired certificate', issue({ name: 'old', validDays: 0 }), (t) => transportOf(t, { ca: ca.cert })],
];

for (const [what, certificate, makeFetch] of cases) {
  t.test(`${what} is not retried`, async (t) => {
    const { site, connections } = await startServer(t, certificate);
    const retry = createRetryPolicy({ maxAttempts: 3, baseDelayMs: 1 });
    const client = new Client({ clientId: 'id', site, fetch: makeFetch(t), retry });
    const expected = { name: 'ConnectionError', retryable: false, message: /TLS connection failed: / };
    await t.rejects(client.request('GET', '/x'), expected);
    await t.rejects(client.clientCredentials.getToken(), expected);
    t.equal(connections(), 2, 'one attempt for each call');
    const device = { deviceCode: 'd', userCode: 'u', verificationUri: site, expiresAt: 1e12 };
    const events: DevicePollEvent<AccessToken>[] = [];
    const polling = async () => {
      const options = { sleep: async () => undefined };
      for await (const event of pollDeviceEvents(client, { ...device, intervalSeconds: 1 }, options))
        events.push(event);
    };
    await t.rejects(polling(), expected);
    t.same(events, []);
  });
}

t.test('a trusted server certificate is accepted', async (t) => {
  const { site } = await startServer(t, server);
  const client = new Client({ site, fetch: transportOf(t, { ca: ca.cert }) });
  t.equal((await client.request('GET', '/x')).status, 200);
});

for (const [failure, isTls] of [
  [{ code: 'ERR_SSL_WRONG_VERSION_NUMBER' }, true],
  [{ code: 'ERR_TLS_CERT_ALTNAME_INVALID' }, true],
  [{ code: 'ERR_TLS_HANDSHAKE_TIMEOUT' }, false],
  [{ code: 'ECONNRESET' }, false],
  [{ code: 'ECONNREFUSED' }, false],
  [{ message: 'client error (Connect): invalid peer certificate: UnknownIssuer' }, true],
] as const) {
  t.test(`${JSON.stringify(failure)} is ${isTls ? 'a' : 'no'} TLS failure`, async (t) => {
    const error = new TypeError('fetch failed', { cause: Object.assign(new Error(), failure) });
    t.equal(isTlsFailure(error), isTls);
  });
}
