import { once } from 'node:events';
import { Agent, request } from 'node:https';
import { text } from 'node:stream/consumers';
import { HttpServer } from '@tollgate/kit/http-server';
import type { WatchedTls } from '@tollgate/kit/tls';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import t, { type Test } from 'tap';
import { AdmissionServer, type AdmissionServerOptions, admissionPath } from '../../src/admission/server.ts';
import { recordingContext } from '../support/recording-logger.ts';

const certificates = makeCertificates();
t.teardown(certificates.remove);

const review = (uid: string, more: object = {}) =>
  JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid,
      operation: 'CREATE',
      object: {
        apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
        kind: 'RateLimitConfig',
        metadata: { namespace: 'shop', name: 'web', uid: 'u' },
        spec: {},
      },
      ...more,
    },
  });

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A server of reviews, and a client of it. */
async function startServer(t: Test, options: Partial<AdmissionServerOptions> = {}) {
  const { context, registry } = recordingContext();
  const listeners = new Set<Parameters<WatchedTls['onChange']>[0]>();
  const pair = { cert: Buffer.from(certificates.server.cert), key: Buffer.from(certificates.server.key) };
  const tls: WatchedTls = {
    current: () => pair,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    close: () => undefined,
  };
  const app = new AdmissionServer(context, {
    tls,
    // biome-ignore lint/correctness/useYield: a result that needs no steps.
    *preview() {
      return { problems: [], warnings: [] };
    },
    ...options,
  });
  const server = new HttpServer(app, { host: '127.0.0.1', port: 0 });
  const port = await server.start();
  t.teardown(() => server.stop(AbortSignal.abort()));
  const agent = new Agent({ keepAlive: false, ca: certificates.ca.cert });
  const open = ({ method = 'POST', path = admissionPath, headers = {} }: Sent = {}) =>
    request({
      agent,
      host: 'localhost',
      port,
      method,
      path,
      headers: { 'content-type': 'application/json', ...headers },
    });
  const send = async (body: string, sent: Sent = {}) => {
    const outgoing = open({
      ...sent,
      headers: { 'content-length': `${Buffer.byteLength(body)}`, ...sent.headers },
    });
    outgoing.on('error', () => undefined);
    outgoing.end(body);
    const [response] = await once(outgoing, 'response');
    return { status: response.statusCode as number, body: await text(response) };
  };
  const count = async (result: string) => {
    const values = (await registry.getSingleMetric('tollgate_xds_admission_requests_total')?.get())?.values;
    return values?.find(({ labels }) => labels.result === result)?.value;
  };
  const renew = (cert: string, key: string) => {
    for (const listener of listeners) listener({ cert: Buffer.from(cert), key: Buffer.from(key) });
  };
  return { open, send, count, renew, port };
}

t.test('object without problems is allowed, under the uid of the request', async (t) => {
  const { send, count } = await startServer(t);
  const { status, body } = await send(review('one'));
  t.equal(status, 200);
  t.strictSame(JSON.parse(body), {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid: 'one', allowed: true },
  });
  t.equal(await count('allowed'), 1);
  t.equal(await count('denied'), 0);
});

t.test('problems and warnings are bounded in number and length', async (t) => {
  const { send, count } = await startServer(t, {
    *preview() {
      const problems = Array.from({ length: 30 }, (_, index) => ({
        source: 'shop/web',
        path: '',
        field: `spec.descriptors[${index}].key`,
        message: 'x'.repeat(2_000),
      }));
      return { problems, warnings: Array.from({ length: 30 }, () => 'y'.repeat(2_000)) };
    },
  });
  const { response } = JSON.parse((await send(review('one'))).body);
  t.equal(response.allowed, false);
  t.match(response.status, { code: 422, reason: 'Invalid' });
  const lines = response.status.message.split('\n');
  t.equal(lines.length, 22);
  t.match(lines[1], /^ {2}spec\.descriptors\[0\]\.key: x+…$/);
  t.equal(lines[21], '  and 10 more problems');
  t.equal(response.warnings.length, 11);
  t.ok(response.warnings.every((warning: string) => warning.length <= 256));
  t.equal(await count('denied'), 1);
});

