import { openApiDocument } from '@tollgate/kit/open-api';
import packageJson from '../../package.json' with { type: 'json' };
import { operations } from './operations.ts';
import { schemas } from './schemas.ts';

const exampleManifest = `apiVersion: ratelimit.tollgate.dev/v1alpha1
kind: RateLimitConfig
metadata:
  namespace: shop
  name: web
spec:
  domain: web
  descriptors:
    - key: user
      rateLimit:
        unit: Minute
        requestsPerUnit: 20
`;

export function adminApiDocument(): object {
  return openApiDocument({
    title: 'Tollgate xDS admin API',
    version: packageJson.version,
    server: 'http://127.0.0.1:8090',
    tags: {
      Objects: 'Access policies and limits, with their versions and conditions.',
      Clients: 'Limiters and auth servers.',
      Server: 'The state of the server.',
    },
    operations,
    schemas,
    token:
      'The token of XDS_ADMIN_TOKEN, or an API key or access token of the auth server with the admin scope `policies:read`, or `settings:read` for the settings. Without both, clients on loopback need none.',
    failed: 'The server failed to answer. Try again later.',
    examples: {
      acknowledged: 2,
      address: '10.0.3.7:41988',
      command: 'touch /manifests/.allow-deletions',
      connected: 2,
      current: 2,
      domain: 'web',
      field: 'spec.descriptors[0].rateLimit.requestsPerUnit',
      after: 20,
      before: 10,
      generation: 3,
      identity: 'tollgate-limiter',
      inForce: 3,
      kind: 'RateLimitConfig',
      limits: 1,
      manifest: exampleManifest,
      manifests: exampleManifest,
      message: "1 limit for domain 'web'",
      name: 'web',
      namespace: 'shop',
      node: 'ratelimit-7d9f5b7c4-x2x9q',
      problem: null,
      reason: 'Accepted',
      refused: 0,
      refusing: 0,
      release: packageJson.version,
      replica: 'tollgate-xds-6c8d7f9b5-4k2lm',
      resource: 'web',
      source: 'web.yaml:9:20',
      total: 1,
      type: 'Accepted',
      version: '5f2c9a0d1e7b4836a1c0d2e4f6a8b0c2',
      wanted: '5f2c9a0d1e7b4836a1c0d2e4f6a8b0c2',
    },
  });
}
