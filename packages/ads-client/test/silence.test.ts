import { once } from 'node:events';
import { createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { sleepFor } from '@tollgate/kit/time';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { startTcpProxy } from '@tollgate/testkit/tcp-proxy';
import t, { type Test } from 'tap';
import { followServer } from './helpers/follow-server.ts';

/** A server that accepts streams and sends no pings of its own, behind a proxy. */
async function startServer(t: Test) {
  const sessions: ServerHttp2Session[] = [];
  let streams = 0;
  const server = createServer();
  server.on('session', (session) => {
    session.on('error', () => undefined);
    sessions.push(session);
  });
  server.on('stream', (stream) => {
    stream.on('error', () => undefined);
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    streams += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A server that listens on TCP has such an address.
  const proxy = await startTcpProxy((server.address() as AddressInfo).port);
  t.teardown(async () => {
    await proxy.stop();
    for (const session of sessions) session.destroy();
    server.close();
  });
  const awaitStream = async (count: number): Promise<ServerHttp2Session> => {
    await awaitUntil(() => streams === count, { what: `stream ${count}` });
    const session = sessions.at(-1);
    if (session === undefined) throw new TypeError('a stream has a session');
    return session;
  };
  return { proxy, sessions, awaitStream };
}

/** Resolves when the client has answered. */
const sendPing = (session: ServerHttp2Session): Promise<void> =>
  new Promise((resolve, reject) => {
    session.ping((error) => (error === null ? resolve() : reject(error)));
  });

t.test('a connection that loses all packets is replaced', async (t) => {
  const { proxy, awaitStream } = await startServer(t);
  const silence = { silenceMs: 100, answerMs: 100 };
  const source = followServer(t, `127.0.0.1:${proxy.port}`, { stream: { silence } });
  await awaitStream(1);
  proxy.set('lose');
  t.match(await source.logged(/^management server ended the stream/), {
    reason: 'connection lost, the server does not answer a ping',
  });
  proxy.set('forward');
  await awaitStream(2);
});

t.test('a server that sends no pings gets one, and keeps its connection', async (t) => {
  const { proxy, sessions, awaitStream } = await startServer(t);
  const silence = { silenceMs: 20, answerMs: 20_000 };
  followServer(t, `127.0.0.1:${proxy.port}`, { stream: { silence } });
  const session = await awaitStream(1);
  let received = 0;
  session.on('ping', () => {
    received += 1;
  });
  await awaitUntil(() => received === 1, { what: 'a ping of the client' });
  // Longer than the silence after which a second ping would follow.
  await sleepFor(100);
  await sendPing(session);
  t.equal(received, 1);
  t.equal(sessions.length, 1);
});
