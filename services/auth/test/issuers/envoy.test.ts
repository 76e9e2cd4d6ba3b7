import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { startRateLimitService } from '@tollgate/testkit/services';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { startAuthzEnvoy } from '../helpers/authz-envoy.ts';
import { startTokenIssuer } from '../helpers/token-issuer.ts';

const limits = `
domain: ext_authz
descriptors:
  - key: plan
    value: free
    descriptors: [{ key: user_id, rate_limit: { unit: year, requests_per_unit: 2 } }]
  - key: plan
    value: pro
    descriptors: [{ key: user_id, rate_limit: { unit: year, requests_per_unit: 4 } }]
  - key: department
    rate_limit: { unit: year, requests_per_unit: 3 }
`;

async function startLimiter(t: Test) {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  mkdirSync(join(folder.path, 'config'));
  writeFileSync(join(folder.path, 'config/limits.yaml'), limits);
  const limiter = await startRateLimitService({ RUNTIME_ROOT: folder.path, RUNTIME_WATCH_ROOT: 'false' });
  t.teardown(limiter.stop);
  return limiter;
}

/** An auth server with this routes file, behind Envoy, with limits. */
async function platform(t: Test, routes: string) {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const file = join(folder.path, 'routes.yaml');
  writeFileSync(file, routes);
  const server = await startAuthServer(t, {
    EXT_AUTHZ_ROUTES_FILE: file,
    EXT_AUTHZ_ISSUER_PRIVATE_HOSTS: '127.0.0.1',
    EXT_AUTHZ_RATE_LIMIT_ADDRESS: (await startLimiter(t)).address,
    // Generous, because test machines are busy.
    EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '10s',
    EXT_AUTHZ_RATE_LIMIT_ON_FAILURE: 'deny',
  });
  const envoy = await startAuthzEnvoy(t, { variant: 'grpc', port: server.extAuthz.grpc });
  const send = async (token: string, headers: Readonly<Record<string, string>> = {}) => {
    const response = await fetch(`${envoy.url}/cart`, {
      headers: { ...headers, authorization: `Bearer ${token}` },
    });
    const text = await response.text();
    return { status: response.status, text, seen: envoy.upstream.requests.at(-1)?.headers };
  };
  /** Statuses of that many requests. */
  const repeat = async (token: string, times: number) => {
    const statuses: number[] = [];
    while (statuses.length < times) statuses.push((await send(token)).status);
    return statuses;
  };
  return { server, send, repeat };
}

t.test('behind Envoy users of another issuer are callers, limited by their plan', async (t) => {
  const idp = await startTokenIssuer(t, { path: '/realms/shop' });
  const { server, send, repeat } = await platform(
    t,
    `
issuers:
  - name: keycloak
    issuer: ${idp.issuer}
    audiences: [orders]
    claims: { plan: plan, role: "realm_access.roles[0]", team: '["https://example.com/team"]' }
    kinds: { client: "azp ^= 'job-'" }
routes:
  - { path: /whoami, access: public, limit: [] }
limit: [[plan, user_id]]
`,
  );
  const spoofed = { 'x-auth-issuer': 'tollgate', x_auth_org_id: 'acme', 'X-Auth-User_Id': 'root' };
  const claims = { azp: 'web', scope: 'read write', realm_access: { roles: ['editor'] } };
  const { status, seen } = await send(await idp.sign(claims), spoofed);
  t.equal(status, 200);
  t.match(seen, {
    'x-auth-user-id': 'keycloak|ada',
    'x-auth-kind': 'user',
    'x-auth-client-id': 'web',
    'x-auth-scope': 'read%20write',
    'x-auth-role': 'editor',
    'x-auth-issuer': 'keycloak',
    'x-auth-plan': 'free',
    x_auth_org_id: undefined,
    'x-auth-user_id': undefined,
  });
  t.same(await repeat(await idp.sign(), 2), [200, 429], 'the free plan has 2 requests');
  t.same(await repeat(await idp.sign({ sub: 'bob', plan: 'pro' }), 5), [200, 200, 200, 200, 429]);

  const { accessToken, userId } = await signUp(server);
  t.match(await send(accessToken), {
    status: 200,
    seen: { 'x-auth-user-id': userId, 'x-auth-issuer': 'tollgate' },
  });
  const denied = await send(await idp.sign({ aud: 'billing' }));
  t.equal(denied.status, 401);
  t.match(JSON.parse(denied.text), { error_code: 'bad_jwt', msg: /aud is not an accepted audience/ });
  idp.become('down');
  const unknown = await send(await idp.sign({}, { kid: 'key-2' }));
  t.equal(unknown.status, 503);
  t.match(JSON.parse(unknown.text), { error_code: 'issuer_unavailable' });

  const { body } = await server.call('GET', '/admin/issuers', { token: adminToken() });
  t.match(body, {
    file: /routes\.yaml$/,
    issuers: [
      {
        ...{ name: 'keycloak', issuer: idp.issuer, audiences: ['orders'], prefix: 'name', kubernetes: false },
        claims: { plan: 'plan', role: 'realm_access.roles[0]', team: '["https://example.com/team"]' },
        kinds: { client: "azp ^= 'job-'" },
        keys: {
          ...{ current: false, loaded_at: String, failed_at: String, problem: /503/ },
          ...{ issuer: idp.issuer, usable: [{ kid: 'key-1', kty: 'RSA' }], ignored: [] },
        },
        tokens: { accepted: 3, rejected: 1, unavailable: 1 },
        last_used_at: String,
      },
    ],
  });
});

t.test('an attribute of the file is a header and a limit, and follows what is stored', async (t) => {
  const { server, send, repeat } = await platform(
    t,
    'claims: { department: app_metadata.department }\nlimit: [[department]]\n',
  );
  const { accessToken, userId } = await signUp(server);
  const setDepartment = (department: string | null) =>
    server.call('PUT', `/admin/users/${userId}`, {
      token: adminToken(),
      body: { app_metadata: { department } },
    });
  t.match(await send(accessToken, { 'x-auth-department': 'sales' }), {
    status: 200,
    seen: { 'x-auth-department': undefined },
  });
  await setDepartment('é');
  t.match(await send(accessToken), { status: 200, seen: { 'x-auth-department': '%C3%A9' } });
  t.same(await repeat(accessToken, 3), [200, 200, 429]);
  await setDepartment('sales');
  t.equal((await send(accessToken)).status, 200, 'another department has a limit of its own');
});
