// Workloads get tokens of a client with the assertion of a trusted issuer (RFC 7523 §2.1).
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { startAuthServer } from '../helpers/auth-server.ts';
import { createProver } from '../helpers/dpop.ts';
import { checkRequest, createMachine, oauthServer, requestToken } from '../helpers/oauth-clients.ts';
import { startTokenIssuer } from '../helpers/token-issuer.ts';

const grant = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const issuerUrl = 'http://localhost:9999';
const tokenEndpoint = `${issuerUrl}/oauth/token`;
const subject = 'repo:acme/shop:ref:refs/heads/main';

const [ci, other, unknown] = [
  await startTokenIssuer(t),
  await startTokenIssuer(t),
  await startTokenIssuer(t),
];
const folder = makeTextFolder(t);
folder.write(
  'routes.yaml',
  `issuers:
  - { name: ci, issuer: "${ci.issuer}", audiences: [orders] }
  - { name: other, issuer: "${other.issuer}", audiences: [orders] }
`,
);
const server = await startAuthServer(t, {
  ...oauthServer,
  EXT_AUTHZ_ROUTES_FILE: `${folder.path}/routes.yaml`,
  EXT_AUTHZ_ISSUER_PRIVATE_HOSTS: '127.0.0.1',
});
const workload = {
  ...{ grant_types: [grant], token_endpoint_auth_method: 'none', scopes: ['orders:read'], plan: 'pro' },
  workload_identities: [{ issuer: 'ci', subject }],
};
const { client_id: clientId } = await createMachine(server, workload);
const sign = (claims: Readonly<Record<string, unknown>> = {}, by = ci, header = {}) =>
  by.sign({ aud: issuerUrl, sub: subject, ...claims }, header);
const exchange = async (
  assertion: string | Promise<string>,
  form: Readonly<Record<string, string>> = {},
  headers = {},
) =>
  requestToken(
    server,
    { grant_type: grant, client_id: clientId, assertion: await assertion, ...form },
    headers,
  );

t.test('a workload gets a token of the client, and its plan and scopes at the gateway', async (t) => {
  const assertion = await sign();
  const { status, body, text } = await exchange(assertion);
  t.equal(status, 200, text);
  t.match(body, { token_type: 'Bearer', scope: 'orders:read', expires_in: 900 });
  const { headers } = await checkRequest(server, String(body.access_token));
  t.equal(headers.get('x-auth-client-id'), clientId);
  t.equal(headers.get('x-auth-kind'), 'client');
  t.equal(headers.get('x-auth-plan'), 'pro');
  t.equal((await exchange(assertion)).status, 200, 'until it expires');
  t.equal((await exchange(sign({ aud: [tokenEndpoint] }))).status, 200, 'aud is the token endpoint');
  t.equal((await checkRequest(server, assertion)).status, 401, 'it is no token for an API');
  const prover = await createProver(server.clock.nowMs);
  const bound = await exchange(assertion, {}, { dpop: await prover.prove(tokenEndpoint) });
  t.equal(bound.body.token_type, 'DPoP');
  const { body: metadata } = await server.call('GET', '/.well-known/oauth-authorization-server');
  t.ok(Object(metadata).grant_types_supported.includes(grant));
});

