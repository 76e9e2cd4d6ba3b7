// Machine clients at the gateway.

import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { startRateLimitService } from '@tollgate/testkit/services';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { startAuthzEnvoy } from '../helpers/authz-envoy.ts';
import { createProver } from '../helpers/dpop.ts';
import {
  authorizationServer,
  authorize,
  checkRequest,
  createApplication,
  createMachine,
  machineToken,
  oauthServer,
  redeem,
  requestToken,
  type ShownClient,
} from '../helpers/oauth-clients.ts';
import { assertPromptRevocation } from '../helpers/replica-delay.ts';

/** Cached states do not expire during the tests: changes take effect by notification only. */
const stale = { ...oauthServer, EXT_AUTHZ_MAX_STALENESS: '10m' };

type Change = (server: AuthServer, client: ShownClient) => Promise<unknown>;

function call(method: string, suffix = '', body?: object): Change {
  return (server, { client_id: id }) =>
    server.call(method, `/admin/oauth/clients/${id}${suffix}`, {
      token: adminToken(),
      ...(body !== undefined && { body }),
    });
}

/** GoTrue, or an operator, changes a row. */
function query(text: string): Change {
  return async ({ databaseUrl }, { client_id: id }) => {
    const sql = postgres(databaseUrl, { max: 1 });
    await sql.unsafe(text, [id]);
    await sql.end();
  };
}

/** Changes that end the tokens of a client, with the reason of the gateway. */
const endings: Readonly<Record<string, readonly [Change, RegExp]>> = {
  deleted: [call('DELETE'), /oauth_client_not_found/],
  disabled: [call('PUT', '', { disabled: true }), /the client is disabled/],
  'given another secret': [call('POST', '/regenerate_secret'), /the client has other credentials now/],
  'without the grant': [
    call('PUT', '', { grant_types: ['refresh_token'] }),
    /may no longer get tokens for itself/,
  ],
  'deleted by GoTrue': [
    query('update auth.oauth_clients set deleted_at = now() where id = $1'),
    /oauth_client_not_found/,
  ],
  'given another secret by GoTrue': [
    query(`update auth.oauth_clients set client_secret_hash = repeat('x', 43) where id = $1`),
    /the client has other credentials now/,
  ],
  'removed from the database': [
    query('delete from auth.oauth_clients where id = $1'),
    /oauth_client_not_found/,
  ],
};

for (const [name, [change, reason]] of Object.entries(endings))
  t.test(`tokens of a client that is ${name} end on all replicas, and only they`, async (t) => {
    const [one, other] = await startReplicas(t);
    const [client, bystander] = [await createMachine(one), await createMachine(one)];
    const [token, another] = [await machineToken(one, client), await machineToken(one, bystander)];
    for (const server of [one, other]) {
      t.equal((await checkRequest(server, token)).status, 200);
      t.equal((await checkRequest(server, another)).status, 200);
    }
    await change(one, client);
    const changedMs = performance.now();
    for (const server of [one, other]) {
      await awaitUntil(async () => (await checkRequest(server, token)).status === 401, {
        what: 'the token to be refused',
      });
      t.match((await checkRequest(server, token)).text, reason);
      t.equal((await checkRequest(server, another)).status, 200);
    }
    t.comment(`refused by both replicas after ${(performance.now() - changedMs).toFixed(1)} ms`);
  });

t.test('a new secret gives tokens that are accepted, also within the same second', async (t) => {
  const [one, other] = await startReplicas(t);
  const client = await createMachine(one);
  const before = await machineToken(one, client);
  const { body } = await one.call('POST', `/admin/oauth/clients/${client.client_id}/regenerate_secret`, {
    token: adminToken(),
  });
  const after = await machineToken(other, { ...client, client_secret: String(body.client_secret) });
  for (const server of [one, other]) {
    t.equal((await checkRequest(server, after)).status, 200);
    t.equal((await checkRequest(server, before)).status, 401);
  }
});

