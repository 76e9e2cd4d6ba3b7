import { inspect } from 'node:util';
import t from 'tap';
import { AccessToken, Client, type ClientOptions } from '../../src/index.ts';
import { dump } from '../../src/key-case.ts';
import { answer, recordingFetch, tokenAnswer } from '../support/recording-fetch.ts';

const secret = 's3cr3t-client';
const site = 'https://as.test';

function makeClient(options: ClientOptions<true>, ...answers: (() => Response)[]) {
  const { fetch } = recordingFetch(...answers);
  return new Client({ clientId: 'id', clientSecret: secret, site, fetch, ...options });
}

const printings: readonly [string, (value: unknown) => string][] = [
  ['inspection', (value) => inspect(value, { depth: 10 })],
  [
    'inspection with getters and hidden properties',
    (value) => inspect(value, { depth: 10, showHidden: true, getters: true }),
  ],
  ['JSON', (value) => JSON.stringify(value)],
  [
    'text',
    (value) => (typeof value === 'object' && value !== null && !('toString' in value) ? '' : String(value)),
  ],
];

for (const [name, print] of printings) {
  t.test(`${name} shows no secret of client, token, response or error`, async (t) => {
    const client = makeClient(
      { requestInit: { headers: { 'x-api-key': 's3cr3t-key' } } },
      tokenAnswer({ access_token: 's3cr3t-at', refresh_token: 's3cr3t-rt', id_token: 's3cr3t-it' }),
    );
    const token = await client.clientCredentials.getToken();
    const { settings } = client;
    const printed = [
      client,
      token,
      token.response,
      token.response?.parsed,
      settings,
      settings.requestInit.headers,
    ];
    for (const value of [...printed, { nested: { client, token, settings } }])
      t.notMatch(print(value), /s3cr3t/);
    const refusing = makeClient({}, () =>
      Response.json(
        {
          error: 'invalid_grant',
          error_description: `${secret} and s3cr3t-pw are wrong`,
          access_token: 's3cr3t-x',
        },
        { status: 400 },
      ),
    );
    const error = await refusing.password.getToken('ada', 's3cr3t-pw').catch((thrown: unknown) => thrown);
    t.notMatch(print(error), /s3cr3t/);
  });
}

t.test('a page that repeats the credentials is masked in the message', async (t) => {
  const basic = btoa(`id:${secret}`);
  const client = makeClient(
    {},
    answer(`<pre>Authorization: Basic ${basic} refresh_token=s3cr3t-rt</pre>`, 'text/html', 500),
  );
  const error = await client.clientCredentials.getToken().catch((thrown: unknown) => thrown);
  t.notMatch(inspect(error), new RegExp(`s3cr3t|${basic}`));
  t.match(inspect(error), /\[FILTERED\]/);
});

t.test('a message quotes at most 512 characters of the body', async (t) => {
  const client = makeClient({}, answer('x'.repeat(10_000), 'text/plain', 500));
  const error = await client.request('GET', '/x').catch((thrown: unknown) => thrown);
  t.ok(String(error).length < 600);
});

t.test('an error code that contains a password is not masked', async (t) => {
  const client = makeClient({}, () => Response.json({ error: 'invalid_grant' }, { status: 400 }));
  await t.rejects(client.password.getToken('ada', 'grant'), { code: 'invalid_grant' });
});

function debugged(options: ClientOptions<true>, ...answers: (() => Response)[]) {
  const lines: string[] = [];
  const client = makeClient(
    { debug: true, logger: { info: (line) => void lines.push(line) }, ...options },
    ...answers,
  );
  return { client, lines };
}

t.test('debug output contains requests and responses, with secrets masked by structure', async (t) => {
  const { client, lines } = debugged(
    {},
    tokenAnswer({ access_token: 's3cr3t-at', refresh_token: 12345678, nested: { password: 's3cr3t' } }),
  );
  await client.authCode.getToken('s3cr3t-code', {
    code_verifier: 's3cr3t-v',
    scope: 'a',
    client_assertion: 's3cr3t-a',
  });
  const text = lines.join('\n');
  t.match(text, /^request: POST https:\/\/as\.test\/oauth\/token$/m);
  t.match(text, /authorization: "\[FILTERED\]"/);
  t.match(text, /code=\[FILTERED\]/);
  t.match(text, /scope=a/);
  t.match(text, /^response: Status 200$/m);
  t.match(text, /"refresh_token":"\[FILTERED\]"/);
  t.notMatch(text, /s3cr3t|12345678/);
});

