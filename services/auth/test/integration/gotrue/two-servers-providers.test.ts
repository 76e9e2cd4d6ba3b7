// Two servers on one database take turns: sign-in at providers, identities and imported users.
import { hash as bcryptHash } from '@node-rs/bcrypt';
import t, { type Test } from 'tap';
import { toChallenge } from '../../../src/flows/pkce.ts';
import { adminToken } from '../../helpers/admin.ts';
import { signedIn, signUp } from '../../helpers/auth-server.ts';
import { Browser } from '../../helpers/browser.ts';
import { oidcUser, startOidcServer } from '../../helpers/oidc-server.ts';
import { startProviderServer } from '../../helpers/provider-server.ts';
import { apiUrl, githubUser, type Landed, land, siteUrl } from '../../helpers/provider-sign-in.ts';
import { type Flow, type NextServer, runInTurns, startServerPair } from '../../helpers/two-servers.ts';

const token = adminToken();
const verifier = 'v'.repeat(43);
const { challenge, method } = toChallenge(verifier);
const pkce = `&code_challenge=${challenge}&code_challenge_method=${method}`;
const vendors = await startProviderServer(t);

/** A browser whose every request reaches the next server. */
function newBrowser(next: NextServer): Browser {
  return new Browser({
    get [apiUrl]() {
      return next().url;
    },
  });
}

async function signIn(next: NextServer, provider: string, query = ''): Promise<Landed> {
  const start = `${apiUrl}/authorize?provider=${provider}${query}`;
  return land(await newBrowser(next).visit(start, siteUrl));
}

/** The user of an access token, as each of the servers answers it. */
async function checkUser(t: Test, next: NextServer, accessToken: unknown, expected: object): Promise<void> {
  for (const server of [next(), next()])
    t.match(await server.call('GET', '/user', { token: String(accessToken) }), {
      status: 200,
      body: expected,
    });
}

/** Another user of GitHub in each flow. */
let lastId = 40;
function setGithubUser(email: string): void {
  lastId += 1;
  vendors.set('github', githubUser(email, { id: lastId }));
}

const flows: Readonly<Record<string, Flow>> = {
  'sign-in at a provider': async (t, next, email) => {
    setGithubUser(email);
    const { fragment, url } = await signIn(next, 'github');
    t.ok(fragment.access_token, url.href);
    await checkUser(t, next, fragment.access_token, { email, app_metadata: { provider: 'github' } });
    const again = await signIn(next, 'github');
    await checkUser(t, next, again.fragment.access_token, { email, identities: { length: 1 } });
  },
  'sign-in at a provider with PKCE': async (t, next, email) => {
    setGithubUser(email);
    const { query } = await signIn(next, 'github', pkce);
    const exchange = { body: { auth_code: query.code, code_verifier: verifier } };
    const wrong = { body: { ...exchange.body, code_verifier: 'w'.repeat(43) } };
    t.equal((await next().call('POST', '/token?grant_type=pkce', wrong)).status, 400);
    const answer = await next().call('POST', '/token?grant_type=pkce', exchange);
    t.match(answer.body, { provider_token: 'provider-access-token' });
    await checkUser(t, next, signedIn(answer).accessToken, { email });
    t.equal((await next().call('POST', '/token?grant_type=pkce', exchange)).status, 404, 'once');
  },
  'sign-in with OpenID Connect': async (t, next) => {
    for (const query of ['', pkce]) {
      const { url } = await signIn(next, 'keycloak', query);
      t.match(url.href, query === '' ? '#access_token=' : '?code=');
    }
    const { fragment } = await signIn(next, 'keycloak');
    await checkUser(t, next, fragment.access_token, { email: oidcUser.email });
  },
  'identities are linked by email, and unlinked': async (t, next, email) => {
    const { accessToken, userId } = await signUp(next(), { email });
    setGithubUser(email);
    const { fragment } = await signIn(next, 'github');
    await checkUser(t, next, fragment.access_token, { id: userId, identities: { length: 2 } });
    const identities = await next().call('GET', '/user', { token: accessToken });
    // Parsed boundary: the form of a user, as the tests of the client library prove.
    const linked = identities.body.identities as readonly {
      readonly identity_id: string;
      readonly provider: string;
    }[];
    const github = linked.find(({ provider }) => provider === 'github');
    const path = `/user/identities/${github?.identity_id}`;
    t.equal((await next().call('DELETE', path, { token: accessToken })).status, 200);
    await checkUser(t, next, accessToken, {
      email,
      app_metadata: { providers: ['email'] },
      identities: { length: 1 },
    });
    signedIn(
      await next().call('POST', '/token?grant_type=password', { body: { email, password: 'correct horse' } }),
    );
  },
  'identity is linked by its user': async (t, next, email) => {
    const { accessToken } = await signUp(next(), { email });
    setGithubUser(`work-${email}`);
    // A ticket of this server is not known to GoTrue.
    const server = next();
    const ask = '/user/identities/authorize?provider=github&skip_http_redirect=true';
    const { body } = await server.call('GET', ask, { token: accessToken });
    const landed = land(await newBrowser(() => server).visit(String(body.url), siteUrl));
    t.ok(landed.fragment.access_token, landed.url.href);
    await checkUser(t, next, accessToken, { email, app_metadata: { providers: ['email', 'github'] } });
    const { fragment } = await signIn(next, 'github');
    await checkUser(t, next, fragment.access_token, { email });
  },
};

