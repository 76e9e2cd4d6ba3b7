// Caddy and nginx of the examples, with the answers that browsers get from external authorization.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type EchoedRequest, startEcho } from '@tollgate/testkit/echo';
import { programIsMissing } from '@tollgate/testkit/processes';
import { sendTcp } from '@tollgate/testkit/tcp';
import { addressesIn, startTextProxy, textProxies } from '@tollgate/testkit/text-proxies';
import t from 'tap';
import { configText, exampleObject, readExamples } from './support/manifests.ts';

t.setTimeout(120_000);
const examples = await readExamples();
/** Hosts of checks, oldest first. */
const hosts: (string | undefined)[] = [];
const signIn = { location: 'https://auth.example.com/pages/return?return_to=x', 'set-cookie': 'a=b; Path=/' };

/** Allows requests with a cookie, wants a proof of those with DPoP, and sends others to sign in. */
const authorization = createServer(({ headers }, response) => {
  hosts.push(headers['x-forwarded-host']?.toString());
  if (headers['x-forwarded-uri'] === '/signed-out')
    return void response.writeHead(303, { location: '/' }).end();
  const isProbe = headers['x-forwarded-uri'] === '/health';
  if (headers.authorization !== undefined) response.writeHead(401, { 'dpop-nonce': 'n1' }).end();
  else if (headers.cookie === undefined && !isProbe) response.writeHead(302, signIn).end();
  else response.writeHead(200, { 'x-auth-user-id': 'ada', 'x-auth-plan': 'free' }).end();
}).listen(0, '127.0.0.1');
t.teardown(() => authorization.close());
await once(authorization, 'listening');
const { port } = authorization.address() as AddressInfo; // it listens on TCP
const echo = await startEcho();
t.teardown(echo.stop);

for (const name of ['caddy', 'nginx'] as const)
  t.test(name, { skip: programIsMissing(name) }, async (t) => {
    const proxy = exampleObject(examples, `examples/${name}/proxy.yaml`, 'ConfigMap');
    const config = configText(proxy, textProxies[name].key);
    const toPort = (address: string) => [address, address.endsWith(':9003') ? port : echo.port] as const;
    const url = await startTextProxy(t, name, { config, ports: new Map(addressesIn(config).map(toPort)) });

    const sent = await fetch(`${url}/orders`, { redirect: 'manual' });
    t.ok([302, 303].includes(sent.status), `${sent.status}`);
    t.match(Object.fromEntries(sent.headers), signIn);

    t.equal(hosts.at(-1), new URL(url).host, 'with the port');
    const proven = await fetch(`${url}/orders`, { headers: { authorization: 'DPoP t' } });
    t.equal(proven.status, 401);
    t.equal(proven.headers.get('dpop-nonce'), 'n1', 'the client gets the nonce');
    for (const line of ['GET http://served.test/ HTTP/1.1', 'GET / HTTP/1.1']) {
      const head = `${line}\r\nHost: named.test:81\r\nConnection: close\r\n\r\n`;
      await sendTcp(head, { host: '127.0.0.1', port: Number(new URL(url).port) });
      t.match(hosts.at(-1), line.includes('//') ? /^served\.test(?::81)?$/ : 'named.test:81', line);
    }

    const signedOut = await fetch(`${url}/signed-out`, { redirect: 'manual' });
    t.equal(signedOut.headers.get('location'), '/', 'not with the port of the proxy');

    const session = 'tollgate-access=x.y';
    const cookies: readonly (readonly [sent: string, received: RegExp])[] = [
      [`a=1; __Host-${session}; b=2`, /^a=1; b=2$/],
      [`__Host-${session}; __Host-tollgate-sign-in=z; b=2`, /^b=2$/],
      [`a=1; __Secure-${session}`, /^a=1;? ?$/],
      [`tollgate-sign-in=z; ${session}; a=1`, /^a=1$/],
      ['a=1; b=2', /^a=1; b=2$/],
    ];
    for (const [cookie, received] of cookies) {
      const answer = await fetch(`${url}/orders`, { headers: { cookie } });
      const { headers } = (await answer.json()) as EchoedRequest; // of the echo
      t.match(headers, { cookie: received, 'x-auth-user-id': 'ada' }, cookie);
    }
  });
