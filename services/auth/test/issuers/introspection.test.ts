import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import { makeTextFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import { startOidcServer } from '../helpers/oidc-server.ts';
import { startIssuers } from '../helpers/trusted-issuers.ts';

const clientSecret = 'a secret: with & characters';

function writeSecret(t: Test): string {
  const folder = makeTextFolder(t);
  folder.write('secret', `${clientSecret}\n`);
  return `${folder.path}/secret`;
}

/** The `issuers` of a routes file with an issuer of opaque tokens. */
function opaque(issuer: string, endpoint: string, secretFile: string, more = ''): string {
  return `  - name: opaque
    issuer: ${issuer}
    audiences: [orders, shop]
    jwks_uri: ${issuer}/jwks
    introspection: { endpoint: ${endpoint}, client: { id: shop, secret_file: ${secretFile} } }
    ${more}
`;
}

t.test(
  'oidc-provider: opaque and signed tokens of a client are accepted, revoked ones are not',
  async (t) => {
    const issuer = await startOidcServer(
      t,
      {
        ...{ client_id: 'shop', client_secret: clientSecret, grant_types: ['client_credentials'] },
        ...{ redirect_uris: [], response_types: [], token_endpoint_auth_method: 'client_secret_basic' },
      },
      undefined,
      {
        features: {
          clientCredentials: { enabled: true },
          introspection: { enabled: true },
          revocation: { enabled: true },
          resourceIndicators: {
            enabled: true,
            getResourceServerInfo: () => ({
              ...{ scope: 'read', audience: 'orders', accessTokenFormat: 'jwt' },
              jwt: { sign: { alg: 'RS256' } },
            }),
          },
        },
      },
    );
    const credentials = `${encodeURIComponent('shop')}:${encodeURIComponent(clientSecret).replaceAll('%20', '+')}`;
    const post = async (path: string, form: Record<string, string>) => {
      const response = await fetch(`${issuer}${path}`, {
        method: 'POST',
        headers: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
        body: new URLSearchParams(form),
      });
      const body = await response.text();
      // The form of a token response.
      return body === '' ? undefined : (JSON.parse(body) as { access_token: string });
    };
    const grant = { grant_type: 'client_credentials' };
    const opaqueToken = (await post('/token', grant))?.access_token ?? '';
    const signed =
      (await post('/token', { ...grant, resource: 'urn:orders', scope: 'read' }))?.access_token ?? '';

    const kinds = `kinds: { client: "client_id != ''" }`;
    const { ask, clock, issuers } = startIssuers(
      opaque(issuer, `${issuer}/token/introspection`, writeSecret(t), kinds),
      {
        clock: fakeClock(Date.now()),
      },
    );
    t.teardown(() => issuers.stop());
    t.equal(await ask(signed), 'accepted shop', 'a JWT of RFC 9068 is verified with the keys');
    t.equal(await ask(opaqueToken), 'accepted shop');
    t.equal(await ask(opaqueToken), 'cached shop');
    await post('/token/revocation', { token: opaqueToken });
    t.equal(await ask(opaqueToken), 'cached shop');
    clock.advance(30_000);
    t.equal(await ask(opaqueToken), 'token is not active');
    t.equal(await ask('unknown-token'), 'token is not active');
  },
);

/** An introspection endpoint that a test controls. */
async function startEndpoint(t: Test) {
  const requests: { form: URLSearchParams; headers: IncomingMessage['headers'] }[] = [];
  const state = { status: 200, body: '{"active":true,"sub":"ada","aud":"orders"}', hangs: false };
  const server = createServer((request, response) => {
    // The keys are loaded, too.
    if (request.url !== '/introspect') {
      response.writeHead(404).end();
      return;
    }
    void text(request).then((body) => {
      requests.push({ form: new URLSearchParams(body), headers: request.headers });
      if (!state.hangs)
        response.writeHead(state.status, { 'content-type': 'application/json' }).end(state.body);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on TCP
  const entry = opaque(origin, `${origin}/introspect`, writeSecret(t));
  const trusted = startIssuers(entry, { clock: fakeClock(Date.now()) });
  t.teardown(() => trusted.issuers.stop());
  const answer = (body: object) => {
    state.body = JSON.stringify(body);
  };
  return { requests, state, answer, origin, entry, ...trusted };
}

t.test('the token is sent in a form, with the credentials of the client', async (t) => {
  const { ask, requests } = await startEndpoint(t);
  t.equal(await ask('opaque'), 'accepted opaque|ada');
  t.equal(requests[0]?.form.get('token'), 'opaque');
  const [scheme, encoded = ''] = requests[0]?.headers.authorization?.split(' ') ?? [];
  t.equal(scheme, 'Basic');
  const encodedSecret = new URLSearchParams({ s: clientSecret }).toString().slice(2);
  t.equal(Buffer.from(encoded, 'base64').toString(), `shop:${encodedSecret}`);
});

t.test('issuer, audience and time of a response are checked', async (t) => {
  const { ask, answer, clock, origin } = await startEndpoint(t);
  const seconds = Math.floor(clock.nowMs() / 1000);
  const active = { active: true, sub: 'ada', aud: 'orders' };
  const cases: readonly (readonly [object, string])[] = [
    [{ ...active, iss: origin, exp: seconds + 60 }, 'accepted opaque|ada'],
    [{ ...active, iss: 'https://other.example' }, 'iss is not the issuer'],
    [{ ...active, aud: 'billing' }, 'aud is not an accepted audience'],
    [{ active: true, sub: 'ada' }, 'aud is not an accepted audience'],
    [{ active: true, sub: 'ada', client_id: 'shop' }, 'accepted opaque|ada'],
    [{ ...active, exp: seconds }, 'token is expired'],
    [{ ...active, nbf: seconds + 60 }, 'token is not valid yet'],
    [{ active: true, aud: 'orders' }, 'token names no user'],
    [{ active: false, sub: 'ada', aud: 'orders' }, 'token is not active'],
  ];
  for (const [index, [response, expected]] of cases.entries()) {
    answer(response);
    t.equal(await ask(`token-${index}`), expected, JSON.stringify(response));
  }
});

t.test('a response is used until the token expires, at most for the time of the file', async (t) => {
  const { ask, answer, clock, requests } = await startEndpoint(t);
  answer({ active: true, sub: 'ada', aud: 'orders', exp: Math.floor(clock.nowMs() / 1000) + 10 });
  await ask('short');
  clock.advance(11_000);
  t.equal(await ask('short'), 'token is expired');
  t.equal(requests.length, 2);
});

t.test('tokens that are not active are remembered for a while', async (t) => {
  const { ask, answer, clock, requests } = await startEndpoint(t);
  answer({ active: false });
  for (let n = 0; n < 5; n += 1) t.equal(await ask('unknown'), 'token is not active');
  t.equal(requests.length, 1);
  clock.advance(10_000);
  await ask('unknown');
  t.equal(requests.length, 2);
});

t.test('concurrent requests with a token share a call', async (t) => {
  const { ask, requests } = await startEndpoint(t);
  const answers = await Promise.all(Array.from({ length: 50 }, () => ask('opaque')));
  t.same(new Set(answers), new Set(['accepted opaque|ada']));
  t.equal(requests.length, 1);
});

t.test('an endpoint that fails is unavailable, and asked again by the next request', async (t) => {
  const { ask, state, requests } = await startEndpoint(t);
  const unavailable = 'unavailable: the issuer did not answer about the token';
  const failures: readonly Partial<typeof state>[] = [
    { status: 500 },
    { status: 401 },
    { body: '<html>' },
    { body: '{}' },
    { body: 'null' },
    { body: JSON.stringify({ active: true, padding: 'x'.repeat(70_000) }) },
  ];
  const { status, body } = state;
  for (const failure of failures) {
    Object.assign(state, { status, body }, failure);
    t.equal(await ask('opaque'), unavailable, JSON.stringify(failure).slice(0, 60));
  }
  Object.assign(state, { status, body });
  t.equal(await ask('opaque'), 'accepted opaque|ada');
  t.equal(requests.length, failures.length + 1);
});

t.test('requests do not wait for an endpoint that hangs, and few calls are under way', async (t) => {
  const { ask, state, requests } = await startEndpoint(t);
  state.hangs = true;
  const answers = await Promise.all(Array.from({ length: 150 }, (_, n) => ask(`token-${n}`, 500)));
  const tooMany = answers.filter((answer) => answer === 'unavailable: too many tokens are being checked');
  t.equal(tooMany.length, 50);
  t.ok(requests.length <= 100, `${requests.length} calls`);
  t.ok(answers.every((answer) => answer.startsWith('unavailable')));
});

t.test('an answer of an issuer that was replaced is not used for the next one', async (t) => {
  const { ask, answer, replace } = await startEndpoint(t);
  const next = await startEndpoint(t);
  next.answer({ active: true, sub: 'bob', aud: 'orders' });
  answer({ active: false });
  t.equal(await ask('not active'), 'token is not active');
  answer({ active: true, sub: 'ada', aud: 'orders' });
  const pending = ask('opaque');
  replace(next.entry);
  t.equal(await ask('not active'), 'accepted opaque|bob');
  t.equal(await ask('opaque'), 'accepted opaque|bob');
  t.equal(await pending, 'accepted opaque|ada', 'by the rules of its arrival');
  t.equal(await ask('opaque'), 'cached opaque|bob');
});

t.test('a response without exp is used once if responses are not kept', async (t) => {
  const { ask, entry, replace, requests } = await startEndpoint(t);
  replace(entry.replace('introspection: {', 'introspection: { cache: 0s,'));
  t.equal(await ask('opaque'), 'accepted opaque|ada');
  t.equal(await ask('opaque'), 'accepted opaque|ada');
  t.equal(requests.length, 2);
});

t.test('the tenant of a response is checked', async (t) => {
  const { ask, answer, entry, origin, replace } = await startEndpoint(t);
  const active = { active: true, sub: 'ada', aud: 'orders' };
  const askAbout = (response: object) => {
    answer({ ...active, ...response });
    return ask(JSON.stringify(response));
  };
  replace(`${entry}    tenants: [shop]\n`);
  t.equal(await askAbout({ iss: origin, tid: 'shop' }), 'accepted opaque|ada');
  t.equal(await askAbout({ tid: 'other' }), 'tid is not an accepted tenant');
  t.equal(await askAbout({}), 'tid is not an accepted tenant');
  replace(entry.replace(`issuer: ${origin}`, `issuer: "${origin}/{tenantid}"`));
  t.equal(await askAbout({ iss: `${origin}/any`, tid: 'any' }), 'accepted opaque|ada');
  t.equal(await askAbout({ iss: `${origin}/any`, tid: 'else' }), 'iss is not the issuer');
});
