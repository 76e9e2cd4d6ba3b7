import { EventEmitter } from 'node:events';
import t from 'tap';
import { prepareAuthorization } from '../src/authorization.ts';
import { Client } from '../src/index.ts';
import { calculateCodeChallenge } from '../src/pkce.ts';
import { recordingFetch, tokenAnswer } from './support/recording-fetch.ts';

const client = { redirectUri: 'https://app.example/cb', issuer: 'https://as.example' };

t.test('an authorization has a state, an S256 challenge of the verifier and the redirect URI', async (t) => {
  const { params, transaction } = await prepareAuthorization(client, { scope: 'read', prompt: 'login' });
  t.match(transaction, { state: /^[\w-]{43}$/, codeVerifier: /^[\w-]{43}$/, ...client });
  t.notOk('nonce' in transaction);
  t.same(params, {
    scope: 'read',
    prompt: 'login',
    state: transaction.state,
    redirect_uri: client.redirectUri,
    code_challenge: await calculateCodeChallenge(transaction.codeVerifier ?? ''),
    code_challenge_method: 'S256',
  });
});

t.test('scope openid adds a nonce, also in an array of scopes', async (t) => {
  const { params, transaction } = await prepareAuthorization(client, { scope: ['openid', 'email'] });
  t.match(transaction.nonce, /^[\w-]{43}$/);
  t.match(params, { scope: 'openid email', nonce: transaction.nonce });
});

t.test(
  "the caller's state, nonce and redirect URI are used, and the caller's object is not changed",
  async (t) => {
    const given = Object.freeze({ state: 's', nonce: 'n', redirect_uri: 'https://other.example/cb' });
    const { params, transaction } = await prepareAuthorization(client, given, { pkce: false });
    t.same(transaction, {
      state: 's',
      nonce: 'n',
      redirectUri: 'https://other.example/cb',
      issuer: client.issuer,
    });
    t.same(params, given);
  },
);

t.test('two authorizations have different state, nonce and verifier', async (t) => {
  const [first, second] = await Promise.all([
    prepareAuthorization(client, { scope: 'openid' }),
    prepareAuthorization(client, { scope: 'openid' }),
  ]);
  for (const secret of ['state', 'nonce', 'codeVerifier'] as const) {
    t.not(first.transaction[secret], second.transaction[secret]);
  }
});

t.test('a transaction can be serialised as JSON', async (t) => {
  const { transaction } = await prepareAuthorization(client, { scope: 'openid' });
  t.same(JSON.parse(JSON.stringify(transaction)), transaction);
});

t.test('parameters that cannot be combined with it are rejected', async (t) => {
  for (const params of [
    { code_challenge: 'x' },
    { code_challenge_method: 'plain' },
    { response_type: 'code id_token' },
    { response_mode: 'query.jwt' },
  ]) {
    await t.rejects(prepareAuthorization(client, params), { name: 'ConfigurationError' });
  }
  await t.resolves(prepareAuthorization(client, { response_type: 'code', response_mode: 'form_post' }));
});

/** A client that cannot validate ID tokens: it has no key set. */
function makeFlow(fields: Record<string, unknown> = {}) {
  const { fetch, sent } = recordingFetch(tokenAnswer(fields));
  const { authCode } = new Client({ clientId: 'app', site: client.issuer, fetch, ...client });
  return { flow: authCode, sent, params: () => sent.map(({ body }) => new URLSearchParams(body)) };
}

t.test(
  'the code is exchanged with verifier and redirect URI, options going to the token request',
  async (t) => {
    const { sent, params, flow } = makeFlow();
    const { url, transaction } = await flow.startAuthorization();
    t.equal(new URL(url).searchParams.get('state'), transaction.state);
    await flow.completeAuthorization(`code=c&state=${transaction.state}`, transaction, {
      params: { resource: 'https://api.example', code_verifier: 'not this' },
      headers: { 'x-a': '1' },
    });
    t.equal(sent.length, 1);
    t.equal(sent[0]?.headers.get('x-a'), '1');
    t.same(Object.fromEntries(params()[0] ?? []), {
      grant_type: 'authorization_code',
      code: 'c',
      resource: 'https://api.example',
      code_verifier: transaction.codeVerifier,
      redirect_uri: client.redirectUri,
      client_id: 'app',
    });
  },
);

t.test('two concurrent requests with one callback exchange its code once', async (t) => {
  const { sent, flow } = makeFlow();
  const { transaction } = await flow.startAuthorization();
  const callback = `code=c&state=${transaction.state}`;
  const outcomes = await Promise.allSettled([
    flow.completeAuthorization(callback, transaction),
    flow.completeAuthorization(callback, JSON.parse(JSON.stringify(transaction))),
  ]);
  t.match(outcomes, [
    { status: 'fulfilled' },
    { status: 'rejected', reason: { name: 'StateMismatchError' } },
  ]);
  t.equal(sent.length, 1);
});

t.test('a forged callback does not consume the transaction', async (t) => {
  const { flow } = makeFlow();
  const { transaction } = await flow.startAuthorization();
  await t.rejects(flow.completeAuthorization('code=c&state=forged', transaction), {
    name: 'StateMismatchError',
  });
  await t.resolves(flow.completeAuthorization(`code=c&state=${transaction.state}`, transaction));
});

