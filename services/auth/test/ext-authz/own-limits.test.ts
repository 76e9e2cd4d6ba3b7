import { makeTextFolder } from '@tollgate/testkit/folders';
import { startRateLimitService } from '@tollgate/testkit/services';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { connectAuthz, summary } from '../helpers/authz-client.ts';

const routes = `
routes:
  - { path: /bucket, limit: [[plan, user_id]] }
  - { path: /shadow, limit: [[user_id]] }
`;

const rules = `
domain: ext_authz
descriptors:
  - key: plan
    descriptors:
      - key: user_id
        rate_limit: { unit: minute, requests_per_unit: 60, algorithm: token_bucket, burst: 30 }
  - key: user_id
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 60 }
`;

t.test('a limit of a user changes number and unit of the rule, and keeps the rest', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('routes.yaml', routes);
  folder.write('config/limits.yaml', rules);
  const limiter = await startRateLimitService({ RUNTIME_ROOT: folder.path, RUNTIME_WATCH_ROOT: 'false' });
  t.teardown(limiter.stop);
  const server = await startAuthServer(t, {
    EXT_AUTHZ_ROUTES_FILE: `${folder.path}/routes.yaml`,
    EXT_AUTHZ_RATE_LIMIT_ADDRESS: limiter.address,
    // Generous, because test machines are busy.
    EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '10s',
    EXT_AUTHZ_RATE_LIMIT_ON_FAILURE: 'deny',
  });
  const { accessToken, userId } = await signUp(server);
  await server.call('PUT', `/admin/users/${userId}`, {
    token: adminToken(),
    body: { app_metadata: { limit: { requests_per_unit: 2, unit: 'day' } } },
  });
  const client = connectAuthz(t, server.extAuthz.grpc);
  const headers = { authorization: `Bearer ${accessToken}` };
  const check = async (path: string) => summary(await client.check({ method: 'GET', path, headers }));

  t.match(await check('/bucket'), { code: 0 });
  const refused = await check('/bucket');
  t.match(refused, { httpStatus: 429 }, 'the burst of the rule is half of its limit, and so half of 2');
  const retryAfter = Number(refused.headers?.['retry-after']);
  t.ok(retryAfter > 40_000 && retryAfter <= 43_200, `2 a day refill one in half a day, not ${retryAfter} s`);
  for (let request = 0; request < 4; request += 1)
    t.match(await check('/shadow'), { code: 0 }, 'the rule is in shadow mode');
});
