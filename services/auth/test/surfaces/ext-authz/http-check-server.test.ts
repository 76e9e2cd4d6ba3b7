import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { everyPeer } from '@tollgate/kit/grpc/peer';
import { createLogger } from '@tollgate/kit/logger';
import t from 'tap';
import { createHttpCheckServer } from '../../../src/ext-authz/http.ts';

t.test('CONNECT is refused, too: without an answer Envoy would take it for an error', async (t) => {
  const logger = createLogger({ level: 'fatal', format: 'json' });
  const check = () => t.fail('nothing is decided on');
  const server = createHttpCheckServer(
    { check, tls: undefined, guard: everyPeer, logger },
    { host: '127.0.0.1', port: 0 },
  );
  const socket = connect(await server.start(), '127.0.0.1');
  t.teardown(() => server.stop(AbortSignal.abort()));
  socket.write('CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n');
  t.match(await text(socket), /^HTTP\/1\.1 400 /);
});
