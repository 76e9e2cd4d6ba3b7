// A sign-in at a provider that GoTrue continues, or has started, on the same database.
import { randomUUID } from 'node:crypto';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { Browser } from '../helpers/browser.ts';
import { startProviderServer } from '../helpers/provider-server.ts';
import { apiUrl, land, startWithProviders, stopAtCallback } from '../helpers/provider-sign-in.ts';

const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';
const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
const pkce = `&code_challenge=${challenge}&code_challenge_method=s256`;
const redirectTo = 'https://example.com/welcome';

async function start(t: Test) {
  const running = await startWithProviders(t, { DB_SHARED_WITH_GOTRUE: 'true' });
  const sql = postgres(running.server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const hosts = { [apiUrl]: running.server.url };
  return { ...running, sql, hosts, browser: new Browser(hosts) };
}

/** Opens a callback and returns where it leads. */
async function openCallback(browser: Browser, url: URL) {
  const { headers } = await browser.open(url.href);
  return land(new URL(headers.get('location') ?? ''));
}

t.test('GoTrue finds the flow of a sign-in that was started here, by its state', async (t) => {
  const { server, browser, sql, vendors } = await start(t);
  for (const [query, codeChallenge] of [
    ['', ''],
    [pkce, challenge],
  ] as const) {
    const callback = await stopAtCallback(browser, 'github', `${query}&redirect_to=${redirectTo}`);
    const state = callback.searchParams.get('state') ?? '';
    t.match(await sql`select * from auth.flow_state where id = ${state}`, [
      {
        provider_type: 'github',
        authentication_method: 'oauth',
        user_id: null,
        auth_code: /^[0-9a-f-]{36}$/,
        code_challenge: codeChallenge,
        code_challenge_method: 's256',
        referrer: redirectTo,
        oauth_client_state_id: null,
        email_optional: false,
      },
    ]);
    const sent = vendors.requests('github').filter(({ path }) => path === '/login/oauth/authorize');
    t.equal(sent.at(-1)?.query.has('code_challenge'), false, 'GoTrue would not know the verifier');
  }
  t.equal((await server.call('GET', '/ready')).status, 200);
});

t.test('a flow that GoTrue has started is completed here', async (t) => {
  const { server, browser, sql, hosts } = await start(t);
  const gotrueFlow = async (state: string, codeChallenge: string | null) => {
    await sql`insert into auth.flow_state ${sql({
      id: state,
      auth_code: codeChallenge && randomUUID(),
      code_challenge: codeChallenge,
      code_challenge_method: codeChallenge && 's256',
      provider_type: 'github',
      provider_access_token: '',
      provider_refresh_token: '',
      authentication_method: 'oauth',
      referrer: redirectTo,
      created_at: new Date(server.clock.nowMs()),
      updated_at: new Date(server.clock.nowMs()),
    })}`;
    const callback = await stopAtCallback(browser, 'github');
    callback.searchParams.set('state', state);
    return callback;
  };
  const implicit = await openCallback(new Browser(hosts), await gotrueFlow(randomUUID(), null));
  t.ok(implicit.fragment.access_token, implicit.url.href);
  t.ok(implicit.url.href.startsWith(redirectTo));

  const { query } = await openCallback(new Browser(hosts), await gotrueFlow(randomUUID(), challenge));
  const exchange = { auth_code: query.code, code_verifier: verifier };
  t.equal((await server.call('POST', '/token?grant_type=pkce', { body: exchange })).status, 200);
});

t.test('state of this server is bound to the browser, that of an unknown flow is rejected', async (t) => {
  const { browser, hosts, sql } = await start(t);
  const callback = await stopAtCallback(browser, 'github');
  const badState = { error_code: 'bad_oauth_state' };
  t.match(await openCallback(new Browser(hosts), callback), { query: badState }, 'no cookie');
  const other = new Browser(hosts);
  await stopAtCallback(other, 'github');
  t.match(await openCallback(other, callback), { query: badState }, 'cookie of another browser');
  const unknown = new URL(callback);
  unknown.searchParams.set('state', randomUUID());
  t.match(await openCallback(browser, unknown), { query: badState });
  // The version of the state cannot be changed into that of GoTrue.
  const disguised = new URL(callback);
  const state = callback.searchParams.get('state') ?? '';
  disguised.searchParams.set('state', `${state.slice(0, 14)}4${state.slice(15)}`);
  t.match(await openCallback(new Browser(hosts), disguised), { query: badState });
  t.ok((await openCallback(browser, callback)).fragment.access_token);
  t.same([...(await sql`select 1 from auth.oauth_client_states`)], []);
});

t.test('verifier is stored for GoTrue if it uses PKCE with the provider', async (t) => {
  const vendors = await startProviderServer(t);
  vendors.set('x', {
    authorizationPath: '/i/oauth2/authorize',
    tokenPath: '/2/oauth2/token',
    payloads: { '/2/users/me': { data: { id: '7', username: 'ada', confirmed_email: 'ada@example.com' } } },
  });
  const { server } = await startWithProviders(t, {
    DB_SHARED_WITH_GOTRUE: 'true',
    EXTERNAL_X_ENABLED: 'true',
    EXTERNAL_X_CLIENT_ID: 'x-client',
    EXTERNAL_X_SECRET: 'x-secret',
    EXTERNAL_X_URL: vendors.url('x'),
  });
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const browser = new Browser({ [apiUrl]: server.url });
  const callback = await stopAtCallback(browser, 'x');
  t.match(
    await sql`select v.provider_type, v.code_verifier from auth.oauth_client_states v
      join auth.flow_state f on f.oauth_client_state_id = v.id where f.id = ${callback.searchParams.get('state')}`,
    [{ provider_type: 'x', code_verifier: /^[\w-]{43}$/ }],
  );
  const landed = await openCallback(browser, callback);
  t.ok(landed.fragment.access_token, landed.url.href);
  t.same([...(await sql`select 1 from auth.oauth_client_states`)], [], 'spent');
});