t.test('the ID token is checked against the nonce, the code and max_age of the transaction', async (t) => {
  const { flow } = makeFlow({ id_token: 'jwt' });
  const expectations: unknown[] = [];
  const validateIdToken = async (idToken: string, expected: unknown) => {
    expectations.push([idToken, expected]);
  };
  const { transaction } = await flow.startAuthorization({ scope: 'openid', nonce: 'n', max_age: 60 });
  const callback = `code=c&state=${transaction.state}`;
  await flow.completeAuthorization(callback, transaction, { validateIdToken });
  t.same(expectations, [['jwt', { code: 'c', nonce: 'n', maxAgeSeconds: 60, accessToken: 'at' }]]);
});

t.test('a given validator requires an ID token, whatever the scope', async (t) => {
  const { flow } = makeFlow();
  const { transaction } = await flow.startAuthorization();
  const callback = `code=c&state=${transaction.state}`;
  const completing = flow.completeAuthorization(callback, transaction, {
    validateIdToken: async () => undefined,
  });
  await t.rejects(completing, { name: 'IdTokenError', claim: 'id_token' });
});

t.test('a client that cannot validate the ID token does not send the code, which stays usable', async (t) => {
  const { flow, sent } = makeFlow({ id_token: 'jwt' });
  const { transaction } = await flow.startAuthorization({ scope: 'openid' });
  const callback = `code=c&state=${transaction.state}`;
  await t.rejects(flow.completeAuthorization(callback, transaction), { name: 'ConfigurationError' });
  t.same(sent, []);
  const validateIdToken = async () => undefined;
  await t.resolves(flow.completeAuthorization(callback, transaction, { validateIdToken }));
});

const query = (state: string) => `code=c&state=${state}`;
const url = 'https://app.example/cb';
const form = (body: string, type = 'application/x-www-form-urlencoded') =>
  new Request(url, { method: 'POST', body, headers: { 'content-type': type } });

const callbacks: Readonly<Record<string, (state: string) => string | URL | URLSearchParams | Request>> = {
  'a string': (state) => `${url}?${query(state)}`,
  'a URL': (state) => new URL(`${url}?${query(state)}`),
  URLSearchParams: (state) => new URLSearchParams(query(state)),
  'a GET request': (state) => new Request(`${url}?${query(state)}`),
  'a form_post request': (state) => form(query(state), 'application/x-www-form-urlencoded; charset=utf-8'),
};
for (const [what, make] of Object.entries(callbacks)) {
  t.test(`a callback may be ${what}`, async (t) => {
    const { sent, flow } = makeFlow();
    const { transaction } = await flow.startAuthorization();
    const callback = make(transaction.state);
    await flow.completeAuthorization(callback, transaction);
    t.match(sent, [{ body: /&code=c&/ }]);
    if (callback instanceof Request) t.equal(callback.bodyUsed, false, 'its body can be read again');
  });
}

t.test('a POST callback that is not a form, or too long, is rejected', async (t) => {
  const { sent, flow } = makeFlow();
  const { transaction } = await flow.startAuthorization();
  const { state } = transaction;
  for (const request of [
    form(JSON.stringify({ code: 'c', state }), 'application/json'),
    form(`${query(state)}&x=${'x'.repeat(70_000)}`),
  ])
    await t.rejects(flow.completeAuthorization(request, transaction), { name: 'ParseError' });
  t.same(sent, []);
});

t.test('the query of a form_post callback is not read', async (t) => {
  const { flow } = makeFlow();
  const { transaction } = await flow.startAuthorization();
  const init = {
    method: 'POST',
    body: 'code=evil',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  };
  const request = new Request(`${url}?${query(transaction.state)}`, init);
  await t.rejects(flow.completeAuthorization(request, transaction), { name: 'StateMismatchError' });
});

t.test('anything but a callback is rejected with the accepted forms', async (t) => {
  const { sent, flow } = makeFlow();
  const { transaction } = await flow.startAuthorization();
  const incoming = Object.assign(new EventEmitter(), { url: '/cb', method: 'POST', headers: {} });
  for (const callback of [undefined, null, 1, incoming])
    await t.rejects(flow.completeAuthorization(callback as never, transaction), {
      ...{ name: 'ConfigurationError', message: /URLSearchParams/ },
    });
  t.same(sent, []);
});

t.test('a GET request of Node is read by its URL', async (t) => {
  const { sent, flow } = makeFlow();
  const { transaction } = await flow.startAuthorization();
  const incoming = Object.assign(new EventEmitter(), {
    url: `/cb?${query(transaction.state)}`,
    method: 'GET',
  });
  await flow.completeAuthorization(incoming as never, transaction);
  t.match(sent, [{ body: /&code=c&/ }]);
});

t.test('a request whose body was consumed is rejected with an alternative', async (t) => {
  const { flow } = makeFlow();
  const { transaction } = await flow.startAuthorization();
  const request = form(query(transaction.state));
  await request.text();
  await t.rejects(flow.completeAuthorization(request, transaction), {
    ...{ name: 'ConfigurationError', message: /read before: .*URLSearchParams/ },
  });
});
