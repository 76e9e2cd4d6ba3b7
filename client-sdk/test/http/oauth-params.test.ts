import t from 'tap';
import { startDeviceAuthorization } from '../../src/device/device.ts';
import { Client, type ClientOptions } from '../../src/index.ts';
import { startPushedAuthorization } from '../../src/par.ts';
import { exchangeToken } from '../../src/token-exchange.ts';
import { recordingFetch, tokenAnswer } from '../support/recording-fetch.ts';

const site = 'https://as.test';
const claims = { userinfo: { email: null }, id_token: { acr: { values: ['a', 'b'] } } };
const details = [{ type: 'payment', amount: { value: '1.00' } }];
const params = { scope: ['read', 'write'], claims, authorization_details: details };
const written = {
  scope: 'read write',
  claims: JSON.stringify(claims),
  authorization_details: JSON.stringify(details),
};

function makeClient(options: ClientOptions<true>, answer = tokenAnswer({ refresh_token: 'rt' })) {
  const { fetch, sent } = recordingFetch(answer);
  const client = new Client({
    ...{ clientId: 'id', clientSecret: 'x', site, fetch, redirectUri: 'https://app.test/cb' },
    ...{ deviceAuthorizationEndpoint: '/device', pushedAuthorizationRequestEndpoint: '/par' },
    ...options,
  });
  const form = () => Object.fromEntries(new URLSearchParams(sent.at(-1)?.body));
  return { client, sent, form };
}

t.test('authorization URLs have scopes joined and objects as JSON', async (t) => {
  const { client } = makeClient({});
  const { url } = await client.authCode.startAuthorization(params);
  for (const text of [
    url,
    client.authorizationUrl(params),
    client.authCode.authorizationUrl(params),
    client.implicit.authorizationUrl(params),
  ])
    t.match(Object.fromEntries(new URL(text).searchParams), written);
});

t.test('token requests of every grant have scopes joined and objects as JSON', async (t) => {
  const { client, form } = makeClient({});
  const token = await client.clientCredentials.getToken(params);
  t.match(form(), written);
  const requests: readonly (() => Promise<unknown>)[] = [
    () => client.getToken({ grant_type: 'x', ...params }),
    () => client.authCode.getToken('c', params),
    () => client.password.getToken('ada', 'pw', params),
    () => token.refresh(params),
    () => exchangeToken(client, { subjectToken: 't', scope: ['read', 'write'], params }),
  ];
  for (const request of requests) {
    await request();
    t.match(form(), written);
  }
});

t.test('device and pushed requests have scopes joined and objects as JSON', async (t) => {
  const fields = { device_code: 'd', user_code: 'u', verification_uri: 'https://v.test', expires_in: 60 };
  const { client, form } = makeClient({}, () => Response.json({ ...fields, request_uri: 'urn:x' }));
  await startDeviceAuthorization(client, params);
  t.match(form(), written);
  await startPushedAuthorization(client, params);
  t.match(form(), written);
});

t.test('tokenMethod post_query sends them in the query', async (t) => {
  const { client, sent } = makeClient({ tokenMethod: 'get' });
  await client.clientCredentials.getToken(params);
  t.match(Object.fromEntries(sent[0]?.url.searchParams ?? []), written);
});

t.test('in JSON, objects stay objects, scopes are joined and null is not sent', async (t) => {
  const { client, sent } = makeClient({ clientAuth: 'client_secret_post' });
  const headers = { 'content-type': 'application/json' };
  await client.getToken({ grant_type: 'x', ...params, list: [1, 2], gone: null }, { headers });
  t.same(JSON.parse(sent[0]?.body ?? ''), {
    ...{ grant_type: 'x', scope: 'read write', claims, authorization_details: details, list: [1, 2] },
    ...{ client_id: 'id', client_secret: 'x' },
  });
});

t.test('no scope is sent for an empty list of them', async (t) => {
  const { client, form } = makeClient({});
  await client.clientCredentials.getToken({ scope: [] });
  t.notOk('scope' in form());
});

t.test('URLs and dates are sent as strings', async (t) => {
  const { client, form } = makeClient({});
  const given = { resource: new URL('https://api.test/a'), at: new Date(0) };
  await client.clientCredentials.getToken(given as never);
  t.match(form(), { resource: 'https://api.test/a', at: '1970-01-01T00:00:00.000Z' });
});

const circular: Record<string, unknown> = {};
circular.self = circular;
for (const [what, value] of [
  ['a Map', { a: new Map() }],
  ['a function', { a: () => 1 }],
  ['undefined in an array', { a: [undefined] }],
  ['NaN', { a: Number.NaN }],
  ['a bigint', { a: 1n }],
  ['itself', circular],
] as const) {
  t.test(`an object with ${what} is rejected by name, and nothing is sent`, async (t) => {
    const { client, sent } = makeClient({});
    const refusal = { name: 'ConfigurationError', message: /`claims/ };
    await t.rejects(client.clientCredentials.getToken({ claims: value } as never), refusal);
    const headers = { 'content-type': 'application/json' };
    const body = value as never;
    await t.rejects(client.request('POST', '/x', { body, headers }), { name: 'ConfigurationError' });
    t.same(sent, []);
  });
}

t.test('scopes that are not strings are rejected', async (t) => {
  const { client } = makeClient({});
  const refusal = { name: 'ConfigurationError', message: /`scope`/ };
  await t.rejects(client.clientCredentials.getToken({ scope: ['a', null] }), refusal);
  t.throws(() => client.authorizationUrl({ scope: ['a', 1] }), refusal);
});
