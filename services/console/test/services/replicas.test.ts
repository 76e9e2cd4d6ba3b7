import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:https';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { freePort } from '@tollgate/testkit/tcp';
import { startWebServer } from '@tollgate/testkit/web-server';
import t, { type Test } from 'tap';
import { describeServiceError } from '../../src/http/problems.ts';
import { Outages } from '../../src/services/outages.ts';
import { SessionClients } from '../../src/services/session-clients.ts';

const certificates = makeCertificates();
t.teardown(certificates.remove);
setDefaultCACertificates([...getCACertificates('default'), certificates.ca.cert]);

/** A replica that answers with how it was called. */
async function startLimiter(t: Test, { address, port }: { address: string; port: number }): Promise<Server> {
  const { cert, key } = certificates.issue({ name: 'limiter', subjectAltNames: ['DNS:limiters.test'] });
  const server = createServer({ cert, key }, (request, response) => {
    const { host, authorization } = request.headers;
    response.setHeader('content-type', 'application/json');
    request
      .resume()
      .on('end', () => response.end(JSON.stringify({ domains: [{ host, authorization, address }] })));
  });
  server.listen(port, address);
  t.teardown(() => server.close());
  await once(server, 'listening');
  return server;
}

t.test(
  'with https the console asks all addresses of a name, and certificates are verified for the name',
  async (t) => {
    const port = await freePort();
    const addresses = ['127.0.0.1', '127.0.0.2', '127.0.0.3'];
    for (const address of addresses) await startLimiter(t, { address, port });
    const ask = (host: string, found = addresses) =>
      new SessionClients({
        settings: {
          ...{ authUrl: '', authReplicaUrls: [], xdsUrl: '', xdsToken: '', requestTimeoutMs: 5000 },
          limiterUrls: [`https://${host}:${port}`],
        },
        outages: new Outages(Date.now),
        token: async () => 'of-ada',
        addresses: async () => found,
      }).limiters((client) => client.GET('/v1/domains'));

    const answered = (address: string) => ({
      url: `https://${address}:${port}`,
      result: {
        ok: true,
        value: { domains: [{ host: `limiters.test:${port}`, authorization: 'Bearer of-ada', address }] },
      },
    });
    // Connections that stay open are for one address, although all have the same name.
    for (let round = 0; round < 3; round += 1)
      t.match(await ask('limiters.test'), addresses.map(answered), `round ${round}`);
    const rounds = await Promise.all(Array.from({ length: 5 }, () => ask('limiters.test')));
    for (const results of rounds) t.match(results, addresses.map(answered), 'at the same time');
    for (const address of addresses.toReversed())
      t.match(await ask('limiters.test', [address]), [answered(address)], 'one after the other');
    const refused = await ask('other.test');
    t.equal(refused.length, addresses.length);
    for (const { result } of refused)
      t.match(result, {
        ok: false,
        error: { code: 'unreachable', message: /cannot be reached: .*does not match/i },
      });
  },
);

t.test('with http requests reach all addresses, with the name in the Host header', async (t) => {
  const port = await freePort();
  const addresses = ['127.0.0.1', '127.0.0.2'];
  for (const address of addresses) {
    const server = createHttpServer(({ headers: { host } }, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ keys: [{ host, address }] }));
    });
    server.listen(port, address);
    t.teardown(() => server.close());
    await once(server, 'listening');
  }
  const clients = new SessionClients({
    settings: {
      ...{ authUrl: 'http://any.test', authReplicaUrls: [`http://auth.test:${port}`] },
      ...{ xdsUrl: '', xdsToken: '', requestTimeoutMs: 5000, limiterUrls: [] },
    },
    outages: new Outages(Date.now),
    token: async () => 'of-ada',
    addresses: async () => addresses,
  });
  for (let round = 0; round < 2; round += 1)
    t.match(
      await clients.authServers((client) => client.GET('/admin/signing-keys')),
      addresses.map((address) => ({
        url: `http://${address}:${port}`,
        result: { ok: true, value: { keys: [{ host: `auth.test:${port}`, address }] } },
      })),
    );
});

t.test('a response without end is not read beyond a bound, which the error names', async (t) => {
  let open = 0;
  const { port } = await startWebServer(t, (request, response) => {
    open += 1;
    response.once('close', () => {
      open -= 1;
    });
    response.setHeader('content-type', 'application/json');
    const chunk = Buffer.alloc(1024 * 1024, ' ');
    const write = () => {
      while (!response.destroyed && response.write(chunk));
    };
    response.on('drain', write);
    write();
    request.resume();
  });
  const settings = {
    ...{ authUrl: `http://127.0.0.1:${port}`, xdsUrl: '', xdsToken: '', requestTimeoutMs: 60_000 },
    ...{ authReplicaUrls: [], limiterUrls: [`http://limiters.test:${port}`] },
  };
  const clients = new SessionClients({
    ...{ settings, outages: new Outages(Date.now), token: async () => 'of-ada' },
    addresses: async () => ['127.0.0.1'],
  });
  const message = 'the response has more than 32 MiB, which the console does not read';
  const [limiter] = await clients.limiters((client) => client.GET('/v1/domains'));
  const error = { code: 'response_too_large', message, outage: undefined };
  t.match(limiter?.result, { ok: false, error });
  await t.rejects(
    clients.auth((client) => client.GET('/admin/settings')),
    error,
  );
  await awaitUntil(() => open === 0, { what: 'the end of both connections' });
  if (limiter?.result.ok !== false) return;
  t.match(describeServiceError(limiter.result.error, Date.now()), {
    title: 'The rate limit service answered too much',
    text: `The rate limit service at http://127.0.0.1:${port}: ${message}. Check that this is the URL of the service.`,
  });
});
