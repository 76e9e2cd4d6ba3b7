import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import { startXdsServer } from '@tollgate/testkit/services';
import t from 'tap';
import { manifest } from './support/limits.ts';
import { startLimiter } from './support/processes.ts';

t.test('limiter and xDS server know each other by certificate and token', async (t) => {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const folder = makeTextFolder(t);
  folder.write('manifests/shop.yaml', manifest({ name: 'shop', domain: 'shop', limits: { user: 3 } }));
  folder.write('tokens', 'old-token\nnew-token\n');
  const xds = await startXdsServer({
    XDS_FOLDER: `${folder.path}/manifests`,
    XDS_GRPC_TLS_CERT: certificates.server.certFile,
    XDS_GRPC_TLS_KEY: certificates.server.keyFile,
    XDS_GRPC_CLIENT_CACERT: certificates.ca.certFile,
    XDS_GRPC_CLIENT_SAN: 'client.test',
    XDS_GRPC_TOKEN_FILE: `${folder.path}/tokens`,
  });
  t.teardown(() => xds.stop());
  const tls = {
    CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
    CONFIG_GRPC_XDS_SERVER_TLS_CACERT: certificates.ca.certFile,
    CONFIG_GRPC_XDS_SERVER_TLS_SAN: 'localhost',
    CONFIG_GRPC_XDS_CLIENT_TLS_CERT: certificates.client.certFile,
    CONFIG_GRPC_XDS_CLIENT_TLS_KEY: certificates.client.keyFile,
  };

  await t.test('with certificate and token, limits and edits arrive', async (t) => {
    const limiter = await startLimiter(xds.address, {
      ...tls,
      CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: 'authorization:Bearer new-token',
    });
    t.teardown(limiter.stop);
    t.equal((await limiter.decide('shop', { user: 'a' })).requestsPerUnit, 3);
    folder.write('manifests/shop.yaml', manifest({ name: 'shop', domain: 'shop', limits: { user: 4 } }));
    await awaitUntil(async () => (await limiter.decide('shop', { user: 'a' })).requestsPerUnit === 4, {
      what: 'the edited limit',
    });
  });

  const refusals = [
    { what: 'without a token', env: tls, says: /authorization: Bearer <token>/ },
    {
      what: 'with a wrong token',
      env: { ...tls, CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: 'authorization:Bearer guess' },
      says: /bearer token is not accepted/,
    },
    {
      what: 'with the certificate of another name',
      env: {
        ...tls,
        CONFIG_GRPC_XDS_CLIENT_TLS_CERT: certificates.server.certFile,
        CONFIG_GRPC_XDS_CLIENT_TLS_KEY: certificates.server.keyFile,
      },
      says: /does not have the DNS name client\.test/,
    },
    {
      what: 'to a server of another name',
      env: { ...tls, CONFIG_GRPC_XDS_SERVER_TLS_SAN: 'other.test' },
      says: /other\.test/,
    },
  ];
  for (const { what, env, says } of refusals) {
    await t.test(`${what}, no limits arrive, and the limiter logs the reason`, async (t) => {
      const limiter = await startLimiter(xds.address, { ...env, FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' });
      t.teardown(limiter.stop);
      await awaitUntil(() => says.test(limiter.logs()), { what: `${says} in: ${limiter.logs()}` });
      t.strictSame(await limiter.rules(), []);
      t.notMatch(limiter.logs() + xds.logs(), /guess|new-token/, 'no token in a log');
    });
  }
});

kubeSuite(t, 'limiters use the certificates that the xDS server keeps in Secrets', async (t, kube) => {
  await kube.apply(await readFile(resolve(import.meta.dirname, '../../crds/ratelimitconfigs.yaml'), 'utf8'));
  await kube.apply(manifest({ name: 'shop', domain: 'shop', limits: { user: 3 } }));
  const xds = await startXdsServer({
    XDS_SOURCE: 'kubernetes',
    KUBECONFIG: kube.kubeconfigFile,
    POD_NAMESPACE: 'default',
    XDS_ANY_DOMAIN_NAMESPACES: 'default',
    XDS_GRPC_OWN_CA: 'true',
    XDS_GRPC_SERVER_NAMES: 'xds.test',
    XDS_LEASE_DURATION: '3s',
    XDS_LEASE_RENEW_DEADLINE: '2s',
    XDS_LEASE_RETRY_PERIOD: '500ms',
  });
  t.teardown(() => xds.stop());
  const folder = makeTextFolder(t);
  /** Does what a kubelet does with a mounted Secret: new files behind one link. */
  const mount = async (version: string): Promise<string> => {
    const { stdout } = await kube.kubectl(['get', 'secret', 'tollgate-xds-client', '-o', 'json']);
    // Parsed boundary: a Secret.
    const { data = {} } = JSON.parse(stdout) as { data?: Record<string, string> };
    if (!data['tls.key']) throw new Error('the Secret is not filled yet');
    for (const [name, text] of Object.entries(data))
      folder.write(`${version}/${name}`, Buffer.from(text, 'base64').toString());
    folder.swapLink('mounted', version);
    return data['ca.crt'] ?? '';
  };
  const firstAuthority = await awaitUntil(() => mount('first'), { what: 'the Secret of limiters' });
  const limiter = await startLimiter(xds.address, {
    CONFIG_GRPC_XDS_NODE_ID: 'limiter-1',
    CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
    CONFIG_GRPC_XDS_SERVER_TLS_SAN: 'xds.test',
    CONFIG_GRPC_XDS_SERVER_TLS_CACERT: `${folder.path}/mounted/ca.crt`,
    CONFIG_GRPC_XDS_CLIENT_TLS_CERT: `${folder.path}/mounted/tls.crt`,
    CONFIG_GRPC_XDS_CLIENT_TLS_KEY: `${folder.path}/mounted/tls.key`,
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '100ms',
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
    XDS_CLIENT_BACKOFF_MAX_INTERVAL: '500ms',
  });
  t.teardown(limiter.stop);
  const enforced = (requestsPerUnit: number) =>
    awaitUntil(
      async () => (await limiter.decide('shop', { user: 'a' })).requestsPerUnit === requestsPerUnit,
      {
        what: `a limit of ${requestsPerUnit}`,
      },
    );

  await t.test('limits arrive, and the page names the limiter by its certificate', async (t) => {
    await enforced(3);
    const page = await (await fetch(xds.adminUrl)).text();
    t.match(page, /limiter-1.*spiffe:\/\/tollgate\/ns\/default\/limiter/);
    t.match(await (await fetch(`${xds.adminUrl}/metrics`)).text(), /certificate="ads_server"} \d{10}/);
  });

  await t.test('a limiter without TLS gets nothing', async (t) => {
    const plaintext = await startLimiter(xds.address, { FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' });
    t.teardown(plaintext.stop);
    const metrics = async () => (await fetch(`${xds.adminUrl}/metrics`)).text();
    const refused = /^tollgate_tls_handshake_failures_total{listener="ads"} [1-9]/m;
    await awaitUntil(async () => refused.test(await metrics()), { what: 'a refused handshake' });
    t.strictSame(await plaintext.rules(), []);
  });

  await t.test('limiters reconnect with a new authority after the old one is deleted', async (t) => {
    await kube.kubectl(['patch', 'secret', 'tollgate-xds-ca', '--type=merge', '-p', '{"data":null}']);
    await awaitUntil(async () => (await mount('second')) !== firstAuthority, { what: 'a new authority' });
    await xds.stop();
    await xds.restart();
    await kube.apply(manifest({ name: 'shop', domain: 'shop', limits: { user: 4 } }));
    await t.resolves(enforced(4));
  });
});
