// How often a request asks the database: each time is a wait for the client, and work for the part
// that all replicas share.
import { StartReport } from '@tollgate/kit/start-report';
import { startTracing } from '@tollgate/kit/telemetry';
import t from 'tap';
import { ApiServer } from '../../src/app/server.ts';
import { countingServices } from '../helpers/counting-services.ts';
import { startProviderServer } from '../helpers/provider-server.ts';
import { githubUser } from '../helpers/provider-sign-in.ts';

const emptyParts = {
  report: new StartReport({ service: 'auth', version: '', spec: {}, sources: { env: {} } }),
  signingKeys: { describe: () => ({ variable: '', keys: [] }) },
};

t.test('requests use the minimum number of statements', async (t) => {
  const vendors = await startProviderServer(t);
  vendors.set('github', githubUser('carol@example.com'));
  const { services, during } = await countingServices(t, {
    SVC_EXTERNAL_GITHUB_ENABLED: 'true',
    SVC_EXTERNAL_GITHUB_CLIENT_ID: 'client',
    SVC_EXTERNAL_GITHUB_URL: vendors.url('github'),
    SVC_API_HOST: '127.0.0.1',
    PORT: '0',
    SVC_MAILER_AUTOCONFIRM: 'true',
    // Only refreshes that follow each other within a few milliseconds are counted then.
    SVC_RATE_LIMIT_REFRESHES_PER_SESSION: '100000',
  });
  const tracing = await startTracing({
    serviceName: 'auth',
    enabled: false,
    protocol: 'http',
    samplingRate: 1,
  });
  const api = new ApiServer({ ...services, ...emptyParts }, { tracing, registry: undefined });
  const port = await api.start();
  t.teardown(() => api.stop(AbortSignal.timeout(0)));

  async function call(method: string, path: string, { token = '', body = {} } = {}) {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(method === 'GET' ? {} : { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(await answer.text());
    // Parsed boundary: a session, where the answer is one.
    return JSON.parse((await answer.text()) || '{}') as { access_token: string; refresh_token: string };
  }
  /** Follows one redirect, as a browser that started a sign-in. */
  async function follow(url: string): Promise<string> {
    const headers = { cookie: `__Host-tollgate-sign-in=${'s'.repeat(43)}` };
    const { pathname, search } = new URL(url, 'http://host');
    const { origin } = url.startsWith(vendors.url('github'))
      ? new URL(url)
      : new URL(`http://127.0.0.1:${port}`);
    const answer = await fetch(`${origin}${pathname}${search}`, { headers, redirect: 'manual' });
    return answer.headers.get('location') ?? '';
  }
  const authorize = '/authorize?provider=github';
  const callback = async () => follow(await follow(authorize));
  const [newUser, knownUser] = [await callback(), await callback()];
  const ada = { email: 'ada@example.com', password: 'correct horse' };
  const { access_token: token, refresh_token } = await call('POST', '/signup', { body: ada });

  for (const [statements, name, action] of [
    [0, 'health', () => call('GET', '/health')],
    [0, 'keys', () => call('GET', '/.well-known/jwks.json')],
    [1, 'the user', () => call('GET', '/user', { token })],
    // One is for the limits of guesses, and one a day notes the network.
    [4, 'the first sign-in of the day', () => call('POST', '/token?grant_type=password', { body: ada })],
    [3, 'a sign-in', () => call('POST', '/token?grant_type=password', { body: ada })],
    [2, 'a refresh', () => call('POST', '/token?grant_type=refresh_token', { body: { refresh_token } })],
    [2, 'a change of metadata', () => call('PUT', '/user', { token, body: { data: { a: 1 } } })],
    // One is for the limit of the contact.
    [4, 'a sign-up', () => call('POST', '/signup', { body: { ...ada, email: 'bob@example.com' } })],
    [1, 'the start of a sign-in at a provider', () => follow(authorize)],
    [5, 'the first sign-in at a provider', () => follow(newUser)],
    [4, 'a sign-in at a provider', () => follow(knownUser)],
    [2, 'a sign-out', () => call('POST', '/logout', { token })],
  ] as const) {
    const { work, outcome } = await during(action);
    if (outcome instanceof Error) throw outcome;
    t.equal(work.statements, statements, name);
  }
});
