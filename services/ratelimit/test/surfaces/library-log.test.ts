import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import t from 'tap';
import { startApp } from '../support/start-app.ts';

t.test('what the gRPC library has to say is in the log of the service', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  t.teardown(() => taken.close());
  const { port } = taken.address() as AddressInfo;
  const written = t.capture(console, 'error');
  const { app, logLines } = await startApp(t, { env: { GRPC_PORT: `${port}` }, start: false });
  await t.rejects(app.lifecycle.start());
  const told = logLines.filter((line) => line['@message'] === 'told by the gRPC library');
  t.match(told, [{ level: 'error', detail: /No address added/ }]);
  t.equal(written().length, 0, 'and not on standard error');
});
