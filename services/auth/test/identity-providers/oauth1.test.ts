// cspell:ignore nnch pfkkdhi chapo
import { createHmac, randomUUID } from 'node:crypto';
import { startWebServer } from '@tollgate/testkit/web-server';
import t from 'tap';
import { signOAuth1 } from '../../src/identity-providers/oauth1.ts';
import { startAuthServer } from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';

const apiUrl = 'http://localhost:9999';

t.test('signature matches the example of RFC 5849 §1.2', (t) => {
  const signature = signOAuth1(
    {
      method: 'GET',
      url: 'http://photos.example.net/photos?file=vacation.jpg&size=original',
      parameters: {
        oauth_consumer_key: 'dpf43f3p2l4k3l03',
        oauth_token: 'nnch734d00sl2jdk',
        oauth_signature_method: 'HMAC-SHA1',
        oauth_timestamp: '137131202',
        oauth_nonce: 'chapoH',
      },
    },
    { secret: 'kd94hf93k423kf44', tokenSecret: 'pfkkdhi9sl3r4s00' },
  );
  t.equal(signature, 'MdpQcU8iPSUjWoN/UDMsK2sui9I=');
  t.end();
});

/** Fields of the header `Authorization: OAuth …`. */
function readOAuthHeader(header = ''): Record<string, string> {
  const fields = [...header.matchAll(/(\w+)="([^"]*)"/g)];
  return Object.fromEntries(fields.map(([, name = '', value = '']) => [name, decodeURIComponent(value)]));
}

/** The three endpoints of OAuth 1.0a, which check every signature. */
async function startTwitter(test: Parameters<typeof startWebServer>[0]) {
  const secrets = new Map<string, string>();
  const callbacks = new Map<string, string>();
  let base = '';
  const server = await startWebServer(test, (request, response) => {
    const url = new URL(request.url ?? '', base);
    const { oauth_signature: signature, ...parameters } = readOAuthHeader(request.headers.authorization);
    const token = parameters.oauth_token ?? '';
    const send = (body: string) => response.writeHead(200, { 'content-type': 'text/html' }).end(body);
    if (url.pathname === '/oauth/authenticate') {
      const target = new URL(callbacks.get(url.searchParams.get('oauth_token') ?? '') ?? '');
      target.searchParams.set('oauth_token', url.searchParams.get('oauth_token') ?? '');
      target.searchParams.set('oauth_verifier', 'verifier-1');
      return response.writeHead(302, { location: target.href }).end();
    }
    const expected = signOAuth1(
      { method: request.method ?? '', url: url.href, parameters },
      { secret: 'consumer-secret', tokenSecret: secrets.get(token) ?? '' },
    );
    if (signature !== expected) return response.writeHead(401).end('bad signature');
    const issue = () => {
      const issued = randomUUID();
      secrets.set(issued, createHmac('sha256', 'x').update(issued).digest('hex'));
      return issued;
    };
    if (url.pathname === '/oauth/request_token') {
      const issued = issue();
      callbacks.set(issued, parameters.oauth_callback ?? '');
      return send(
        `oauth_token=${issued}&oauth_token_secret=${secrets.get(issued)}&oauth_callback_confirmed=true`,
      );
    }
    if (url.pathname === '/oauth/access_token' && parameters.oauth_verifier === 'verifier-1') {
      const issued = issue();
      return send(`oauth_token=${issued}&oauth_token_secret=${secrets.get(issued)}&screen_name=ada`);
    }
    return response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        id_str: '38895958',
        name: 'Ada Lovelace',
        screen_name: 'ada',
        email: 'ada@example.com',
        profile_image_url_https: 'https://images.example/ada',
      }),
    );
  });
  base = `http://127.0.0.1:${server.port}`;
  return base;
}

t.test('twitter signs a user in by OAuth 1.0a', async (t) => {
  const server = await startAuthServer(t, {
    EXTERNAL_TWITTER_ENABLED: 'true',
    EXTERNAL_TWITTER_CLIENT_ID: 'consumer-key',
    EXTERNAL_TWITTER_SECRET: 'consumer-secret',
    EXTERNAL_TWITTER_URL: await startTwitter(t),
  });
  const browser = new Browser({ [apiUrl]: server.url });
  const landed = await browser.visit(`${apiUrl}/authorize?provider=twitter`, 'https://example.com/');
  const token = new URLSearchParams(landed.hash.slice(1)).get('access_token') ?? '';
  t.not(token, '', landed.search);
  t.match((await server.call('GET', '/user', { token })).body, {
    email: 'ada@example.com',
    identities: [
      { provider: 'twitter', id: '38895958', identity_data: { user_name: 'ada', full_name: 'Ada Lovelace' } },
    ],
  });

  const denied = await browser.open(`${apiUrl}/authorize?provider=twitter`);
  const requests = new URL(denied.headers.get('location') ?? '').searchParams.get('oauth_token') ?? '';
  const callback = await browser.open(`${apiUrl}/callback?denied=${requests}&state=other`);
  t.match(callback.headers.get('location'), /error_code=bad_oauth_state/, 'a state is required as well');
});
