import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { everyPeer } from '@tollgate/kit/grpc/peer';
import { createLogger } from '@tollgate/kit/logger';
import type { Test } from 'tap';
import t from 'tap';
import type { Authorizer } from '../../src/ext-authz/decision.ts';
import { forbidden, noToken, unavailable } from '../../src/ext-authz/denials.ts';
import { createHttpCheckServer, handleHttpCheck } from '../../src/ext-authz/http.ts';
import { rawRequest } from '../helpers/raw-request.ts';

/** A server with a given decision. */
async function serve(
  t: Test,
  authorize: Authorizer['authorize'],
  forwarded = false,
  needsHost = false,
): Promise<string> {
  const server = createServer((request, response) =>
    handleHttpCheck({ authorizer: { authorize }, forwarded, needsHost }, request, response),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on TCP
}

t.test('an allowed response has the headers to set and the names to remove', async (t) => {
  const headers = { set: { 'x-auth-plan': 'pro' }, remove: ['x-auth-role', 'x_user'] };
  const url = await serve(t, () => ({ allowed: true, identity: undefined, headers }));
  const response = await fetch(url);
  t.equal(response.status, 200);
  t.equal(response.headers.get('x-auth-plan'), 'pro');
  t.equal(response.headers.get('x-envoy-auth-headers-to-remove'), 'x-auth-role,x_user');
  t.equal(await response.text(), '');
});

t.test('denied response is the same for synchronous and asynchronous decisions', async (t) => {
  for (const denied of [noToken(), forbidden('route_denied')])
    for (const authorize of [() => denied, () => Promise.resolve(denied)]) {
      const response = await fetch(await serve(t, authorize));
      t.equal(response.status, denied.httpStatus);
      t.match(await response.json(), { code: denied.httpStatus, error_code: denied.errorCode });
    }
});

t.test('an unavailable decision is sent as 403, because failure_mode_allow lets 5xx pass', async (t) => {
  const response = await fetch(await serve(t, () => unavailable()));
  t.equal(response.status, 403);
  t.equal(response.headers.get('retry-after'), '1');
  t.match(await response.json(), { code: 403, error_code: 'authorization_unavailable' });
});

t.test('behind other gateways, an unavailable decision is 503: they deny every status but 2xx', async (t) => {
  const url = await serve(t, () => unavailable('rate_limit_unavailable'), true);
  const headers = { 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/' };
  const response = await fetch(url, { headers });
  t.equal(response.status, 503);
  t.equal(response.headers.get('retry-after'), '1');
  t.match(await response.json(), { code: 503, error_code: 'rate_limit_unavailable' });
});

t.test('the request is passed on as sent, undecoded and with all values', async (t) => {
  let seen: unknown;
  const url = await serve(t, (request) => {
    seen = request;
    return noToken();
  });
  const headers = [
    ...['Authorization', 'a', 'AUTHORIZATION', 'b', 'X-Auth-Role', 'root', 'x_user', ''],
    ...['X-Forwarded-For', '192.0.2.1', 'x-forwarded-for', '192.0.2.2, 192.0.2.3'],
  ];
  await rawRequest(url, '/a/../%2e//b?c=d', { method: 'DELETE', headers });
  t.same(seen, {
    method: 'DELETE',
    path: '/a/../%2e//b?c=d',
    host: new URL(url).host,
    headers: {},
    authorization: ['a', 'b'],
    sourceAddress: '',
    forwardedFor: ['192.0.2.1', '192.0.2.2, 192.0.2.3'],
    headerNames: ['host', 'connection', 'authorization', 'x-auth-role', 'x_user', 'x-forwarded-for'],
  });
});

t.test('behind other gateways, method and path are in X-Forwarded-Method and X-Forwarded-Uri', async (t) => {
  const seen: unknown[] = [];
  const authorize: Authorizer['authorize'] = ({ method, path }, timeoutMs) => {
    seen.push([method, path, timeoutMs]);
    return noToken();
  };
  const url = await serve(t, authorize, true);
  const timeout = ['x-envoy-expected-rq-timeout-ms', '1'];
  const send = (...headers: string[]) => rawRequest(url, '/check', { headers: [...headers, ...timeout] });
  await send('X-Forwarded-Method', 'post', 'X-Forwarded-Uri', '/a/%2e?b=c');
  t.same(seen, [['post', '/a/%2e?b=c', undefined]], 'the timeout of a client is ignored');
  for (const headers of [
    ['X-Forwarded-Method', 'GET'],
    ['X-Forwarded-Uri', '/a'],
    ['X-Forwarded-Method', 'GET', 'X-Forwarded-Uri', '/a', 'x-forwarded-uri', '/b'],
    ['X-Forwarded-Method', 'GET', 'X-Forwarded-Method', 'PUT', 'x-forwarded-uri', '/b'],
  ]) {
    const { status, text } = await send(...headers);
    t.equal(status, 400, headers.join(' '));
    t.match(JSON.parse(text), { error_code: 'path_not_canonical', msg: /X-Forwarded-Uri, each once/ });
  }
  t.equal(seen.length, 1);
  const spoofed = await serve(t, authorize);
  await rawRequest(spoofed, '/check', {
    headers: ['X-Forwarded-Method', 'PUT', 'X-Forwarded-Uri', '/open', ...timeout],
  });
  t.same(seen[1], ['GET', '/check', 1], 'behind Envoy the request line counts');
});

t.test('with policies, other gateways must say the host of the client once', async (t) => {
  const hosts: string[] = [];
  const authorize: Authorizer['authorize'] = ({ host }) => {
    hosts.push(host);
    return noToken();
  };
  const url = await serve(t, authorize, true, true);
  const line = ['X-Forwarded-Method', 'GET', 'X-Forwarded-Uri', '/a'];
  const send = (...headers: string[]) => rawRequest(url, '/check', { headers: [...line, ...headers] });
  t.equal((await send('X-Forwarded-Host', 'api.example.com')).status, 401);
  t.same(hosts, ['api.example.com']);
  for (const headers of [
    [],
    ['X-Forwarded-Host', ''],
    ['X-Forwarded-Host', 'open.example.com', 'x-forwarded-host', 'api.example.com'],
    ['X-Forwarded-Host', 'open.example.com, api.example.com'],
  ]) {
    const { status, text } = await send(...headers);
    t.equal(status, 400, headers.join(' '));
    t.match(JSON.parse(text), { error_code: 'path_not_canonical', msg: /X-Forwarded-Host, each once/ });
  }
  t.equal(hosts.length, 1);
});

t.test('a request body does not delay the response or the next request', async (t) => {
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

t.test('CONNECT is rejected with a response, which Envoy does not treat as an error', async (t) => {
  const logger = createLogger({ level: 'fatal', format: 'json' });
  const onRequest = () => t.fail('CONNECT is not checked');
  const server = createHttpCheckServer({
    onRequest,
    tls: undefined,
    guard: everyPeer,
    logger,
    host: '127.0.0.1',
    port: 0,
  });
  const socket = connect(await server.start(), '127.0.0.1');
  t.teardown(() => server.stop(AbortSignal.abort()));
  socket.write('CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n');
  t.match(await text(socket), /^HTTP\/1\.1 400 /);
});
