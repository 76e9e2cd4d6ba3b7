import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import t, { type Test } from 'tap';
import type { AuthorizeRequest } from '../../../src/ext-authz/decision.ts';
import { forbidden, noToken, unavailable } from '../../../src/ext-authz/decision.ts';
import { createHttpCheck } from '../../../src/ext-authz/http.ts';
import { rawRequest } from '../../helpers/raw-request.ts';

/** The questions that arrive, behind a decision that is given. */
async function serve(t: Test, authorize: AuthorizeRequest): Promise<string> {
  const server = createServer(createHttpCheck(authorize)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on TCP
}

t.test('a yes has the headers for the upstream, and the names that Envoy is to take away', async (t) => {
  const headers = { set: { 'x-auth-plan': 'pro' }, remove: ['x-auth-role', 'x_user'] };
  const url = await serve(t, () => ({ allowed: true, identity: undefined, headers }));
  const response = await fetch(url);
  t.equal(response.status, 200);
  t.equal(response.headers.get('x-auth-plan'), 'pro');
  t.equal(response.headers.get('x-envoy-auth-headers-to-remove'), 'x-auth-role,x_user');
  t.equal(await response.text(), '');
});

t.test('a no is answered as the client gets it, now or later', async (t) => {
  for (const denied of [noToken(), forbidden('route_denied')])
    for (const authorize of [() => denied, () => Promise.resolve(denied)]) {
      const response = await fetch(await serve(t, authorize));
      t.equal(response.status, denied.httpStatus);
      t.match(await response.json(), { code: denied.httpStatus, error_code: denied.errorCode });
    }
});

t.test('who cannot tell answers 403: Envoy may be told to let pass what 5xx answers', async (t) => {
  const response = await fetch(await serve(t, unavailable));
  t.equal(response.status, 403);
  t.equal(response.headers.get('retry-after'), '1');
  t.match(await response.json(), { code: 403, error_code: 'authorization_unavailable' });
});

t.test('what is decided on is what was sent, undecoded and with all values', async (t) => {
  let seen: unknown;
  const url = await serve(t, (request) => {
    seen = request;
    return noToken();
  });
  const headers = ['Authorization', 'a', 'AUTHORIZATION', 'b', 'X-Auth-Role', 'root', 'x_user', ''];
  await rawRequest(url, '/a/../%2e//b?c=d', { method: 'DELETE', headers });
  t.same(seen, {
    method: 'DELETE',
    path: '/a/../%2e//b?c=d',
    authorization: ['a', 'b'],
    headerNames: ['host', 'connection', 'authorization', 'x-auth-role', 'x_user'],
  });
});

t.test('a body is neither waited for nor in the way of the next question', async (t) => {
  const url = new URL(await serve(t, noToken));
  const socket = connect(Number(url.port), url.hostname).setEncoding('utf8');
  t.teardown(() => socket.destroy());
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n');
  const [first] = await once(socket, 'data');
  t.match(first, /^HTTP\/1\.1 401/);
  socket.write('helloGET / HTTP/1.1\r\nHost: a\r\n\r\n');
  const [second] = await once(socket, 'data');
  t.match(second, /^HTTP\/1\.1 401/);
});