t.test('each step of a sign-in at a provider can reach either of two servers', async (t) => {
  const issuer = await startOidcServer(
    t,
    {
      client_id: 'app',
      client_secret: 'secret',
      redirect_uris: [`${apiUrl}/callback`],
      token_endpoint_auth_method: 'client_secret_post',
    },
    undefined,
    {
      pkce: { required: () => false },
      routes: {
        authorization: '/protocol/openid-connect/auth',
        token: '/protocol/openid-connect/token',
        userinfo: '/protocol/openid-connect/userinfo',
      },
    },
  );
  const pair = await startServerPair(t, {
    SECURITY_MANUAL_LINKING_ENABLED: 'true',
    EXTERNAL_GITHUB_ENABLED: 'true',
    EXTERNAL_GITHUB_CLIENT_ID: 'github-client',
    EXTERNAL_GITHUB_SECRET: 'github-secret',
    EXTERNAL_GITHUB_REDIRECT_URI: `${apiUrl}/callback`,
    EXTERNAL_GITHUB_URL: vendors.url('github'),
    EXTERNAL_KEYCLOAK_ENABLED: 'true',
    EXTERNAL_KEYCLOAK_CLIENT_ID: 'app',
    EXTERNAL_KEYCLOAK_SECRET: 'secret',
    EXTERNAL_KEYCLOAK_REDIRECT_URI: `${apiUrl}/callback`,
    EXTERNAL_KEYCLOAK_URL: issuer,
  });
  await runInTurns(t, pair, {
    ...flows,
    'imported user': async (t, next, email) => {
      const [kept, deleted] = [email, `deleted-${email}`];
      const hash = (await bcryptHash('correct horse', 4)).replace('$2b$', '$2a$');
      const users = [kept, deleted].map((address) => ({
        email: address,
        email_confirm: true,
        password_hash: hash,
        app_metadata: { plan: 'gold' },
      }));
      // GoTrue has no bulk import.
      const imported = await pair.own.call('POST', '/admin/users/import', {
        token,
        headers: { 'content-type': 'application/x-ndjson' },
        body: users.map((user) => JSON.stringify(user)).join('\n'),
      });
      t.match(imported, { status: 200, body: { imported: 2 } });
      const sessions = [];
      for (const address of [kept, deleted]) {
        const body = { email: address, password: 'correct horse' };
        sessions.push(signedIn(await next().call('POST', '/token?grant_type=password', { body })));
      }
      await checkUser(t, next, sessions[0]?.accessToken, { email: kept, app_metadata: { plan: 'gold' } });
      const path = `/admin/users/${sessions[1]?.userId}`;
      t.equal((await next().call('DELETE', path, { token, body: { should_soft_delete: true } })).status, 200);
      t.equal((await next().call('GET', '/user', { token: sessions[1]?.accessToken ?? '' })).status, 403);
      const body = { email: deleted, password: 'correct horse' };
      t.equal((await next().call('POST', '/token?grant_type=password', { body })).status, 400);
    },
  });
});
