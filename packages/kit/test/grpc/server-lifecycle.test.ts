import { Client, credentials, Server, ServerCredentials } from '@grpc/grpc-js';
import { unaryMethod } from '@tollgate/kit/grpc/raw-method';
import { bindServer, shutDownServer } from '@tollgate/kit/grpc/server-lifecycle';
import t, { type Test } from 'tap';

const path = '/test.Silence/Keep';

/** A server with a call in flight that is never answered. */
async function startSilence(t: Test) {
  const server = new Server();
  const arrived = Promise.withResolvers<void>();
  server.addService({ Keep: unaryMethod(path) }, { Keep: () => arrived.resolve() });
  const port = await bindServer(server, '127.0.0.1:0', ServerCredentials.createInsecure());
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  t.teardown(() => client.close());
  const { requestSerialize, responseDeserialize } = unaryMethod(path);
  const ended = new Promise<unknown>((resolve) => {
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, new Uint8Array(), resolve);
  });
  await arrived.promise;
  return { server, ended };
}

t.test('a call in flight is cut off when the time is over', async (t) => {
  const { server, ended } = await startSilence(t);
  const deadline = new AbortController();
  const stopped = shutDownServer(server, deadline.signal, () => deadline.abort());
  await Promise.all([stopped, t.resolves(ended)]);
});

t.test('a call in flight is cut off at once when the time was over before', async (t) => {
  const { server, ended } = await startSilence(t);
  await shutDownServer(server, AbortSignal.abort(), () => undefined);
  t.match(await ended, { code: Number });
});

t.test('an address that is taken is told', async (t) => {
  const { server } = await startSilence(t);
  t.teardown(() => server.forceShutdown());
  const taken = new Server();
  const port = await bindServer(taken, '127.0.0.1:0', ServerCredentials.createInsecure());
  t.teardown(() => taken.forceShutdown());
  await t.rejects(bindServer(new Server(), `127.0.0.1:${port}`, ServerCredentials.createInsecure()));
});
