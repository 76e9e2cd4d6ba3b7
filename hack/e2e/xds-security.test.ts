import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { makeTextFolder } from '@tollgate/testkit/text-folder';
import t from 'tap';
import { startLimiter } from './support/limiter-process.ts';
import { manifest } from './support/manifest.ts';
import { startXds } from './support/xds-process.ts';

t.test('limiter and management server know each other by certificate and token', async (t) => {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const folder = makeTextFolder(t);
  folder.write('manifests/shop.yaml', manifest({ name: 'shop', domain: 'shop', limits: { user: 3 } }));
  folder.write('tokens', 'old-token\nnew-token\n');
  const xds = await startXds({
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

  await t.test('with both, limits and their edits arrive', async (t) => {
    const limiter = await startLimiter(xds.address, {
      ...tls,
      CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: 'authorization:Bearer new-token',
    });
    t.teardown(limiter.stop);
    t.equal((await limiter.ask('shop', { user: 'a' })).requestsPerUnit, 3);
    folder.write('manifests/shop.yaml', manifest({ name: 'shop', domain: 'shop', limits: { user: 4 } }));
    await awaitUntil(async () => (await limiter.ask('shop', { user: 'a' })).requestsPerUnit === 4, {
      what: 'the edited limit',
    });
  });

  const refusals = [
    { what: 'without a token', env: tls, says: /authorization: Bearer <token>/ },
    {
      what: 'with a wrong token',
      env: { ...tls, CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: 'authorization:Bearer guess' },
      says: /not one of those accepted/,
    },
    {
      what: 'with the certificate of somebody else',
      env: {
        ...tls,
        CONFIG_GRPC_XDS_CLIENT_TLS_CERT: certificates.server.certFile,
        CONFIG_GRPC_XDS_CLIENT_TLS_KEY: certificates.server.keyFile,
      },
      says: /does not carry the DNS name client\.test/,
    },
    {
      what: 'to a server of another name',
      env: { ...tls, CONFIG_GRPC_XDS_SERVER_TLS_SAN: 'other.test' },
      says: /other\.test/,
    },
  ];
  for (const { what, env, says } of refusals) {
    await t.test(`${what}, nothing arrives, and the limiter's log says why`, async (t) => {
      const limiter = await startLimiter(xds.address, { ...env, FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' });
      t.teardown(limiter.stop);
      await awaitUntil(() => says.test(limiter.logs()), { what: `${says} in: ${limiter.logs()}` });
      t.strictSame(await limiter.rules(), []);
      t.notMatch(limiter.logs() + xds.logs(), /guess|new-token/, 'no token in a log');
    });
  }
});
