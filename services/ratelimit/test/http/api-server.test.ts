import { request as sendRequest } from 'node:http';
import { connect } from 'node:net';
import { Health } from '@tollgate/kit/health';
import { createLogger } from '@tollgate/kit/logger';
import type { Test } from 'tap';
import t from 'tap';
import type { RateLimitRequest } from '../../src/decision/wire/request.ts';
import { backendFailure } from '../../src/errors.ts';
import { createApiServer } from '../../src/http/api-server.ts';
import { startApp } from '../support/start-app.ts';

const rules = {
  'demo.yaml': `
domain: demo
descriptors:
  - key: tenant
    rate_limit: { name: per-tenant, unit: minute, requests_per_unit: 2 }
  - key: free
    rate_limit: { unlimited: true }
  - key: closed
    rate_limit: { unit: day, requests_per_unit: 0 }
  - key: watched
    shadow_mode: true
    rate_limit: { unit: day, requests_per_unit: 0 }
`,
};

interface Answer {
  readonly status: number;
  readonly type: string | undefined;
  readonly text: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

interface Question {
  readonly method?: string;
  readonly path?: string;
  readonly body?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request as it is given: `fetch` would refuse some of them. */
function send(port: number, question: Question = {}): Promise<Answer> {
  const { method = 'POST', path = '/json', body, headers: given = {} } = question;
  // Node's client announces no body of a DELETE.
  const length = 'transfer-encoding' in given ? {} : { 'content-length': Buffer.byteLength(body ?? '') };
  const headers = { ...length, ...given };
  return new Promise((resolve, reject) => {
    const request = sendRequest(
      { host: '127.0.0.1', port, method, path, headers, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            type: response.headers['content-type'],
            text: Buffer.concat(chunks).toString(),
            headers: response.headers,
          }),
        );
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

const question = (...entries: Readonly<Record<string, string>>[]): string =>
  JSON.stringify({
    domain: 'demo',
    descriptors: entries.map((pairs) => ({
      entries: Object.entries(pairs).map(([key, value]) => ({ key, value })),
    })),
  });

t.test('answers 200 with what remains, then 429, in proto3 JSON', async (t) => {
  const { ports } = await startApp(t, {
    rules,
    env: { LIMIT_RESPONSE_HEADERS_ENABLED: 'true' },
    nowMs: () => 1_000_000_500,
  });
  const ask = () => send(ports.http, { body: question({ tenant: 'a' }, { unknown: 'x' }) });
  const currentLimit = { requestsPerUnit: 2, unit: 'MINUTE', name: 'per-tenant' };
  const first = await ask();
  t.equal(first.status, 200);
  t.equal(first.type, 'application/json');
  t.strictSame(JSON.parse(first.text), {
    overallCode: 'OK',
    statuses: [{ code: 'OK', currentLimit, limitRemaining: 1, durationUntilReset: '20s' }, { code: 'OK' }],
    responseHeadersToAdd: [
      { key: 'RateLimit-Limit', value: '2' },
      { key: 'RateLimit-Remaining', value: '1' },
      { key: 'RateLimit-Reset', value: '20' },
    ],
  });
  await ask();
  const third = await ask();
  t.equal(third.status, 429);
  t.match(JSON.parse(third.text), {
    overallCode: 'OVER_LIMIT',
    statuses: [{ code: 'OVER_LIMIT', currentLimit, durationUntilReset: '20s' }, { code: 'OK' }],
  });
});

t.test('zero is omitted, and unlimited is the maximum', async (t) => {
  const { ports } = await startApp(t, { rules, nowMs: () => 86_400_000 });
  const { status, text } = await send(ports.http, { body: question({ free: '' }, { closed: '' }) });
  t.equal(status, 429);
  t.strictSame(JSON.parse(text), {
    overallCode: 'OVER_LIMIT',
    statuses: [
      { code: 'OK', limitRemaining: 4_294_967_295 },
      { code: 'OVER_LIMIT', currentLimit: { unit: 'DAY' }, durationUntilReset: '86400s' },
    ],
  });
});

t.test('shadow mode of a rule is OK; global shadow mode is OK overall and keeps the statuses', async (t) => {
  const quiet = await startApp(t, { rules });
  const watched = await send(quiet.ports.http, { body: question({ watched: '' }) });
  t.equal(watched.status, 200);
  t.match(JSON.parse(watched.text), { overallCode: 'OK', statuses: [{ code: 'OK' }] });

  const shadow = await startApp(t, { rules, env: { SHADOW_MODE: 'true' } });
  const closed = await send(shadow.ports.http, { body: question({ closed: '' }) });
  t.equal(closed.status, 200);
  t.match(JSON.parse(closed.text), { overallCode: 'OK', statuses: [{ code: 'OVER_LIMIT' }] });
});

t.test('invalid requests are a Bad Request with the reason', async (t) => {
  const { ports, logLines } = await startApp(t, { rules });
  const nested = '['.repeat(200_000);
  const bodies: Readonly<Record<string, string | Uint8Array | undefined>> = {
    'no body': undefined,
    'an empty body': '',
    'no JSON': '{"domain":',
    'JSON that is no object': '[]',
    null: 'null',
    'two objects': `${question({ tenant: 'a' })}{}`,
    'an unknown field': '{"domain":"demo","descriptors":[{"entries":[]}],"more":1}',
    'an unknown field deep inside': '{"domain":"demo","descriptors":[{"entries":[{"key":"a","val":"b"}]}]}',
    'a domain that is a number': '{"domain":1,"descriptors":[{}]}',
    'descriptors that are an object': '{"domain":"demo","descriptors":{}}',
    'a negative hitsAddend': '{"domain":"demo","descriptors":[{}],"hitsAddend":-1}',
    'a hitsAddend with a fraction': '{"domain":"demo","descriptors":[{}],"hitsAddend":1.5}',
    'a hitsAddend beyond 32 bits': '{"domain":"demo","descriptors":[{}],"hitsAddend":4294967296}',
    'an unknown unit': '{"domain":"demo","descriptors":[{"limit":{"requestsPerUnit":1,"unit":"FORTNIGHT"}}]}',
    'an override without a unit': '{"domain":"demo","descriptors":[{"limit":{"requestsPerUnit":1}}]}',
    'an empty domain': '{"descriptors":[{"entries":[{"key":"a"}]}]}',
    'no descriptors': '{"domain":"demo"}',
    'a name of the prototype': '{"__proto__":{"domain":"demo"}}',
    'deep nesting': nested,
    'deep nesting in a known field': `{"domain":"demo","descriptors":${nested}`,
    'a lone surrogate': String.raw`{"domain":"demo","descriptors":[{"entries":[{"key":"tenant","value":"\ud800"}]}]}`,
    'a byte order mark': Buffer.from(`\ufeff${question({ tenant: 'a' })}`),
    'text that is not UTF-8': Buffer.from([...Buffer.from('{"domain":"'), 0xff, ...Buffer.from('"}')]),
  };
  for (const [what, body] of Object.entries(bodies)) {
    const answer = await send(ports.http, body === undefined ? {} : { body });
    t.equal(answer.status, 400, what);
    t.match(answer.text, /^Bad Request: [^\n]{10,500}\n$/, what);
    t.equal(answer.type, 'text/plain; charset=utf-8', what);
    t.equal(answer.headers['x-content-type-options'], 'nosniff', what);
  }
  const reasons = logLines.filter((line) => line['@message'] === 'json request refused');
  const texts = reasons.map(({ err }) => JSON.stringify(err));
  // A machine that takes longer than a second logs some again.
  t.ok(new Set(texts).size > 10, 'each reason is logged');
  t.match(JSON.stringify(reasons), /rate limit domain must not be empty/);
  const { text } = await send(ports.http, { body: bodies['an empty domain'] ?? '' });
  t.equal(text, 'Bad Request: rate limit domain must not be empty\n');
  t.equal((await send(ports.http, { body: question({ tenant: 'a' }) })).status, 200);
});

t.test('a body of more than 1 MiB is rejected, with or without content-length', async (t) => {
  const { ports } = await startApp(t, { rules });
  const body = JSON.stringify({ domain: 'x'.repeat(1024 * 1024), descriptors: [{}] });
  t.equal((await send(ports.http, { body })).status, 400);
  t.equal((await send(ports.http, { body, headers: { 'transfer-encoding': 'chunked' } })).status, 400);
});

t.test('without rules, and while the store fails, requests are a Bad Request with the reason', async (t) => {
  const empty = await startApp(t, { rules: { 'bad.yaml': 'domain: ""' } });
  const answer = await send(empty.ports.http, { body: question({ tenant: 'a' }) });
  t.strictSame([answer.status, answer.text], [400, 'Bad Request: no rate limit configuration loaded\n']);

  const port = await startApi(t, () => Promise.reject(backendFailure('no connection to Redis: refused')));
  const failed = await send(port, { body: question({ tenant: 'a' }) });
  t.strictSame([failed.status, failed.text], [400, 'Bad Request: no connection to Redis: refused\n']);
});

t.test('an unexpected error is a 500 that does not disclose it', async (t) => {
  const port = await startApi(t, () => Promise.reject(new Error('a bug')));
  const failed = await send(port, { body: question({ tenant: 'a' }) });
  t.equal(failed.status, 500);
  t.match(failed.text, /^Internal Server Error: .*the log of the service has the reason\n$/);
  t.notMatch(failed.text, 'a bug');
  t.equal(failed.headers['x-content-type-options'], 'nosniff');
});

t.test('content type and transfer encoding do not matter', async (t) => {
  const { ports } = await startApp(t, { rules });
  const body = question({ free: '' });
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'no type', '', 'a/b; c="']) {
    const answer = await send(ports.http, { body, headers: { 'content-type': type } });
    t.equal(answer.status, 200, type);
  }
  t.equal((await send(ports.http, { body, headers: { 'transfer-encoding': 'chunked' } })).status, 200);
});

t.test('any method that has a body is answered; GET and HEAD have none', async (t) => {
  const { ports } = await startApp(t, { rules });
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    t.equal((await send(ports.http, { method, body: question({ free: '' }) })).status, 200, method);
  }
  const get = await send(ports.http, { method: 'GET' });
  t.equal(get.status, 400);
  t.match(get.text, /^Bad Request: the request is not a RateLimitRequest/);
  const head = await send(ports.http, { method: 'HEAD' });
  t.strictSame([head.status, head.text], [400, '']);
});

t.test(
  'reads snake_case and camelCase, enums by name and number, hitsAddend as text and number',
  async (t) => {
    const rateLimitRequests: RateLimitRequest[] = [];
    const port = await startApi(t, (request) => {
      rateLimitRequests.push(request);
      return Promise.resolve({ overallCode: 1, statuses: [], responseHeaders: [] });
    });
    const bodies = [
      '{"domain":"d","hits_addend":3,"descriptors":[{"hits_addend":"7","limit":{"requests_per_unit":5,"unit":"HOUR"}}]}',
      '{"domain":"d","hitsAddend":"3","descriptors":[{"hitsAddend":7,"limit":{"requestsPerUnit":"5","unit":3}}]}',
    ];
    for (const body of bodies) {
      t.equal((await send(port, { body })).status, 200);
    }
    for (const request of rateLimitRequests) {
      t.match(request, {
        domain: 'd',
        hitsAddend: 3,
        descriptors: [{ hitsAddend: 7n, limit: { requestsPerUnit: 5, unit: 3 } }],
      });
    }
    t.equal(rateLimitRequests.length, 2);
  },
);

t.test('/healthcheck is OK or an empty 500, for HEAD too', async (t) => {
  const { ports, app } = await startApp(t, { rules });
  const ask = (method: string) => send(ports.http, { method, path: '/healthcheck' });
  const get = await ask('GET');
  t.strictSame([get.status, get.text, get.type], [200, 'OK', 'text/plain; charset=utf-8']);
  t.equal((await ask('HEAD')).status, 200);
  app.health.component('test', { healthy: false });
  const ill = await ask('GET');
  t.strictSame([ill.status, ill.text], [500, '']);
  t.equal((await ask('HEAD')).status, 500);
});

t.test('other paths are not found', async (t) => {
  const { ports } = await startApp(t, { rules });
  for (const path of ['/', '/json/', '/JSON', '/healthcheck/x', '/../json']) {
    const answer = await send(ports.http, { path, body: '{' });
    t.equal(answer.status, 404, path);
    t.equal(answer.text, '404 page not found\n', path);
  }
});

t.test('a path that is not a URL is a bad request', async (t) => {
  const { ports } = await startApp(t, { rules });
  t.equal((await send(ports.http, { path: '/%zz', body: '{' })).status, 400);
});

t.test('invalid HTTP does not end the service', async (t) => {
  const { ports } = await startApp(t, { rules });
  for (const bytes of [
    '\u0000\u0001\r\n\r\n',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'GET / HTTP/9.9\r\n\r\n',
  ]) {
    await new Promise<void>((resolve) => {
      const socket = connect(ports.http, '127.0.0.1', () => socket.write(bytes));
      socket.on('error', () => undefined);
      socket.on('close', () => resolve());
      socket.resume();
    });
  }
  t.equal((await send(ports.http, { method: 'GET', path: '/healthcheck' })).status, 200);
});

/** The API alone, with a decision of the test's own. */
async function startApi(t: Test, decide: Parameters<typeof createApiServer>[0]['decide']): Promise<number> {
  const logger = createLogger({ level: 'fatal', format: 'text' });
  const server = createApiServer({ decide, health: new Health(), logger }, { host: '127.0.0.1', port: 0 });
  t.teardown(() => server.stop(new AbortController().signal));
  return await server.start();
}