t.test('changes of plan, role and scopes apply to tokens that were issued before', async (t) => {
  const [one, other] = await startReplicas(t);
  const client = await createMachine(one, { plan: 'free', role: 'reader', scopes: ['a', 'b'] });
  const token = await machineToken(one, client);
  const named = async (server: AuthServer) => {
    const { headers } = await checkRequest(server, token);
    return ['plan', 'role', 'scope'].map((name) => headers.get(`x-auth-${name}`)).join();
  };
  t.equal(await named(other), 'free,reader,a%20b');
  await call('PUT', '', { plan: 'pro', role: '', scopes: ['b', 'c'] })(one, client);
  await awaitUntil(async () => (await named(other)) === 'pro,,b', { what: 'the new plan' });
  t.equal(await named(one), 'pro,,b');
});

t.test('a client of an organization has its plan and limit, and ends with it', async (t) => {
  const own = { ORGANIZATIONS_ENABLED: 'true' };
  const [one, other] = await startReplicas(t, own);
  const organization = await one.call('POST', '/admin/organizations', {
    token: adminToken(),
    body: { name: 'Acme', plan: 'gold', limit: { requests_per_unit: 3, unit: 'day' } },
  });
  const id = String(organization.body.id);
  const client = await createMachine(one, { org_id: id });
  const token = await machineToken(one, client);
  const named = async () => {
    const { headers } = await checkRequest(other, token);
    return [headers.get('x-auth-org-id'), headers.get('x-auth-plan')];
  };
  t.same(await named(), [id, 'gold']);
  await one.call('PUT', `/admin/organizations/${id}`, { token: adminToken(), body: { plan: 'silver' } });
  await awaitUntil(async () => (await named())[1] === 'silver', { what: 'the new plan' });
  await call('PUT', '', { plan: 'pro' })(one, client);
  await awaitUntil(async () => (await named())[1] === 'pro', { what: 'the plan of the client' });
  await one.call('DELETE', `/admin/organizations/${id}`, { token: adminToken() });
  for (const server of [one, other])
    await awaitUntil(async () => (await checkRequest(server, token)).status === 401, { what: 'the end' });
  t.match((await checkRequest(other, token)).text, /the organization of the client does not exist/);
  await t.rejects(createMachine(one, { org_id: id }), { message: /org_id is not the id of an organization/ });
});

t.test('without the session check a token is valid until it expires', async (t) => {
  const server = await startAuthServer(t, { ...stale, EXT_AUTHZ_SESSION_CHECK: 'false' });
  const client = await createMachine(server, { plan: 'pro', scopes: ['a'] });
  const token = await machineToken(server, client);
  await call('DELETE')(server, client);
  const { status, headers } = await checkRequest(server, token);
  t.equal(status, 200);
  t.match([headers.get('x-auth-client-id'), headers.get('x-auth-plan')], [client.client_id, 'free']);
  server.clock.advance(15 * 60_000);
  t.equal((await checkRequest(server, token)).status, 401);
});

t.test('while the database is unavailable, clients that are not cached are refused', async (t) => {
  const server = await startAuthServer(t, stale);
  await awaitListener(server);
  const unknown = await machineToken(server, await createMachine(server));
  const client = await createMachine(server);
  const [known, last] = [await machineToken(server, client), await createMachine(server)];
  // The creation of a client is a change, which evicts it. Notifications arrive in order: one of
  // the last client means that those of the others have arrived.
  const lastToken = await machineToken(server, last);
  const plan = async () => (await checkRequest(server, lastToken)).headers.get('x-auth-plan');
  t.equal(await plan(), 'free');
  await query(`update auth.oauth_client_settings set plan = 'pro' where client_id = $1`)(server, last);
  await awaitUntil(async () => (await plan()) === 'pro', { what: 'the notification' });

  t.equal((await checkRequest(server, known)).status, 200);
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  await sql`alter table auth.oauth_clients rename to elsewhere`;
  // Over HTTP, 403 with the code.
  t.match(await checkRequest(server, unknown), { status: 403, text: /authorization_unavailable/ });
  t.equal((await checkRequest(server, known)).status, 200);
  await sql`update auth.oauth_client_settings set disabled = true where client_id = ${client.client_id}`;
  await awaitUntil(async () => (await checkRequest(server, known)).status === 403, {
    what: 'a client that has changed to be refused',
  });
  await sql`alter table auth.elsewhere rename to oauth_clients`;
  t.equal((await checkRequest(server, unknown)).status, 200);
});