const malformed: readonly (readonly [string, number, string, Sent?])[] = [
  ['another path', 404, review('one'), { path: '/other' }],
  ['another method', 405, review('one'), { method: 'PUT' }],
  ['another content type', 415, review('one'), { headers: { 'content-type': 'text/plain' } }],
  ['no JSON', 400, '{'],
  ['another kind of body', 400, '{"kind":"Pod"}'],
  [
    'a list for the request',
    400,
    '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":[]}',
  ],
  ['no uid', 400, review('')],
  ['a deletion', 400, review('one', { operation: 'DELETE' })],
  ['no object', 400, review('one', { object: null })],
  ['an object of another kind', 400, review('one', { object: { kind: 'Pod' } })],
  ['an object without name', 400, review('one', { object: { kind: 'RateLimitConfig', metadata: {} } })],
];

t.test('malformed requests are refused without a review', async (t) => {
  const { send, count } = await startServer(t);
  for (const [name, expected, body, sent] of malformed) {
    const { status, body: reply } = await send(body, sent);
    t.equal(status, expected, `${name}: ${reply}`);
  }
  t.equal(await count('malformed'), malformed.length);
});

t.test('body beyond the bound is refused before it is read', async (t) => {
  const { send } = await startServer(t, { limits: { maxBodyBytes: 1_000 } });
  t.equal((await send(review('one', { note: 'x'.repeat(1_000) }))).status, 413);
  t.equal((await send(review('one'))).status, 200);
});

t.test('body of unknown length is refused', async (t) => {
  const { open, count } = await startServer(t);
  const outgoing = open();
  outgoing.on('error', () => undefined);
  outgoing.write('{');
  const [response] = await once(outgoing, 'response');
  t.equal(response.statusCode, 411);
  response.resume();
  outgoing.destroy();
  t.equal(await count('malformed'), 1);
});

t.test('requests and bytes in flight are bounded, and free again when their clients are gone', async (t) => {
  for (const limits of [{ maxRequests: 2 }, { maxTotalBytes: 2_500 }]) {
    const { open, send, count } = await startServer(t, { limits });
    const held = [1, 2].map(() => {
      const outgoing = open({ headers: { 'content-length': '1000' } });
      outgoing.on('error', () => undefined);
      outgoing.flushHeaders();
      return outgoing;
    });
    await awaitUntil(async () => (await send(review('one', { note: 'x'.repeat(300) }))).status === 503, {
      what: 'both to be counted',
    });
    t.ok((await count('overloaded')) ?? 0);
    for (const outgoing of held) outgoing.destroy();
    await awaitUntil(async () => (await send(review('two', { note: 'x'.repeat(300) }))).status === 200, {
      what: 'both to be free',
    });
  }
});

t.test('review beyond the deadline ends without a result, and the next one is served', async (t) => {
  let nowMs = 0;
  let slowSteps = Number.POSITIVE_INFINITY;
  const { send, count } = await startServer(t, {
    now: () => nowMs,
    deadlineMs: 1_500,
    *preview() {
      for (let step = 0; step < slowSteps; step += 1) {
        nowMs += 100;
        yield;
      }
      return { problems: [], warnings: [] };
    },
  });
  t.match(await send(review('one')), { status: 503, body: /not validated in time/ });
  t.equal(await count('late'), 1);
  slowSteps = 0;
  t.equal((await send(review('two'))).status, 200);
});

t.test('bug in the validation is a 500 that does not show it', async (t) => {
  const { send, count } = await startServer(t, {
    // biome-ignore lint/correctness/useYield: fails at once.
    *preview() {
      throw new Error('secret');
    },
  });
  t.match(await send(review('one')), { status: 500, body: 'internal error\n' });
  t.equal(await count('failed'), 1);
});

t.test('renewed certificate is used for new connections', async (t) => {
  const { send, renew } = await startServer(t);
  t.equal((await send(review('one'))).status, 200);
  const other = certificates.issue({ name: 'other', subjectAltNames: ['DNS:elsewhere.test'] });
  renew(other.cert, other.key);
  await t.rejects(send(review('two')), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
});
