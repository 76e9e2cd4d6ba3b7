// Metrics of all replicas behind one name, over TLS and without it.
import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer } from 'node:https';
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { freePort } from '@tollgate/testkit/tcp';
import t, { type Test } from 'tap';
import { Live } from '../../src/live/live.ts';

const certificates = makeCertificates();
t.teardown(certificates.remove);
setDefaultCACertificates([...getCACertificates('default'), certificates.ca.cert]);
const { cert, key } = certificates.issue({ name: 'replica', subjectAltNames: ['DNS:replicas.test'] });

const addresses = ['127.0.0.1', '127.0.0.2'];

/** A request to a replica, with its Host header and the name of TLS (SNI). */
interface Call {
  readonly address: string;
  readonly host: string | undefined;
  readonly servername: string | false | null | undefined;
}

/** Starts a replica at each address, whose version is its address. */
async function startReplicas(t: Test, { isTls }: { readonly isTls: boolean }) {
  const port = await freePort();
  const calls: Call[] = [];
  for (const address of addresses) {
    const answer: RequestListener = ({ headers: { host }, socket }, response) => {
      calls.push({ address, host, servername: isTls ? (socket as TLSSocket).servername : undefined });
      response.end(`ratelimit_decisions{result="ok"} 7\ntollgate_build_info{version="${address}"} 1\n`);
    };
    const server = isTls ? createServer({ cert, key }, answer) : createHttpServer(answer);
    server.listen(port, address);
    t.teardown(() => server.close());
    await once(server, 'listening');
  }
  return { port, calls };
}

async function scrapeOnce(t: Test, url: string): Promise<Live> {
  const live = new Live({ metricsUrls: [url], requestTimeoutMs: 20_000 }, Date.now, async () => addresses);
  live.start();
  t.teardown(() => live.close());
  const isRead = () =>
    live.replicas().length > 0 &&
    live.replicas().every(({ answeredMs, failure }) => answeredMs !== undefined || failure !== undefined);
  await awaitUntil(isRead, { what: 'the first samples' });
  return live;
}

for (const [scheme, isTls] of [
  ['https', true],
  ['http', false],
] as const)
  t.test(`with ${scheme} the metrics of all addresses of a name are read, by its name`, async (t) => {
    const { port, calls } = await startReplicas(t, { isTls });
    const live = await scrapeOnce(t, `${scheme}://replicas.test:${port}/metrics`);
    t.match(
      live.replicas(),
      addresses.map((address) => ({
        ...{ url: `${scheme}://${address}:${port}/metrics`, kind: 'limiter' },
        ...{ version: address, failure: undefined },
      })),
    );
    const host = `replicas.test:${port}`;
    const servername = isTls ? 'replicas.test' : undefined;
    const expected = addresses.map((address) => ({ address, host, servername }));
    t.same(
      calls.slice(0, addresses.length).sort((a, b) => a.address.localeCompare(b.address)),
      expected,
    );
  });

t.test('a replica whose certificate has another name is not read', async (t) => {
  const { port, calls } = await startReplicas(t, { isTls: true });
  const live = await scrapeOnce(t, `https://other.test:${port}/metrics`);
  t.equal(live.replicas().length, addresses.length);
  for (const { failure } of live.replicas()) t.match(failure, { reason: /does not match/i });
  t.same(calls, []);
});
