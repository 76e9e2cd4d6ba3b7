import { createLogger } from '@tollgate/kit/logger';
import { startWebServer } from '@tollgate/testkit/web-server';
import postgres from 'postgres';
import { Registry } from 'prom-client';
import t, { type Test } from 'tap';
import { readSettings } from '../../src/config/settings.ts';
import { HookCaller } from '../../src/hooks/caller.ts';
import { defaultHttpLimits, type HttpLimits } from '../../src/hooks/http.ts';
import { systemRandomness } from '../../src/keys/secrets.ts';
import { Metrics } from '../../src/metrics.ts';
import { expectedSignature, hookSecret, startHookServer } from '../helpers/hook-server.ts';

const first = hookSecret('a');
const second = hookSecret('b');
const nowMs = Date.UTC(2026, 0, 31, 12);

/** Calls a hook that can reject, with short pauses between attempts. */
function createCaller(t: Test, uri: string, limits: Partial<HttpLimits> = {}) {
  const read = readSettings({
    SVC_SITE_URL: 'https://example.com',
    SVC_API_EXTERNAL_URL: 'https://auth.example.com',
    SVC_DB_DRIVER: 'postgres',
    SVC_DATABASE_URL: 'postgres://localhost/none',
    SVC_JWT_SECRET: 'a secret for tests, long enough for HS256',
    SVC_HOOK_BEFORE_USER_CREATED_ENABLED: 'true',
    SVC_HOOK_BEFORE_USER_CREATED_URI: uri,
    SVC_HOOK_BEFORE_USER_CREATED_SECRETS: `${first.text}|${second.text}`,
  });
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  const lines: string[] = [];
  const registry = new Registry();
  const sql = postgres('postgres://localhost/none');
  t.teardown(() => sql.end());
  const caller = new HookCaller({
    settings: read.settings,
    sql,
    random: systemRandomness,
    metrics: new Metrics(registry),
    logger: createLogger({
      level: 'debug',
      format: 'json',
      destination: { write: (line) => void lines.push(line) },
    }),
    nowMs: () => nowMs,
    httpLimits: { ...defaultHttpLimits, backoffMs: 1, ...limits },
  });
  return {
    call: () =>
      caller.call(
        'BEFORE_USER_CREATED',
        { user: { id: '1' } },
        { clientAddress: '192.0.2.1', requestId: 'r1' },
      ),
    logs: () => lines.join(''),
    metrics: () => registry.metrics(),
  };
}

t.test('request is signed with each secret', async (t) => {
  const server = await startHookServer(t);
  const hook = createCaller(t, server.url);
  t.same(await hook.call(), {});
  const [request] = server.requests;
  if (request === undefined) throw new Error('no request');
  t.match(request.event, {
    metadata: {
      uuid: request.headers['webhook-id'],
      time: '2026-01-31T12:00:00.000Z',
      name: 'before-user-created',
      ip_address: '192.0.2.1',
    },
    user: { id: '1' },
  });
  t.match(request.headers, {
    'content-type': 'application/json',
    'webhook-timestamp': String(nowMs / 1000),
    'webhook-signature': `${expectedSignature(request, first)} ${expectedSignature(request, second)}`,
  });
  t.match(await hook.metrics(), 'auth_hook_calls_total{hook="BEFORE_USER_CREATED",result="ok"} 1');
});

t.test('empty responses are valid without a content type', async (t) => {
  const server = await startHookServer(t);
  for (const status of [200, 202, 204]) {
    server.answer({ status });
    t.same(await createCaller(t, server.url).call(), {}, String(status));
  }
});

t.test('error in the reply rejects the request', async (t) => {
  const server = await startHookServer(t);
  const hook = createCaller(t, server.url);
  const error = { http_code: 403, message: 'Only company emails' };
  server.answer({ body: { error } });
  await t.rejects(hook.call(), { code: 'unknown', httpStatus: 403, message: 'Only company emails' });
  server.answer({ status: 400, body: { error } });
  await t.rejects(hook.call(), { code: 'unknown', httpStatus: 403 }, 'with any status of the response');
  server.answer({ body: { error: { message: 'Broken' } } });
  await t.rejects(hook.call(), { code: 'unexpected_failure', httpStatus: 500, message: 'Broken' });
  for (const body of [{ error: {} }, { error: 'no' }, { error: { http_code: 200, message: 'x' } }]) {
    server.answer({ body });
    await t.rejects(hook.call(), { code: 'unexpected_failure', httpStatus: 500 }, JSON.stringify(body));
  }
  t.match(await hook.metrics(), 'auth_hook_calls_total{hook="BEFORE_USER_CREATED",result="rejected"} 6');
  t.match(hook.logs(), 'hook rejected the request');
  t.notMatch(hook.logs(), 'Only company emails');
});