t.test('assertions that are not for this server, client and workload are refused', async (t) => {
  const seconds = Math.floor(Date.now() / 1000);
  const refused = {
    'of another subject': [sign({ sub: 'repo:acme/shop:pull_request' }), /may not act/],
    'without a subject': [sign({ sub: undefined }), /may not act/],
    'of another trusted issuer': [sign({}, other), /may not act/],
    'of an unknown issuer': [sign({}, unknown), /iss is not a trusted issuer/],
    'of this server': [sign({ iss: issuerUrl }), /iss is not a trusted issuer/],
    'signed by another issuer': [sign({ iss: ci.issuer }, other), /signature|key/],
    'for an API': [sign({ aud: 'orders' }), /aud is not only this server/],
    'for an API, too': [sign({ aud: [issuerUrl, 'orders'] }), /aud is not only this server/],
    'for no audience': [sign({ aud: undefined }), /aud is not only this server/],
    'for an empty list': [sign({ aud: [] }), /aud is not/],
    'that has expired': [sign({ exp: seconds - 60 }), /expired/],
    'without an end': [sign({ exp: undefined }), /exp/],
    'of the future': [sign({ nbf: seconds + 600 }), /not valid yet/],
    'that is a proof': [sign({}, ci, { typ: 'dpop+jwt' }), /typ/],
    'that is no JWT': ['x', /no JWT/],
  } as const;
  for (const [name, [assertion, reason]] of Object.entries(refused))
    t.match(
      await exchange(assertion),
      {
        status: 400,
        body: { error: 'invalid_grant', error_description: reason },
      },
      name,
    );
  const [, claims = '', signature = ''] = (await sign()).split('.');
  const none = Buffer.from(JSON.stringify({ alg: 'none' })).toString('base64url');
  t.match((await exchange(`${none}.${claims}.${signature}`)).body, { error: 'invalid_grant' }, 'alg none');
  const plain = await createMachine(server);
  for (const id of [plain.client_id, '5642fcea-2d59-4cb2-891b-2b5cd89bf027', 'x'])
    t.match((await exchange(sign(), { client_id: id })).body, { error: 'invalid_grant' }, 'another client');
  t.match((await exchange(sign(), { client_id: '' })).body, { error: 'invalid_request' });
  t.match((await exchange('')).body, { error: 'invalid_request' });
  t.match((await exchange(sign(), { client_secret: 'x' })).body, { error: 'invalid_request' });
  t.match((await exchange(sign(), { scope: 'orders:write' })).body, { error: 'invalid_scope' });
  const direct = { grant_type: 'client_credentials', client_id: clientId };
  t.match((await requestToken(server, direct)).body, { error: 'unauthorized_client' });
});

t.test('while an issuer cannot be reached, its known keys are used', async (t) => {
  ci.become('down');
  t.equal((await exchange(sign())).status, 200);
  t.match(await exchange(sign({}, ci, { kid: 'new' })), {
    status: 503,
    body: { error: 'temporarily_unavailable' },
  });
  ci.become('up');
});

t.test('other workloads of a client end its tokens', async (t) => {
  const { client_id: id } = await createMachine(server, workload);
  const { body } = await exchange(sign(), { client_id: id });
  const token = String(body.access_token);
  t.equal((await checkRequest(server, token)).status, 200);
  const update = (members: object) =>
    server.call('PUT', `/admin/oauth/clients/${id}`, { token: adminToken(), body: members });
  const workload_identities = [{ issuer: 'ci', subject: 'repo:acme/shop:environment:production' }];
  t.match((await update({ workload_identities })).body, { workload_identities });
  await awaitUntil(async () => (await checkRequest(server, token)).status === 401, { what: 'the end' });
  t.match((await exchange(sign(), { client_id: id })).body, { error: 'invalid_grant' });
  t.equal((await update({ workload_identities: [] })).status, 400, 'the grant needs them');
});

t.test('invalid members of clients are refused, with the reason', async (t) => {
  for (const [members, message] of [
    [{ workload_identities: [] }, /need each other/],
    [{ grant_types: ['client_credentials'], token_endpoint_auth_method: undefined }, /need each other/],
    [{ workload_identities: [{ issuer: 'ci', subject: '' }] }, /sub of its tokens/],
    [{ workload_identities: [{ issuer: 'ci' }] }, /subject/],
    [{ workload_identities: Array(51).fill({ issuer: 'ci', subject }) }, /cannot exceed 50 items/],
  ] as const)
    await t.rejects(createMachine(server, { ...workload, ...members }), { message });
});