t.test('a route that names audiences refuses tokens for another resource', async (t) => {
  const folder = makeTextFolder(t);
  const [orders, stock] = ['https://orders.example', 'https://stock.example'];
  folder.write(
    'routes.yaml',
    `
routes:
  - { path: /orders/**, audiences: ["${orders}"] }
  - { path: /both, audiences: ["${orders}", "${stock}"] }
`,
  );
  const server = await startAuthServer(t, {
    ...oauthServer,
    EXT_AUTHZ_ROUTES_FILE: `${folder.path}/routes.yaml`,
  });
  const client = await createMachine(server, { audiences: [orders, stock] });
  const statuses = async (token: string) => {
    const paths = ['/orders/1', '/both', '/other'];
    return (await Promise.all(paths.map((path) => checkRequest(server, token, path)))).map(
      ({ status }) => status,
    );
  };
  const forStock = await machineToken(server, client, { resource: stock });
  t.same(await statuses(forStock), [401, 200, 200]);
  const refused = await checkRequest(server, forStock, '/orders/1');
  t.match(refused.text, /aud is not an audience of this route/);
  t.match(refused.headers.get('www-authenticate'), /error="invalid_token"/);
  t.same(await statuses(await machineToken(server, client, { resource: orders })), [200, 200, 200]);
  t.same(await statuses(await machineToken(server, client)), [200, 200, 200]);
  t.same(await statuses(await machineToken(server, await createMachine(server))), [401, 401, 200]);
  t.same(await statuses((await signUp(server)).accessToken), [401, 401, 200]);
});

const limits = `
domain: ext_authz
descriptors:
  - key: plan
    value: free
    descriptors: [{ key: client_id, rate_limit: { unit: year, requests_per_unit: 2 } }]
  - key: plan
    value: pro
    descriptors: [{ key: client_id, rate_limit: { unit: year, requests_per_unit: 4 } }]
`;

t.test('behind Envoy a client gets 429 by its id and plan, or its own limit', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('routes.yaml', 'limit: [[plan, client_id]]\n');
  folder.write('config/limits.yaml', limits);
  const limiter = await startRateLimitService({ RUNTIME_ROOT: folder.path, RUNTIME_WATCH_ROOT: 'false' });
  t.teardown(limiter.stop);
  const server = await startAuthServer(t, {
    ...oauthServer,
    EXT_AUTHZ_ROUTES_FILE: `${folder.path}/routes.yaml`,
    EXT_AUTHZ_RATE_LIMIT_ADDRESS: limiter.address,
    // Generous, because test machines are busy.
    EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '10s',
    EXT_AUTHZ_RATE_LIMIT_ON_FAILURE: 'deny',
  });
  const envoy = await startAuthzEnvoy(t, { variant: 'grpc', port: server.extAuthz.grpc });
  const repeat = async (client: ShownClient, times: number) => {
    const authorization = `Bearer ${await machineToken(server, client)}`;
    const statuses: number[] = [];
    while (statuses.length < times)
      statuses.push(
        (await fetch(envoy.url, { headers: { authorization, 'x-auth-client-id': 'me' } })).status,
      );
    return statuses;
  };
  const free = await createMachine(server);
  t.same(await repeat(free, 3), [200, 200, 429]);
  t.match(envoy.upstream.requests.at(-1)?.headers, {
    'x-auth-client-id': free.client_id,
    'x-auth-kind': 'client',
    'x-auth-plan': 'free',
  });
  t.same(await repeat(free, 1), [429], 'another token of the client');
  t.same(await repeat(await createMachine(server), 1), [200], 'another client');
  t.same(await repeat(await createMachine(server, { plan: 'pro' }), 5), [200, 200, 200, 200, 429]);
  const own = { limit: { requests_per_unit: 1, unit: 'year' } };
  t.same(await repeat(await createMachine(server, { plan: 'pro', ...own }), 2), [200, 429]);

  const bound = await bindToken(server, await createMachine(server, { plan: 'gold' }));
  const url = `${envoy.url}/orders/a%20b`;
  const call = async (proof: string, headers: readonly [string, string][] = []) =>
    fetch(`${url}?page=1`, {
      headers: [['authorization', `DPoP ${bound.token}`], ['dpop', proof], ...headers],
    });
  const proof = await bound.prove(url);
  t.equal((await call(proof)).status, 200);
  t.match(envoy.upstream.requests.at(-1)?.headers, { 'x-auth-plan': 'gold' });
  const replayed = await call(proof);
  t.match(replayed.headers.get('www-authenticate'), /^DPoP realm="tollgate", error="invalid_dpop_proof"/);
  t.match(await replayed.json(), { error_code: 'invalid_dpop_proof', msg: /jti was used before/ });
  t.equal((await call(await bound.prove(`${envoy.url}/orders/a`))).status, 401, 'another path');
  t.equal((await call(await bound.prove(url.replace('http:', 'https:')))).status, 401, 'another scheme');
  const twice: [string, string] = ['dpop', await bound.prove(url)];
  t.equal((await call(await bound.prove(url), [twice])).status, 401, 'two proofs');
});

