import t, { type Test } from 'tap';
import { type Answer, encodeCall, openUnaryConnection } from '../../http2/unary-connection.ts';
import { type StubAnswer, startStubServer } from '../stub-server.ts';

const path = '/test.Service/Method';
const ok: StubAnswer = { message: Buffer.from('hello'), trailers: { 'grpc-status': '0' } };

/** Sends calls with these messages at once and answers what came back, by the order in which they were sent. */
async function callAll(
  t: Test,
  messages: readonly Buffer[],
  answer: (call: number) => StubAnswer | 'reset',
): Promise<{ answers: Answer[]; requests: Record<string, unknown>[] }> {
  const server = await startStubServer(answer);
  t.teardown(server.close);
  const answers: Answer[] = [];
  const { promise: all, resolve, reject } = Promise.withResolvers<void>();
  let answered = 0;
  const connection = await openUnaryConnection({
    host: '127.0.0.1',
    port: server.port,
    path,
    maxInFlight: messages.length,
    onAnswer: (token, given) => {
      answers[token] = given;
      if (++answered === messages.length) resolve();
    },
    onBroken: reject,
  });
  t.teardown(connection.close);
  messages.forEach((message, i) => {
    connection.send(i, encodeCall(message));
  });
  connection.flush();
  await all;
  t.equal(connection.inFlight, 0);
  return { answers, requests: server.requests };
}

t.test('a call comes back with its status and the message that gRPC framed', async (t) => {
  const { answers } = await callAll(t, [Buffer.from('hi')], () => ok);
  t.equal(answers[0]?.grpcStatus, '0');
  t.equal(answers[0]?.body.toString('latin1'), '\0\0\0\0\x05hello');
});

t.test('every call carries the headers of gRPC, whether written out or referred to', async (t) => {
  const { requests } = await callAll(t, [Buffer.from('a'), Buffer.from('b'), Buffer.from('c')], () => ok);
  t.equal(requests.length, 3);
  for (const headers of requests) {
    t.match(headers, {
      ':method': 'POST',
      ':scheme': 'http',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
  }
});

t.test('a call that failed comes back with what the trailers say', async (t) => {
  const { answers } = await callAll(t, [Buffer.from('x')], () => ({
    trailers: { 'grpc-status': '2', 'grpc-message': 'rate limit domain must not be empty' },
  }));
  t.same(answers, [
    { grpcStatus: '2', grpcMessage: 'rate limit domain must not be empty', body: Buffer.alloc(0) },
  ]);
});

t.test('a call without a status is no success', async (t) => {
  const { answers } = await callAll(t, [Buffer.from('x')], () => ({ ...ok, trailers: { other: '1' } }));
  t.equal(answers[0]?.grpcStatus, 'none');
});

t.test('a call that the server resets comes back with the code of the reset', async (t) => {
  const { answers } = await callAll(t, [Buffer.from('x')], () => 'reset');
  t.equal(answers[0]?.grpcStatus, 'reset 8');
});

t.test('more than the server is ready to take waits for its window and arrives whole', async (t) => {
  const large = Buffer.alloc(16_000, 'x');
  const { answers } = await callAll(t, Array<Buffer>(20).fill(large), () => ok);
  t.equal(answers.filter(({ grpcStatus }) => grpcStatus === '0').length, 20);
});

t.test('the end of the server is reported, once', async (t) => {
  const server = await startStubServer(() => ok);
  const { promise: broken, resolve } = Promise.withResolvers<Error>();
  await openUnaryConnection({
    host: '127.0.0.1',
    port: server.port,
    path,
    maxInFlight: 1,
    onAnswer: () => {},
    onBroken: resolve,
  });
  await server.close();
  t.match((await broken).message, /GOAWAY|closed the connection|ECONNRESET/);
});

t.test('a connection that nobody takes is an error', async (t) => {
  const server = await startStubServer(() => ok);
  await server.close();
  const options = { host: '127.0.0.1', port: server.port, path, maxInFlight: 1 };
  await t.rejects(openUnaryConnection({ ...options, onAnswer: () => {}, onBroken: () => {} }), {
    code: 'ECONNREFUSED',
  });
});
