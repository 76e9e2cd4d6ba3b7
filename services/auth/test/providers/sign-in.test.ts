// The client library signs users in with providers, which a local server stands in for.
import { AuthClient } from '@supabase/auth-js';
import t from 'tap';
import type { AuthServer } from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';
import { providerAccessToken } from '../helpers/provider-server.ts';
import { apiUrl, siteUrl, startWithProviders } from '../helpers/provider-sign-in.ts';

function clientOf(server: AuthServer, flowType: 'implicit' | 'pkce') {
  const storage = new Map<string, string>();
  return new AuthClient({
    url: server.url,
    flowType,
    autoRefreshToken: false,
    persistSession: true,
    storage: {
      getItem: (key) => storage.get(key) ?? null,
      setItem: (key, value) => void storage.set(key, value),
      removeItem: (key) => void storage.delete(key),
    },
  });
}

/** Opens the URL of the client library, and follows it to the site. */
async function visit(server: AuthServer, url: string | null): Promise<URL> {
  const browser = new Browser({ [apiUrl]: server.url });
  return await browser.visit((url ?? '').replace(server.url, apiUrl), siteUrl);
}

for (const provider of ['google', 'github'] as const)
  t.test(`${provider} signs in by the implicit flow`, async (t) => {
    const { server } = await startWithProviders(t);
    const client = clientOf(server, 'implicit');
    const { data } = await client.signInWithOAuth({ provider, options: { skipBrowserRedirect: true } });
    const landed = await visit(server, data.url);
    const fragment = new URLSearchParams(landed.hash.slice(1));
    t.match(Object.fromEntries(fragment), {
      token_type: 'bearer',
      expires_in: '3600',
      provider_token: providerAccessToken,
      provider_refresh_token: 'provider-refresh-token',
    });
    const { data: found, error } = await client.getUser(fragment.get('access_token') ?? '');
    t.equal(error, null);
    t.match(found.user, {
      email: 'ada@example.com',
      app_metadata: { provider, providers: [provider] },
      user_metadata: { full_name: 'Ada Lovelace', email_verified: true },
      identities: [{ provider, identity_data: { email: 'ada@example.com' } }],
    });
    t.equal(found.user?.confirmed_at === undefined, false);
  });

t.test('PKCE flow returns a code that the client exchanges for a session with provider tokens', async (t) => {
  const { server, vendors } = await startWithProviders(t);
  const client = clientOf(server, 'pkce');
  const { data } = await client.signInWithOAuth({
    provider: 'github',
    options: { skipBrowserRedirect: true, scopes: 'repo gist', queryParams: { login: 'ada', state: 'mine' } },
  });
  const landed = await visit(server, data.url);
  const exchanged = await client.exchangeCodeForSession(landed.searchParams.get('code') ?? '');
  t.equal(exchanged.error, null);
  t.match(exchanged.data.session, {
    provider_token: providerAccessToken,
    provider_refresh_token: 'provider-refresh-token',
    user: { email: 'ada@example.com' },
  });
  const [authorization, token] = vendors.requests('github');
  t.match(Object.fromEntries(authorization?.query ?? []), {
    client_id: 'GITHUB-client',
    redirect_uri: 'http://localhost:9999/callback',
    scope: 'user:email repo gist',
    response_type: 'code',
    login: 'ada',
    code_challenge_method: 'S256',
  });
  t.not(authorization?.query.get('state'), 'mine');
  t.notOk(authorization?.query.has('redirect_to'));
  t.match(Object.fromEntries(token?.form ?? []), {
    client_id: 'GITHUB-client',
    client_secret: 'GITHUB-secret',
  });
  const again = await client.exchangeCodeForSession(landed.searchParams.get('code') ?? '');
  t.ok(again.error);
});

t.test('second sign-in finds the user of the identity', async (t) => {
  const { server } = await startWithProviders(t);
  const client = clientOf(server, 'implicit');
  const ids: unknown[] = [];
  for (const provider of ['google', 'google', 'github'] as const) {
    const { data } = await client.signInWithOAuth({ provider, options: { skipBrowserRedirect: true } });
    const landed = await visit(server, data.url);
    const token = new URLSearchParams(landed.hash.slice(1)).get('access_token') ?? '';
    const { data: found } = await client.getUser(token);
    ids.push(found.user?.id);
    if (provider === 'github') {
      t.same(found.user?.app_metadata, { provider: 'google', providers: ['google', 'github'] });
      t.equal(found.user?.identities?.length, 2, 'linked by the verified email');
    }
  }
  t.equal(new Set(ids).size, 1);
});

t.test('/settings lists enabled providers', async (t) => {
  const { server } = await startWithProviders(t);
  const { body } = await server.call('GET', '/settings');
  t.match(body, { external: { google: true, github: true } });
});

t.test('sign-ins are counted by provider and result', async (t) => {
  const unreachable = { issuer: 'http://127.0.0.1:9', client_id: 'app', client_secret: 'secret' };
  const { server, signIn, vendors } = await startWithProviders(t, {
    EXTERNAL_CUSTOM_PROVIDERS: JSON.stringify({ unreachable }),
    METRICS_ENABLED: 'true',
    METRICS_EXPORTER: 'pull',
    OTEL_EXPORTER_PULL_HOST: '127.0.0.1',
    OTEL_EXPORTER_PULL_PORT: '0',
  });
  await signIn('google');
  vendors.set('google', { callback: { error: 'access_denied' } });
  await signIn('google');
  vendors.set('google', { claims: {} });
  await signIn('google');
  await server.call('GET', '/authorize?provider=custom:unreachable');
  const url = /"url":"(http:\/\/127\.0\.0\.1:\d+\/)"/.exec(server.logs())?.[1] ?? '';
  const text = await (await fetch(url)).text();
  for (const result of ['ok', 'rejected', 'failed'])
    t.match(text, `auth_provider_sign_ins_total{provider="google",result="${result}"} 1`);
  t.match(text, 'auth_provider_sign_ins_total{provider="github",result="ok"} 0');
  t.match(text, 'auth_provider_sign_ins_total{provider="custom:unreachable",result="failed"} 1');
});