/** A token of a client that is bound to a key, and proofs for requests with it. */
async function bindToken(server: AuthServer, { client_id, client_secret }: ShownClient) {
  const { prove } = await createProver(server.clock.nowMs);
  const form = { grant_type: 'client_credentials', client_id, client_secret };
  const dpop = await prove('http://localhost:9999/oauth/token');
  const token = String((await requestToken(server, form, { dpop })).body.access_token);
  return { token, prove: (url: string) => prove(url, { method: 'GET', token }) };
}

t.test('a bound token needs a new proof for each request, on all replicas', async (t) => {
  const [one, other] = await startReplicas(t);
  const client = await createMachine(one);
  const { token, prove } = await bindToken(one, client);
  const thief = await bindToken(one, client);
  const check = async (
    server: AuthServer,
    { scheme = 'DPoP', proof }: { scheme?: string; proof?: string },
  ) => {
    const headers = { authorization: `${scheme} ${token}`, ...(proof !== undefined && { dpop: proof }) };
    const response = await fetch(urlOf(server), { headers });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const urlOf = ({ extAuthz }: AuthServer) => `http://127.0.0.1:${extAuthz.http}/orders`;
  for (const server of [one, other])
    for (let count = 0; count < 2; count += 1)
      t.equal((await check(server, { proof: await prove(urlOf(server)) })).status, 200, 'also if cached');
  const proof = await prove(urlOf(one));
  const answers = await Promise.all(Array.from({ length: 5 }, () => check(one, { proof })));
  t.same(answers.map(({ status }) => status).toSorted(), [200, 401, 401, 401, 401]);
  const refused = {
    'without proof': {},
    'as Bearer': { scheme: 'Bearer' },
    'as Bearer with a proof': { scheme: 'Bearer', proof: await prove(urlOf(one)) },
    'by another key': { proof: await thief.prove(urlOf(one)) },
    'for another token': { proof: await (await bindToken(one, client)).prove(urlOf(one)) },
    'for another replica': { proof: await prove(urlOf(other)) },
  };
  for (const [name, given] of Object.entries(refused)) {
    const { status, headers, text } = await check(one, given);
    t.equal(status, 401, name);
    t.match(text, /invalid_dpop_proof/, name);
    t.match(headers.get('www-authenticate'), /^DPoP .*error="invalid_(?:token|dpop_proof)".*algs="/, name);
  }
  const bearer = await machineToken(one, client);
  const unbound = await fetch(urlOf(one), { headers: { authorization: `DPoP ${bearer}`, dpop: proof } });
  t.equal(unbound.status, 401, 'a bearer token with the scheme DPoP');
  const invalid = await fetch(urlOf(one), { headers: { authorization: 'DPoP x.y.z', dpop: proof } });
  t.match(invalid.headers.get('www-authenticate'), /^DPoP .*error="invalid_token".*algs="/);

  const sql = postgres(one.databaseUrl, { max: 1 });
  await sql`alter table auth.dpop_proofs rename to elsewhere`;
  const late = await check(one, { proof: await prove(urlOf(one)) });
  t.match(late, { status: 403, text: /authorization_unavailable/ }, 'a proof that may be a replay');
  t.equal((await checkRequest(one, bearer)).status, 200, 'bearer tokens do not need the table');
  await sql`alter table auth.elsewhere rename to dpop_proofs`;
  await sql.end();
});

/** Two servers over one database, both of which listen. */
async function startReplicas(
  test: Test,
  own: Readonly<Record<string, string>> = {},
): Promise<[AuthServer, AuthServer]> {
  const one = await startAuthServer(test, { ...stale, ...own });
  const other = await startAuthServer(test, { ...stale, ...own, DB_DATABASE_URL: one.databaseUrl });
  for (const server of [one, other]) await awaitListener(server);
  return [one, other];
}

async function awaitListener(server: AuthServer): Promise<void> {
  await awaitUntil(() => server.logs().includes('"opened LISTEN connection"'), { what: 'the listener' });
}

t.test('a session of a client has its id and scopes at the gateway, and ends with the consent', async (t) => {
  const server = await startAuthServer(t, { ...stale, ...authorizationServer });
  const user = await signUp(server);
  const client = await createApplication(server, { scopes: ['orders:read'] });
  const request = { client_id: client.client_id, scope: 'email orders:read' };
  const { body } = await redeem(server, client, await authorize(server, user.accessToken, request));
  const token = String(body.access_token);
  const { status, headers } = await checkRequest(server, token);
  t.equal(status, 200);
  t.equal(headers.get('x-auth-kind'), 'user');
  t.equal(headers.get('x-auth-user-id'), user.userId);
  t.equal(headers.get('x-auth-client-id'), client.client_id);
  t.equal(headers.get('x-auth-scope'), 'email%20orders:read');
  const own = await checkRequest(server, user.accessToken);
  t.equal(own.headers.get('x-auth-client-id'), null);

  const path = `/user/oauth/grants?client_id=${client.client_id}`;
  t.equal((await server.call('DELETE', path, { token: user.accessToken })).status, 204);
  t.equal((await checkRequest(server, token)).status, 401);
  t.equal((await checkRequest(server, user.accessToken)).status, 200);
});

t.test('revoked consents and deleted clients are refused on another replica within 50 ms', async (t) => {
  const [one, other] = await startReplicas(t, authorizationServer);
  const user = await signUp(one);
  const application = await createApplication(one);
  const { client_id } = application;
  const isRevoked = (token: string) => async () => (await checkRequest(other, token)).status === 401;
  await t.test('a consent', (t) =>
    assertPromptRevocation(t, one.databaseUrl, async () => {
      const { body } = await redeem(one, application, await authorize(one, user.accessToken, { client_id }));
      const path = `/user/oauth/grants?client_id=${client_id}`;
      return {
        id: user.userId,
        revoke: () => one.call('DELETE', path, { token: user.accessToken }),
        isRevoked: isRevoked(String(body.access_token)),
      };
    }),
  );
  await t.test('a machine client', (t) =>
    assertPromptRevocation(t, one.databaseUrl, async () => {
      const client = await createMachine(one);
      const token = await machineToken(one, client);
      return {
        id: client.client_id,
        revoke: () => call('DELETE')(one, client),
        isRevoked: isRevoked(token),
      };
    }),
  );
});
