import { once } from 'node:events';
import { createServer } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node';
import { makeCertificates } from '@tollgate/testkit/certificates';
import t from 'tap';
import { ApiClient } from '../../src/kube/client.ts';
import { ApiError, type Attempt, explainApiError } from '../../src/kube/errors.ts';
import { configMaps, leases, rateLimitConfigs } from '../../src/kube/objects.ts';

const refused = (attempt: Attempt): string | undefined => explainApiError(new ApiError(403), attempt);

t.test('who may not list all namespaces can grant it, or name those that may be listed', async (t) => {
  t.equal(
    refused({ verb: 'list', resource: rateLimitConfigs, namespace: '' }),
    'not allowed to list ratelimitconfigs.ratelimit.tollgate.dev in all namespaces: grant it, see ' +
      'services/xds/deploy/rbac.yaml, or set XDS_NAMESPACES to the namespaces where it is granted',
  );
});

t.test('who may not list a namespace that was named is told of the manifest for that', async (t) => {
  t.equal(
    refused({ verb: 'list', resource: rateLimitConfigs, namespace: 'shop' }),
    'not allowed to list ratelimitconfigs.ratelimit.tollgate.dev in namespace shop: grant it, see ' +
      'services/xds/deploy/rbac-namespaced.yaml',
  );
});

t.test('who may not write a status is told of both manifests', async (t) => {
  const attempt = { verb: 'patch', resource: rateLimitConfigs, subresource: 'status', namespace: 'shop' };
  t.match(refused(attempt), 'ratelimitconfigs/status.ratelimit.tollgate.dev in namespace shop');
  t.match(refused(attempt), 'rbac.yaml, or services/xds/deploy/rbac-namespaced.yaml when XDS_NAMESPACES is');
});

t.test('what replicas share can be in another namespace', async (t) => {
  for (const resource of [leases, configMaps])
    t.match(
      refused({ verb: 'create', resource, namespace: 'kube-system' }),
      `not allowed to create ${resource.plural}`,
    );
  t.match(
    refused({ verb: 'create', resource: configMaps, namespace: 'kube-system' }),
    'in namespace kube-system: grant it, see services/xds/deploy/rbac.yaml, or set XDS_LEASE_NAMESPACE to',
  );
});

t.test('who has no authority for the certificate of the API server is told where it belongs', async (t) => {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const { cert, key } = certificates.server;
  const server = createServer({ cert, key });
  server.listen(0, 'localhost');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: 'test', server: `https://localhost:${port}`, skipTLSVerify: false },
    { name: 'test' },
  );
  const api = new ApiClient(config);
  t.teardown(() => api.close());
  const error = await api.send({ method: 'GET', path: '/' }).catch((reason: unknown) => reason);
  t.match(
    explainApiError(error, { verb: 'list', resource: rateLimitConfigs, namespace: '' }),
    /^the certificate of the API server is not trusted.*certificate-authority/,
  );
});

t.test('an outage, which passes, is not explained', async (t) => {
  const attempt = { verb: 'list', resource: rateLimitConfigs, namespace: '' };
  t.equal(explainApiError(new ApiError(503), attempt), undefined);
  t.equal(explainApiError(new Error('ECONNREFUSED'), attempt), undefined);
});
