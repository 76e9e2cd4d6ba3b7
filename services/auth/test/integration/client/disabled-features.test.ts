// Unsupported features: responses are those of a server that has them disabled.
import { AuthClient } from '@supabase/auth-js';
import t from 'tap';
import { signUp, startAuthServer } from '../../helpers/auth-server.ts';

const ada = { email: 'ada@example.com', password: 'correct horse' };

t.test('client library reports which feature is disabled', async (t) => {
  const server = await startAuthServer(t);
  const client = new AuthClient({ url: server.url, autoRefreshToken: false, persistSession: false });
  await client.signUp(ada);

  const byIdToken = await client.signInWithIdToken({ provider: 'google', token: 'a.b.c' });
  t.match(byIdToken.error, {
    status: 400,
    code: 'provider_disabled',
    message: 'Provider (issuer "https://accounts.google.com") is not enabled',
  });
  const bySso = await client.signInWithSSO({ domain: 'example.com' });
  t.match(bySso.error, { status: 404, code: 'saml_provider_disabled', message: 'SAML 2.0 is disabled' });
  const byWeb3 = await client.signInWithWeb3({
    chain: 'ethereum',
    message: 'm'.repeat(20_000),
    signature: '0xab',
  });
  t.match(byWeb3.error, {
    status: 422,
    code: 'web3_provider_disabled',
    message: 'Web3 provider is disabled',
  });

  const linking = { status: 404, code: 'manual_linking_disabled', message: 'Manual linking is disabled' };
  t.match((await client.linkIdentity({ provider: 'github' })).error, linking);
  const identities = await client.getUserIdentities();
  const [identity] = identities.data?.identities ?? [];
  if (identity === undefined) throw new Error('a user has an identity');
  t.match((await client.unlinkIdentity(identity)).error, linking);
  const { error } = await client.linkIdentity({ provider: 'google', token: 'a.b.c' });
  t.match(error, { status: 400, code: 'provider_disabled' });
});

t.test('disabled paths respond with JSON', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken: token } = await signUp(server);
  const post = (path: string, body: object) => server.call('POST', path, { body });
  const idToken = (body: object) => post('/token?grant_type=id_token', body);

  t.match(await idToken({}), {
    status: 400,
    body: { error: 'invalid request', error_description: 'id_token required' },
  });
  t.match(await idToken({ id_token: 'x' }), { status: 400, body: { error: 'invalid request' } });
  t.match(await idToken({ id_token: 'x', client_id: 'y', issuer: 'https://appleid.apple.com' }), {
    status: 400,
    body: {
      error_code: 'provider_disabled',
      msg: 'Provider (issuer "https://appleid.apple.com") is not enabled',
    },
  });
  const issuer = 'https://login.microsoftonline.com/tenant/v2.0';
  t.match(await idToken({ id_token: 'x', provider: 'azure', issuer }), {
    body: { msg: `Provider (issuer "${issuer}") is not enabled` },
  });
  t.match(await idToken({ id_token: 'x', provider: 'unknown' }), {
    status: 400,
    body: { error_code: 'validation_failed', msg: 'Custom OIDC provider "unknown" not allowed' },
  });
  t.match(await post('/token?grant_type=web3', {}), {
    status: 422,
    body: { error_code: 'web3_provider_disabled' },
  });

  const saml = { status: 404, body: { error_code: 'saml_provider_disabled' } };
  t.match(await server.call('POST', '/sso', { body: '{' }), saml, 'before the body is parsed');
  t.match(await server.call('GET', '/sso/saml/metadata'), saml);
  t.match(await post('/sso/saml/acs', {}), saml);

  const linking = { status: 404, body: { error_code: 'manual_linking_disabled' } };
  t.match(await server.call('GET', '/user/identities/authorize?provider=github', { token }), linking);
  t.match(await server.call('DELETE', '/user/identities/x', { token }), linking);
  t.match(await server.call('DELETE', '/user/identities/x'), { status: 401 }, 'requires a token first');

  const passkeys = { status: 404, body: { error_code: 'passkey_disabled' } };
  t.match(await server.call('POST', '/passkeys/authentication/options', { body: '{' }), passkeys);
  t.match(await server.call('GET', '/passkeys', { token }), passkeys);
  t.match((await server.call('GET', '/settings')).body, { passkeys_enabled: false });

  const unsupported = (msg: string) => ({ status: 400, body: { error_code: 'validation_failed', msg } });
  t.match(
    await server.call('GET', '/authorize?provider=github'),
    unsupported('Unsupported provider: provider is not enabled'),
  );
  t.match(
    await server.call('GET', '/authorize?provider=unknown'),
    unsupported('Unsupported provider: Provider unknown could not be found'),
  );
});
