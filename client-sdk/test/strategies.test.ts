import t from 'tap';
import { Client } from '../src/index.ts';

const options = { clientId: 'id', site: 'https://as.test/base', redirectUri: 'https://app.test/cb' };

t.test('an authorization code URL names client, redirect URI and response type', async (t) => {
  const url = new Client(options).authCode.authorizationUrl({ scope: 'a b', state: 's' });
  t.equal(
    url,
    'https://as.test/base/oauth/authorize?client_id=id&redirect_uri=https%3A%2F%2Fapp.test%2Fcb&response_type=code&scope=a%20b&state=s',
  );
});

t.test('an implicit URL asks for a token', async (t) => {
  t.match(new Client(options).implicit.authorizationUrl(), /response_type=token/);
});

t.test("redirect URI of the call takes precedence over the client's", async (t) => {
  const url = new URL(new Client(options).authCode.authorizationUrl({ redirect_uri: 'https://app.test/2' }));
  t.equal(url.searchParams.get('redirect_uri'), 'https://app.test/2');
});

t.test('a client secret never gets into an authorization URL', async (t) => {
  const client = new Client({ ...options, clientSecret: 'secret' });
  t.notMatch(client.authCode.authorizationUrl(), /secret/);
  const refusal = { name: 'ConfigurationError', message: /client_secret/ };
  t.throws(() => client.authCode.authorizationUrl({ client_secret: 'x' }), refusal);
  t.throws(() => client.implicit.authorizationUrl({ client_secret: 'x' }), refusal);
});

t.test('an authorization URL without a client id names the missing option', async (t) => {
  t.throws(() => new Client({ site: 'https://as.test' }).authCode.authorizationUrl(), {
    name: 'ConfigurationError',
    message: /clientId/,
  });
});

t.test('endpoints are relative to the site unless absolute', async (t) => {
  const client = new Client({
    ...options,
    tokenEndpoint: '/token',
    revocationEndpoint: 'https://other.test/revoke',
  });
  t.equal(client.tokenUrl(), 'https://as.test/token');
  t.equal(client.tokenUrl({ a: '1' }), 'https://as.test/token?a=1');
  t.equal(client.revocationUrl(), 'https://other.test/revoke');
});

t.test('authorizationUrl of grants without a browser fails with a clear error', async (t) => {
  const client = new Client(options);
  for (const grant of [client.password, client.clientCredentials, client.assertion]) {
    const authorizationUrl: unknown = Reflect.get(grant, 'authorizationUrl');
    t.type(authorizationUrl, 'function');
    if (typeof authorizationUrl === 'function')
      t.throws(() => authorizationUrl(), { name: 'ConfigurationError' });
  }
});

t.test('every invalid option is named in the error, without secrets', async (t) => {
  const bad = {
    site: 'nowhere',
    timeoutMs: -1,
    tokenMethod: 'put',
    keyCase: 'kebab',
    clientSecret: 's3cr3t',
    allowedOrigins: ['x'],
  };
  const error = t.throws(() => Reflect.construct(Client, [bad]));
  t.match(String(error), /timeoutMs.*site.*tokenMethod.*keyCase.*allowedOrigins/s);
  t.notMatch(String(error), /s3cr3t/);
});

t.test('an unknown method of client authentication is rejected', async (t) => {
  t.throws(() => Reflect.construct(Client, [{ clientAuth: 'basic' }]), { message: /client_secret_basic/ });
  t.throws(() => Reflect.construct(Client, [{ clientAuth: 'private_key_jwt' }]), {
    message: /needs its settings/,
  });
});
