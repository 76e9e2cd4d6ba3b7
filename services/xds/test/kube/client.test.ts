import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { KubeConfig } from '@kubernetes/client-node';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import { temporaryFolder } from '@tollgate/testkit/folders';
import type { Test } from 'tap';
import t from 'tap';
import { ApiClient, readLines, TokenBucket } from '../../src/kube/client.ts';
import { type Answer, json, refusal, startScriptedServer, watch } from '../support/kube-server.ts';

async function serve(t: Test, answer: Answer) {
  const server = await startScriptedServer(answer);
  t.teardown(() => server.stop());
  return server;
}

const get = { method: 'GET', path: '/apis/x' } as const;

t.test('send resolves with the JSON of a success', async (t) => {
  const { api, requests } = await serve(t, json({ kind: 'Thing' }));
  t.strictSame(await api.send({ ...get, query: { limit: '5', 'a b': 'c&d' } }), { kind: 'Thing' });
  t.strictSame(
    [...(requests[0]?.query ?? [])],
    [
      ['limit', '5'],
      ['a b', 'c&d'],
    ],
  );
  t.match(requests[0]?.headers, { accept: 'application/json', authorization: 'Bearer open' });
});

t.test('body is sent with type and length', async (t) => {
  const { api, requests } = await serve(t, json({}));
  await api.send({
    ...get,
    method: 'PATCH',
    body: { name: 'ä' },
    contentType: 'application/merge-patch+json',
  });
  t.match(requests[0], {
    method: 'PATCH',
    body: '{"name":"ä"}',
    headers: { 'content-type': 'application/merge-patch+json', 'content-length': '13' },
  });
});

t.test('error has status, reason, message and Retry-After', async (t) => {
  const { api } = await serve(t, refusal(429, 'TooManyRequests', { 'retry-after': '3' }));
  await t.rejects(api.send(get), {
    status: 429,
    reason: 'TooManyRequests',
    message: 'TooManyRequests it is',
    retryAfterMs: 3_000,
  });
});

t.test('error without a Status has the beginning of the body', async (t) => {
  const { api } = await serve(t, (response) => response.writeHead(502).end(`<html>${'x'.repeat(10_000)}`));
  await t.rejects(api.send(get), {
    status: 502,
    message: /^the API server responded with 502: <html>x{100,200}$/,
  });
});

t.test('call times out, also during the response', async (t) => {
  const silent = await serve(t, () => undefined);
  await t.rejects(silent.api.send({ ...get, timeoutMs: 50.5 }), {
    message: /did not respond within 50.5 ms/,
  });
  const slow = await serve(t, (response) => void response.write('{'));
  await t.rejects(slow.api.send({ ...get, timeoutMs: 50 }), { message: /did not respond within 50 ms/ });
});

t.test('call ends with its signal and with the client', async (t) => {
  const { api, requests } = await serve(t, () => undefined);
  const aborter = new AbortController();
  const aborted = api.send({ ...get, signal: aborter.signal });
  const closed = api.send(get);
  await awaitUntil(() => requests.length === 2, { what: 'both calls' });
  aborter.abort();
  await t.rejects(aborted, { name: 'AbortError' });
  api.close();
  await t.rejects(closed, { name: 'AbortError' });
  await t.rejects(api.send(get), { message: 'the API client is closed' });
});

t.test('refused watch rejects, accepted watch yields lines', async (t) => {
  const signal = new AbortController().signal;
  const refusing = await serve(t, refusal(403, 'Forbidden'));
  await t.rejects(refusing.api.watch({ path: '/x', idleTimeoutMs: 30_000, signal }), {
    message: 'Forbidden it is',
  });
  const accepting = await serve(t, watch({ n: 1 }, { n: 2 }));
  const lines: string[] = [];
  for await (const line of await accepting.api.watch({ path: '/x', idleTimeoutMs: 30_000, signal })) {
    lines.push(line);
    if (lines.length === 2) break;
  }
  t.strictSame(lines, ['{"n":1}', '{"n":2}']);
});

t.test('sequential calls share a connection', async (t) => {
  const ports = new Set<number | undefined>();
  const { api } = await serve(t, (response) => {
    ports.add(response.socket?.remotePort);
    json({})(response, { ...get, query: new URLSearchParams(), headers: {}, body: '' });
  });
  for (let call = 0; call < 5; call += 1) await api.send(get);
  t.equal(ports.size, 1);
});

