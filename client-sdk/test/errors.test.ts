import { inspect } from 'node:util';
import t from 'tap';
import { AccessToken, Client, type ClientOptions, ConnectionError, OAuthClientError } from '../src/index.ts';
import { answer, recordingFetch, tokenAnswer } from './support/recording-fetch.ts';

const site = 'https://as.test';

function makeClient(options: ClientOptions<true>, ...answers: (() => Response)[]) {
  const { fetch, sent } = recordingFetch(...answers);
  return { client: new Client({ clientId: 'id', clientSecret: 's3cr3t-x', site, fetch, ...options }), sent };
}
const failureOf = async (work: Promise<unknown>): Promise<Error> =>
  await work.then(
    () => t.fail('no failure') as never,
    (error: Error) => error,
  );

/**
 * A forged log line, a terminal's escape, a bell, C1, DEL, right-to-left, a line separator, half a
 * pair.
 */
const hostile = 'ok\r\nERROR forged\u001b[2J\u0007\u009b\u007f\u202e\u2028\ud800';
const unprintable = /[\p{Cc}\p{Cs}\u2028\u202e]/u;

t.test('control characters of server texts are escaped in messages', async (t) => {
  const refuse = () => Response.json({ error: `bad${hostile}`, error_description: hostile }, { status: 400 });
  const { client } = makeClient({}, refuse);
  const error = await failureOf(client.clientCredentials.getToken());
  const [first = '', second = '', ...rest] = error.message.split('\n');
  t.notMatch(first, unprintable);
  t.notMatch(second, unprintable);
  t.same(rest, []);
  t.match(first, /ok\\u000d\\u000aERROR forged\\u001b\[2J/);
  t.match(error, { description: hostile }, 'programs get it as it came');
});

t.test('control characters of pages, callbacks, network errors and keys are escaped', async (t) => {
  const { client } = makeClient({}, answer(`<p>${hostile}`, 'text/html', 500));
  const page = await failureOf(client.request('GET', '/x'));
  const { transaction } = await client.authCode.startAuthorization({ redirect_uri: 'https://app.test/cb' });
  const params = new URLSearchParams({
    state: transaction.state,
    error: hostile,
    error_description: hostile,
  });
  const callback = await failureOf(client.authCode.completeAuthorization(params, transaction));
  const broken = new Client({ site, fetch: async () => Promise.reject(new Error(hostile)) });
  const network = await failureOf(broken.request('GET', '/x'));
  const { client: odd } = makeClient({}, tokenAnswer({ token_type: hostile }));
  const type = await failureOf(odd.clientCredentials.getToken());
  for (const error of [page, callback, network, type]) {
    t.ok(error instanceof OAuthClientError);
    for (const line of error.message.split('\n')) t.notMatch(line, unprintable);
    t.ok(error.message.split('\n').length <= 2, error.message);
  }
});

t.test('text that looks like an escape sequence is escaped', async (t) => {
  const { client } = makeClient({}, answer('a\\u000ab', 'text/plain', 500));
  t.match((await failureOf(client.request('GET', '/x'))).message, /\n.*a\\u000ab$/);
});

t.test('messages have a maximum length', async (t) => {
  const long = 'x'.repeat(1_000_000);
  const refuse = () => Response.json({ error: long, error_description: long }, { status: 400 });
  const { client } = makeClient({}, refuse);
  t.ok((await failureOf(client.clientCredentials.getToken())).message.length <= 2100);
  t.ok(new ConnectionError(long).message.length <= 2100);
});

t.test('404 names verb and URL, without the query', async (t) => {
  const { client } = makeClient({}, answer('<h1>Not Found', 'text/html', 404));
  const token = await failureOf(client.clientCredentials.getToken());
  t.match(
    token.message,
    /^POST https:\/\/as\.test\/oauth\/token: HTTP status 404; check the endpoint.s URL, or use discovery\n/,
  );
  const api = await failureOf(client.request('GET', '/x?access_token=s3cr3t'));
  t.match(api.message, /^GET https:\/\/as\.test\/x: HTTP status 404\n/);
  const { client: known } = makeClient({}, () => Response.json({ error: 'gone' }, { status: 404 }));
  t.match((await failureOf(known.request('GET', '/x'))).message, /^GET .*x: HTTP status 404, gone\n/);
});

const moved = () =>
  new Response('', { status: 308, headers: { location: 'https://new.test/token?code=s3cr3t' } });

t.test('a 308 of an endpoint is an error that names verb, URL and target', async (t) => {
  const { client, sent } = makeClient({}, moved);
  const message =
    /^POST https:\/\/as\.test\/oauth\/token: HTTP status 308, a redirect to https:\/\/new\.test\/token\?code=\[FILTERED\] that is not followed: configure the final URL$/;
  await t.rejects(client.clientCredentials.getToken(), { name: 'TokenResponseError', status: 308, message });
  const failed = await client.clientCredentials.getToken({}, { throwOnError: false });
  t.match(failed, { ok: false, error: { message } });
  t.equal(sent.length, 2);
});

t.test('a redirected revocation is an error', async (t) => {
  const revocations: unknown[] = [];
  const { client } = makeClient({ hooks: { onRevoke: (event) => void revocations.push(event) } }, moved);
  await t.rejects(client.revokeToken('t'), {
    name: 'RevocationError',
    message: /oauth\/revoke: HTTP status 308/,
  });
  t.same(revocations, []);
});

t.test('a 308 of an API is returned', async (t) => {
  const { client } = makeClient({}, moved);
  t.equal((await client.request('GET', '/x')).status, 308);
});

for (const [what, token] of [
  ['a line break', 's3cr3t-token\n'],
  ['a null', 's3cr3t\u0000token'],
  ['a letter beyond ASCII', 's3cr3t-tökén'],
  ['half a pair', 's3cr3t\ud800'],
] as const) {
  t.test(`a token with ${what} is a ConfigurationError that does not show it`, async (t) => {
    const { client, sent } = makeClient({}, () => Response.json({}));
    for (const mode of ['header', 'query', 'body'] as const) {
      const access = AccessToken.fromHash(client, { access_token: token, mode });
      const failures = [
        await failureOf(access.post('/x')),
        await failureOf(access.fetch('/x', { method: 'POST' })),
        await failureOf((async () => access.headers())()),
      ];
      for (const error of failures) {
        t.equal(error.name, 'ConfigurationError');
        t.match(error.message, /token has invalid characters/);
        t.notMatch(inspect(error, { depth: 10, showHidden: true }), /s3cr3t/);
      }
    }
    t.same(sent, []);
  });
}

t.test('values of invalid headers are not shown', async (t) => {
  const { client, sent } = makeClient({}, () => Response.json({}));
  const headers = { 'x-key': 's3cr3t\nx' };
  const token = AccessToken.fromHash(client, { access_token: 'at' });
  const formatted = AccessToken.fromHash(client, { access_token: 'at' }, { formatHeader: () => 's3cr3t\nx' });
  for (const work of [
    client.request('GET', '/x', { headers }),
    client.clientCredentials.getToken({}, { headers }),
    token.get('/x', { headers }),
    token.fetch('/x', { headers }),
    formatted.get('/x'),
    formatted.fetch('/x'),
    (async () => new Client({ requestInit: { headers } }))(),
  ]) {
    const error = await failureOf(work);
    t.equal(error.name, 'ConfigurationError');
    t.notMatch(inspect(error, { depth: 10, showHidden: true }), /s3cr3t/);
  }
  t.same(sent, []);
});

t.test('a password in a URL is not shown', async (t) => {
  const { client, sent } = makeClient({}, () => Response.json({}));
  const url = 'https://ada:s3cr3t@as.test/x';
  for (const work of [
    client.request('GET', url),
    AccessToken.fromHash(client, { access_token: 'at' }).fetch(url),
    new Client({ ...{ clientId: 'id', tokenEndpoint: url } }).clientCredentials.getToken(),
  ]) {
    const error = await failureOf(work);
    t.equal(error.name, 'ConfigurationError');
    t.notMatch(inspect(error, { depth: 10, showHidden: true }), /s3cr3t/);
  }
  t.same(sent, []);
});
