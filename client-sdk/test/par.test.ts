import t from 'tap';
import { Client } from '../src/client.ts';
import { pushAuthorizationRequest, startPushedAuthorization } from '../src/par.ts';

const answer = { request_uri: 'urn:ietf:params:oauth:request_uri:abc', expires_in: 60 };

function makeClient(respond: () => Response = () => Response.json(answer, { status: 201 })) {
  const sent: { url: string; params: URLSearchParams; authorization: string | null }[] = [];
  const client = new Client({
    ...{ clientId: 'app', clientSecret: 'secret', redirectUri: 'https://app.test/cb', throwOnError: false },
    ...{ site: 'https://as.test', pushedAuthorizationRequestEndpoint: 'par' },
    async fetch(url, init) {
      const authorization = new Headers(init.headers).get('authorization');
      sent.push({ url, params: new URLSearchParams(String(init.body)), authorization });
      return respond();
    },
  });
  return { client, sent };
}

t.test(
  'the parameters are pushed with the client authenticated, and the URL has the reference only',
  async (t) => {
    const { client, sent } = makeClient();
    const pushed = await pushAuthorizationRequest(client, { scope: 'read', state: 's' });
    t.same(pushed, {
      requestUri: answer.request_uri,
      expiresIn: 60,
      url: 'https://as.test/oauth/authorize?client_id=app&request_uri=urn%3Aietf%3Aparams%3Aoauth%3Arequest_uri%3Aabc',
    });
    t.match(sent, [{ url: 'https://as.test/par', authorization: `Basic ${btoa('app:secret')}` }]);
    t.same(Object.fromEntries(sent[0]?.params ?? []), {
      ...{
        response_type: 'code',
        client_id: 'app',
        redirect_uri: 'https://app.test/cb',
        scope: 'read',
        state: 's',
      },
    });
  },
);

t.test('a pushed authorization sends state, PKCE and nonce to the server only', async (t) => {
  const { client, sent } = makeClient();
  const { url, transaction } = await startPushedAuthorization(client, { scope: 'openid' });
  t.match(Object.fromEntries(sent[0]?.params ?? []), {
    ...{
      state: transaction.state,
      nonce: transaction.nonce,
      code_challenge: /^[\w-]{43}$/,
      code_challenge_method: 'S256',
    },
  });
  t.match(transaction, { codeVerifier: /^[\w-]{43}$/, redirectUri: 'https://app.test/cb' });
  t.same([...new URL(url).searchParams.keys()], ['client_id', 'request_uri']);
});

t.test('PKCE can be disabled', async (t) => {
  const { client, sent } = makeClient();
  await startPushedAuthorization(client, {}, { pkce: false });
  t.notOk(sent[0]?.params.has('code_challenge'));
});

t.test("a refused parameter throws, whatever the client's throwOnError", async (t) => {
  const { client } = makeClient(() => Response.json({ error: 'invalid_scope' }, { status: 400 }));
  await t.rejects(pushAuthorizationRequest(client, {}), { name: 'OAuthError', code: 'invalid_scope' });
});

t.test('an unusable response is an error', async (t) => {
  for (const body of [
    {},
    { request_uri: '', expires_in: 60 },
    { request_uri: 5 },
    { request_uri: 'urn:x' },
    [],
  ]) {
    const { client } = makeClient(() => Response.json(body, { status: 201 }));
    await t.rejects(pushAuthorizationRequest(client, {}), { name: 'ParseError' }, JSON.stringify(body));
  }
});

t.test(
  'nothing is sent by a client that is not set up for it, or for parameters that are not pushed',
  async (t) => {
    const { client, sent } = makeClient();
    await t.rejects(pushAuthorizationRequest(client, { request_uri: 'urn:x' }), {
      name: 'ConfigurationError',
    });
    const { fetch } = client.settings;
    const without = new Client({ clientId: 'app', site: 'https://as.test', fetch });
    await t.rejects(pushAuthorizationRequest(without, {}), { message: /pushedAuthorizationRequestEndpoint/ });
    const nameless = new Client({
      site: 'https://as.test',
      pushedAuthorizationRequestEndpoint: 'par',
      fetch,
    });
    await t.rejects(pushAuthorizationRequest(nameless, {}), { message: /clientId/ });
    t.equal(sent.length, 0);
  },
);
