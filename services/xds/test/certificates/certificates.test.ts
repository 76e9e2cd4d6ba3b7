import { X509Certificate } from 'node:crypto';
import { credentials, status } from '@grpc/grpc-js';
import { followTls } from '@tollgate/kit/grpc/credentials';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t, { type Test } from 'tap';
import { leafRenewMs, leafValidMs } from '../../src/certificates/authorities.ts';
import { limiterUri, SecretCertificates } from '../../src/certificates/certificates.ts';
import { readSecret } from '../../src/certificates/secrets.ts';
import type { ApiClient } from '../../src/kube/client.ts';
import { connectAds } from '../support/ads-client.ts';
import { connectApi, deployFile } from '../support/cluster.ts';
import { recordingLogger } from '../support/recording-logger.ts';
import { startAdsServer } from '../support/start-ads-server.ts';
import { testSnapshot } from '../support/test-snapshot.ts';

const server = 'system:serviceaccount:tollgate:tollgate-xds';
const namespace = 'tollgate';
const name = 'tollgate-xds';
const clientSecret = { namespace, name: `${name}-client` };

/** A replica with the permissions of the client; closed when the test ends. */
function startReplica(
  t: Test,
  api: ApiClient,
  {
    nowMs = Date.now,
    clientSecrets = [clientSecret],
  }: { nowMs?: () => number; clientSecrets?: (typeof clientSecret)[] } = {},
): SecretCertificates & { readonly lines: readonly Record<string, unknown>[] } {
  const { logger, lines } = recordingLogger();
  const certificates = new SecretCertificates(
    { logger, nowMs },
    {
      api,
      namespace,
      name,
      serverNames: ['localhost'],
      clientSecrets,
      backoff: { initialMs: 50, maxMs: 50, jitter: 0 },
      onAttempt: () => undefined,
    },
  );
  t.teardown(() => certificates.close());
  return Object.assign(certificates, { lines });
}

const signal = new AbortController().signal;

kubeSuite(
  t,
  'certificates in Secrets',
  async (t, kube) => {
    await kube.kubectl(['create', 'namespace', namespace]);
    await kube.kubectl(['create', 'namespace', 'shop']);
    await kube.apply(deployFile('rbac.yaml'));
    const api = await connectApi(kube, server);
    const admin = await connectApi(kube);
    t.teardown(() => {
      api.close();
      admin.close();
    });
    const read = (of = clientSecret) => readSecret(admin, of, signal);
    const client = async (of = clientSecret) => {
      const { data } = await read(of);
      const [ca = '', cert = '', key = ''] = [data['ca.crt'], data['tls.crt'], data['tls.key']];
      return { ca, cert, key };
    };

    await t.test('replicas that start together agree on one authority', async (t) => {
      const replicas = [1, 2, 3].map(() => startReplica(t, api));
      await Promise.all(replicas.map((replica) => replica.start({ signal })));
      const [first, ...others] = replicas.map((replica) => replica.current());
      for (const other of others) t.same(other, first);
      const issued = replicas.flatMap(({ lines }) =>
        lines.filter((line) => line['@message'] === 'certificate issued'),
      );
      t.ok(issued.length >= 3);
      await awaitUntil(async () => (await client()).cert !== '', { what: 'the certificate of limiters' });
      t.equal((await client()).ca, String(first?.ca));
    });

    await t.test('limiters with the certificate of their Secret are served, others are not', async (t) => {
      const replica = startReplica(t, api);
      await replica.start({ signal });
      const ads = await startAdsServer(t, {
        snapshot: testSnapshot({ shop: 1 }),
        credentials: followTls(replica, { mutual: true }),
      });
      await awaitUntil(async () => (await client()).cert !== '', { what: 'the certificate of limiters' });
      const { ca, cert, key } = await client();
      const root = Buffer.from(ca);
      const open = (pair?: { key: string; cert: string }) => {
        const channel = pair
          ? credentials.createSsl(root, Buffer.from(pair.key), Buffer.from(pair.cert))
          : credentials.createSsl(root);
        const stream = connectAds(t, `localhost:${ads.port}`, channel).sotw();
        stream.send({ node: { id: 'limiter-1' } });
        return stream;
      };
      t.ok(await open({ cert, key }).next());
      t.match(ads.onlyLimiter(), { nodeId: 'limiter-1', identity: limiterUri(namespace) });
      t.match(await open().ended, { code: status.UNAVAILABLE });
      const { cert: serverCert, key: serverKey } = await client({ namespace, name: `${name}-server` });
      t.match(
        await open({ cert: serverCert, key: serverKey }).ended,
        { code: status.UNAVAILABLE },
        'it is for servers',
      );
    });

    await t.test('certificates are renewed before their end while servers run', async (t) => {
      let offsetMs = 0;
      const replica = startReplica(t, api, { nowMs: () => Date.now() + offsetMs });
      await replica.start({ signal });
      const before = replica.current().cert;
      const first = await client();
      offsetMs = leafValidMs - leafRenewMs + 1_000;
      // Every event of a Secret triggers a check.
      await kube.kubectl(['label', 'secret', `${name}-client`, '-n', namespace, 'seen=true']);
      await awaitUntil(async () => (await client()).cert !== first.cert, { what: 'a new certificate' });
      const renewed = await client();
      t.ok(
        Date.parse(new X509Certificate(renewed.cert).validTo) >
          Date.parse(new X509Certificate(first.cert).validTo),
      );
      t.equal(renewed.ca, first.ca);
      // A check in progress when the clock moved may have renewed only the client's certificate.
      await awaitUntil(() => String(replica.current().cert) !== String(before), {
        what: 'the new certificate of the server',
      });
    });

    await t.test('emptied Secret is filled again', async (t) => {
      const replica = startReplica(t, api);
      await replica.start({ signal });
      const patch = '{"data":null}';
      await kube.kubectl(['patch', 'secret', `${name}-client`, '-n', namespace, '--type=merge', '-p', patch]);
      await awaitUntil(async () => (await client()).key !== '', { what: 'the key' });
    });

    await t.test('Secret without permission is logged and does not affect other certificates', async (t) => {
      const elsewhere = { namespace: 'shop', name: 'limiter-client' };
      const replica = startReplica(t, api, { clientSecrets: [elsewhere, clientSecret] });
      await replica.start({ signal });
      t.ok(replica.current().cert);
      await awaitUntil(
        () => replica.lines.find((line) => line['@message'] === 'failed to renew certificates, retrying'),
        { what: 'the warning' },
      );
      t.match(
        replica.lines.find((line) => line['@message'] === 'failed to renew certificates, retrying')?.reason,
        /not allowed to .* secrets .*rbac\.yaml/,
      );
    });
  },
  { users: [{ name: server }] },
);