t.test('reply with an unknown decision is an error', async (t) => {
  const server = await startHookServer(t);
  const hook = createCaller(t, server.url);
  server.answer({ body: { decision: 'rejected' } });
  await t.rejects(hook.call(), {
    code: 'unexpected_failure',
    message: /output does not conform to the expected schema: \n- decision: /,
  });
  for (const body of ['[]', '{', '"yes"', '7']) {
    server.answer({ body, headers: { 'content-type': 'application/json' } });
    await t.rejects(hook.call(), { code: 'unexpected_failure', message: /^Error unmarshaling/ }, body);
  }
  t.match(await hook.metrics(), 'auth_hook_calls_total{hook="BEFORE_USER_CREATED",result="failed"} 5');
});

t.test('429 and 503 are retried if they have Retry-After', async (t) => {
  const server = await startHookServer(t);
  const hook = createCaller(t, server.url);
  const busy = { status: 503, headers: { 'retry-after': 'true' } };
  server.answer(busy, { status: 429, headers: { 'retry-after': '0' } }, { body: {} });
  t.same(await hook.call(), {});
  t.equal(new Set(server.requests.map(({ headers }) => headers['webhook-id'])).size, 1, 'same id');
  t.equal(server.requests.length, 3);
  server.answer(busy);
  const unavailable = {
    code: 'unexpected_failure',
    message: 'Service currently unavailable due to hook',
  };
  await t.rejects(hook.call(), unavailable);
  t.equal(server.requests.length, 6, 'three attempts');
  server.answer({ status: 503 });
  await t.rejects(hook.call(), unavailable);
  t.equal(server.requests.length, 7, 'without the header there is one');
  server.answer({ status: 503, headers: { 'retry-after': '3600' } });
  await t.rejects(hook.call(), unavailable);
  t.equal(server.requests.length, 8, 'or if it is longer than the time limit');
});

t.test('other responses are errors', async (t) => {
  const server = await startHookServer(t);
  const hook = createCaller(t, server.url);
  for (const [status, message] of [
    [400, 'Invalid payload sent to hook'],
    [401, 'Hook requires authorization token'],
    [500, 'Unexpected status code returned from hook: 500'],
    [302, 'Unexpected status code returned from hook: 302'],
  ] as const) {
    server.answer({ status, headers: { location: server.url } });
    await t.rejects(hook.call(), { code: 'unexpected_failure', httpStatus: 500, message });
  }
  t.equal(server.requests.length, 4, 'redirects are not followed');
});

t.test('reply must be JSON', async (t) => {
  const server = await startHookServer(t);
  const hook = createCaller(t, server.url);
  const code = 'hook_payload_invalid_content_type';
  server.answer({ body: '{}', headers: { 'content-type': 'text/html' } });
  await t.rejects(hook.call(), { code, httpStatus: 400, message: /Received content-type: text\/html/ });
  server.answer({ body: '{}' });
  await t.rejects(hook.call(), { code, message: 'Invalid Content-Type: Missing Content-Type header' });
  server.answer({ body: '{}', headers: { 'content-type': 'Application/JSON; charset=utf-8' } });
  t.same(await hook.call(), {});
});

t.test('reply of more than 200 KB is an error', async (t) => {
  const server = await startHookServer(t);
  const hook = createCaller(t, server.url);
  const json = (bytes: number) => JSON.stringify({ message: 'x'.repeat(bytes - '{"message":""}'.length) });
  const headers = { 'content-type': 'application/json' };
  server.answer({ body: json(204_800), headers });
  t.match(await hook.call(), { message: /^x/ });
  server.answer({ body: json(204_801), headers });
  await t.rejects(hook.call(), {
    code: 'hook_payload_over_size_limit',
    httpStatus: 422,
    message: 'Payload size exceeded size limit of 204800 bytes',
  });
});

t.test('unreachable hook is retried', async (t) => {
  let connections = 0;
  const { port } = await startWebServer(t, (_request, response) => {
    connections += 1;
    response.destroy();
  });
  const hook = createCaller(t, `http://localhost:${port}/`);
  await t.rejects(hook.call(), {
    code: 'hook_timeout_after_retry',
    httpStatus: 422,
    message: 'Failed to reach hook after maximum retries',
  });
  t.ok(connections >= 3);
});

t.test('hook that does not respond in time fails', async (t) => {
  const { port } = await startWebServer(t, () => undefined);
  const timeout = { code: 'hook_timeout', httpStatus: 422, message: /maximum time of 0\.050000 seconds$/ };
  const silent = createCaller(t, `http://127.0.0.1:${port}/`, { timeoutMs: 50 });
  await t.rejects(silent.call(), timeout, 'no response');
  const server = await startHookServer(t);
  server.answer({ status: 503, headers: { 'retry-after': 'true' } });
  const busy = createCaller(t, server.url, { timeoutMs: 5_000, backoffMs: 10_000 });
  await t.rejects(busy.call(), { code: 'unexpected_failure' }, 'no time for another attempt');
  const { port: slow } = await startWebServer(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write('{');
  });
  await t.rejects(createCaller(t, `http://127.0.0.1:${slow}/`, { timeoutMs: 50 }).call(), timeout);
});
