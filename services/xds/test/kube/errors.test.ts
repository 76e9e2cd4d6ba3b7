import { once } from 'node:events';
import { createServer } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node';
import { makeCertificates } from '@tollgate/testkit/certificates';
import t from 'tap';
import { ApiClient } from '../../src/kube/client.ts';
import { ApiError, type Attempt, explainApiError } from '../../src/kube/errors.ts';
import {
  accessPolicies,
  configMaps,
  gatewayClasses,
  httpRoutes,
  leases,
  rateLimitConfigs,
  securityPolicies,
} from '../../src/kube/resources.ts';

const refused = (attempt: Attempt): string | undefined => explainApiError(new ApiError(403), attempt);

t.test('missing permission to list all namespaces: grant it or set XDS_NAMESPACES', async (t) => {
  t.equal(
    refused({ verb: 'list', resource: rateLimitConfigs, namespace: '' }),
    'not allowed to list ratelimitconfigs.ratelimit.tollgate.dev in all namespaces: grant it, see ' +
      'services/xds/deploy/rbac.yaml, or set XDS_NAMESPACES to the namespaces where it is granted',
  );
});

t.test('missing permission to list a namespace: use the namespaced manifest', async (t) => {
  t.equal(
    refused({ verb: 'list', resource: rateLimitConfigs, namespace: 'shop' }),
    'not allowed to list ratelimitconfigs.ratelimit.tollgate.dev in namespace shop: grant it, see ' +
      'services/xds/deploy/rbac-namespaced.yaml',
  );
});

t.test('missing permission to write a status: both manifests are named', async (t) => {
  const attempt = { verb: 'patch', resource: rateLimitConfigs, subresource: 'status', namespace: 'shop' };
  t.match(refused(attempt), 'ratelimitconfigs/status.ratelimit.tollgate.dev in namespace shop');
  t.match(refused(attempt), 'rbac.yaml, or services/xds/deploy/rbac-namespaced.yaml when XDS_NAMESPACES is');
});

t.test('permission for objects of the replicas can be in another namespace', async (t) => {
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

t.test('missing permission for objects of policies: grant it or serve no policies', async (t) => {
  const withoutPolicies = ', or set XDS_ACCESS_POLICIES=false to serve no access policies';
  for (const resource of [accessPolicies, httpRoutes]) {
    const { plural, group } = resource;
    t.equal(
      refused({ verb: 'list', resource, namespace: '' }),
      `not allowed to list ${plural}.${group} in all namespaces: grant it, see services/xds/deploy/rbac.yaml${withoutPolicies}`,
    );
    t.match(
      refused({ verb: 'list', resource, namespace: 'shop' }),
      `in namespace shop: grant it, see services/xds/deploy/rbac-namespaced.yaml${withoutPolicies}`,
    );
  }
});

t.test('missing permission for what only a status says: what is missing without it', async (t) => {
  for (const resource of [gatewayClasses, securityPolicies])
    t.equal(
      refused({ verb: 'list', resource, namespace: '' }),
      `not allowed to list ${resource.plural}.${resource.group} in all namespaces: grant it, see services/xds/deploy/rbac.yaml; ` +
        'without it, nothing says whether Envoy Gateway enforces access policies, which are served nevertheless',
    );
});

t.test('untrusted certificate of the API server: set its authority in the kubeconfig', async (t) => {
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

t.test('temporary outage is not explained', async (t) => {
  const attempt = { verb: 'list', resource: rateLimitConfigs, namespace: '' };
  t.equal(explainApiError(new ApiError(503), attempt), undefined);
  t.equal(explainApiError(new Error('ECONNREFUSED'), attempt), undefined);
});
