import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import t from 'tap';
import { startApp } from '../support/start-app.ts';

t.test('what the gRPC library has to say is in the log of the service', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  t.teardown(() => taken.close());
  const { port } = taken.address() as AddressInfo;
  const written = t.capture(console, 'error');
  const { logLines } = await startApp(t, { start: false });
  const bound = new Promise<unknown>((resolve) => {
    new Server().bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), resolve);
  });
  t.match(await bound, { message: /No address added/ });
  const told = logLines.filter((line) => line['@message'] === 'told by the gRPC library');
  t.match(told, [{ level: 'error', detail: /No address added/ }]);
  t.equal(written().length, 0, 'and not on standard error');
});