t.test('replaced client certificate is used by the next call', async (t) => {
  const certificates = makeCertificates();
  t.teardown(() => certificates.remove());
  const { ca, server: pair, issue } = certificates;
  const seen: string[] = [];
  const server = createServer(
    { cert: pair.cert, key: pair.key, ca: ca.cert, requestCert: true, rejectUnauthorized: true },
    (request, response) => {
      // The server speaks TLS only.
      seen.push(String((request.socket as TLSSocket).getPeerCertificate().subject.CN));
      response.end('{}');
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const folder = temporaryFolder();
  const [certFile, keyFile] = [join(folder.path, 'crt'), join(folder.path, 'key')];
  const use = (name: string): void => {
    const { cert, key } = issue({ name });
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key);
  };
  use('old');
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: 'test', server: `https://127.0.0.1:${port}`, caFile: ca.certFile, skipTLSVerify: false },
    { name: 'test', certFile, keyFile },
  );
  const api = new ApiClient(config);
  t.teardown(() => {
    api.close();
    server.close();
    server.closeAllConnections();
    folder.remove();
  });
  await api.send(get);
  await api.send(get);
  use('new');
  await api.send(get);
  t.strictSame(seen, ['old', 'old', 'new']);
});

t.test('hanging exec plugin does not block a call forever', async (t) => {
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: 'test', server: 'https://127.0.0.1:1', skipTLSVerify: true },
    { name: 'test', exec: { command: 'sleep', args: ['1'] } },
  );
  const api = new ApiClient(config);
  t.teardown(() => api.close());
  await t.rejects(api.send({ ...get, timeoutMs: 50 }), { message: /did not respond within 50 ms/ });
});

/** Yields the chunks, and records whether the reader has released the stream. */
function makeStream(...chunks: (string | Uint8Array)[]) {
  const state: { taken: number; ended: boolean } = { taken: 0, ended: false };
  async function* generate(): AsyncGenerator<Uint8Array> {
    try {
      for (const chunk of chunks) {
        state.taken += 1;
        yield Buffer.from(chunk);
      }
    } finally {
      state.ended = true;
    }
  }
  return { chunks: generate(), state };
}

async function readAllLines(...chunks: (string | Uint8Array)[]): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of readLines(makeStream(...chunks).chunks, 100)) lines.push(line);
  return lines;
}

t.test('lines do not depend on the chunks', async (t) => {
  const text = 'one\n\nthree\nvier: ä\n';
  const expected = ['one', '', 'three', 'vier: ä'];
  t.strictSame(await readAllLines(text), expected);
  t.strictSame(await readAllLines(...Array.from(Buffer.from(text), (byte) => Buffer.of(byte))), expected);
});

t.test('incomplete last line is dropped', async (t) => {
  t.strictSame(await readAllLines('one\ntw'), ['one']);
  t.strictSame(await readAllLines(), []);
});

t.test('line of the largest size is read, one byte more is an error', async (t) => {
  t.strictSame(await readAllLines('x'.repeat(100), '\n'), ['x'.repeat(100)]);
  await t.rejects(readAllLines('x'.repeat(60), 'x'.repeat(41)), { message: 'a line exceeds 100 bytes' });
});

t.test('reader that stops releases the stream', async (t) => {
  const { chunks, state } = makeStream('one\ntwo\n', 'three\n', 'four\n');
  for await (const line of readLines(chunks, 100)) {
    if (line === 'two') break;
  }
  t.strictSame(state, { taken: 1, ended: true });
});

function makeBucket(options: { ratePerSecond: number; burst: number }) {
  const clock = fakeClock();
  const bucket = new TokenBucket({ ...options, now: clock.now, sleep: clock.sleep });
  const taken: number[] = [];
  const { signal } = new AbortController();
  const take = async (id: number): Promise<void> => {
    await bucket.take(signal);
    taken.push(id);
  };
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return { clock, bucket, take, taken, settle };
}

t.test('burst passes at once, the rest at the rate and in order', async (t) => {
  const { clock, take, taken, settle } = makeBucket({ ratePerSecond: 10, burst: 3 });
  const all = Promise.all([1, 2, 3, 4, 5].map(take));
  await settle();
  t.strictSame(taken, [1, 2, 3]);
  clock.advance(99);
  await settle();
  t.strictSame(taken, [1, 2, 3]);
  clock.advance(1);
  await settle();
  t.strictSame(taken, [1, 2, 3, 4]);
  clock.advance(100);
  await all;
});

t.test('idle time earns no more than the burst', async (t) => {
  const { clock, take, taken, settle } = makeBucket({ ratePerSecond: 10, burst: 2 });
  clock.advance(3_600_000);
  const all = Promise.all([1, 2, 3].map(take));
  await settle();
  t.strictSame(taken, [1, 2]);
  clock.advance(100);
  await all;
});

t.test('aborted caller stops waiting', async (t) => {
  const { bucket } = makeBucket({ ratePerSecond: 1, burst: 1 });
  const aborter = new AbortController();
  await bucket.take(aborter.signal);
  const waiting = bucket.take(aborter.signal);
  aborter.abort(new Error('closed'));
  await t.rejects(waiting, { message: 'closed' });
});