t.test('debug output is bounded, and its lines cannot be forged', async (t) => {
  const text = `a\u001b[2J\nresponse: Status 200${'x'.repeat(100_000)}`;
  const { client, lines } = debugged({}, answer(text, 'text/plain', 500));
  await t.rejects(client.request('POST', '/x', { body: 'b\nrequest: GET /y' }), { name: 'OAuthError' });
  for (const line of lines.filter((line) => line.includes('a\\u001b') || line.includes('b\\u000a'))) {
    t.notMatch(line, /\n/);
    t.ok(line.length < 70_000);
  }
  t.equal(lines.filter((line) => /Status 200xxx|GET \/y/.test(line)).length, 2);
});

t.test('label and additional secret names are configurable', async (t) => {
  const { client, lines } = debugged({ redact: { label: '***', keys: ['ssn'] } }, () =>
    Response.json({ ssn: '123-45-6789' }),
  );
  await client.request('GET', '/x', { query: { ssn: '123-45-6789' } });
  t.notMatch(lines.join('\n'), /123-45/);
  t.match(lines.join('\n'), /ssn=\*\*\*/);
});

t.test('cookies and tokens in redirects are masked in debug output', async (t) => {
  const headers = {
    'set-cookie': 'id=s3cr3t',
    location: 'https://x.test/cb?code=s3cr3t#access_token=s3cr3t',
  };
  const { client, lines } = debugged({ maxRedirects: 0 }, () => new Response('', { status: 302, headers }));
  await client.request('GET', '/x');
  t.notMatch(lines.join('\n'), /s3cr3t/);
});

t.test('an unreadable environment is ignored', async (t) => {
  const before = process.env;
  t.teardown(() => {
    process.env = before;
  });
  process.env = new Proxy(before, {
    get() {
      throw new Error('Requires env access');
    },
  });
  t.equal(new Client({ clientId: 'id', site: 'https://as.test' }).settings.debugLogger, undefined);
});

t.test('OAUTH_DEBUG=true enables debug output, case-insensitive, read once per client', async (t) => {
  const before = process.env.OAUTH_DEBUG;
  t.teardown(() => {
    if (before === undefined) delete process.env.OAUTH_DEBUG;
    else process.env.OAUTH_DEBUG = before;
  });
  const lines: string[] = [];
  const logger = { info: (line: string) => void lines.push(line) };
  process.env.OAUTH_DEBUG = 'TRUE';
  const loud = makeClient({ logger }, () => Response.json({}));
  process.env.OAUTH_DEBUG = 'false';
  const quiet = makeClient({ logger }, () => Response.json({}));
  await quiet.request('GET', '/x');
  t.equal(lines.length, 0);
  await loud.request('GET', '/x');
  t.ok(lines.length > 0);
});

t.test('a token is sent to the site, the authorization server and the allowed origins only', async (t) => {
  const client = makeClient(
    { tokenEndpoint: 'https://maker.test/token', allowedOrigins: ['https://api.test'] },
    () => Response.json({}),
  );
  const token = AccessToken.fromHash(client, { access_token: 's3cr3t-at' });
  for (const url of ['/x', 'https://as.test/x', 'https://maker.test/me', 'https://api.test/x'])
    await token.get(url);
  for (const url of [
    'https://evil.test/x',
    'https://api.test.evil.test/x',
    'https://api.test:444/x',
    'http://as.test/x',
  ]) {
    await t.rejects(token.get(url), { name: 'ConfigurationError', message: /allowed|allowInsecure/ });
    await t.rejects(token.fetch(url), { name: 'ConfigurationError' });
  }
});

t.test('printing a token response shows names and times, dump writes all of it', async (t) => {
  const client = makeClient({}, tokenAnswer({ access_token: 's3cr3t-at', expires_in: 60 }));
  const { response } = await client.clientCredentials.getToken();
  t.match(JSON.parse(JSON.stringify(response?.parsed)), { access_token: '[FILTERED]', expires_in: 60 });
  t.match(response?.parsed, { access_token: 's3cr3t-at' });
  t.match(dump(response?.parsed), /s3cr3t-at/);
});
