import t from 'tap';
import { Client } from '../src/client.ts';
import { createAuthorizationServer } from '../src/testing/authorization-server.ts';
import { exchangeToken, tokenTypes } from '../src/token-exchange.ts';

function makeClient() {
  const server = createAuthorizationServer();
  const client = new Client({
    clientId: 'client',
    clientSecret: 'secret',
    site: server.issuer,
    fetch: server.fetch,
  });
  return { server, client };
}

t.test('a token is exchanged for one with a narrower scope', async (t) => {
  const { server, client } = makeClient();
  const { access_token: subjectToken } = await server.issueTokens({ scope: 'read write' });
  const token = await exchangeToken(client, { subjectToken, scope: ['read'] });
  t.ok(server.isActive(token.token));
  t.same(token.scope, ['read']);
  t.equal(token.param('issued_token_type'), tokenTypes.accessToken);
});

t.test('parameters of RFC 8693 have their wire names, lists are repeated', async (t) => {
  const { server, client } = makeClient();
  const exchange = {
    subjectToken: 's',
    subjectTokenType: tokenTypes.jwt,
    actorToken: 'a',
    requestedTokenType: tokenTypes.idToken,
    resource: ['https://a.test', 'https://b.test'],
    audience: ['x', 'y'],
    scope: 'read write',
    params: { custom: '1', grant_type: 'not this' },
  };
  await t.rejects(exchangeToken(client, exchange), { name: 'TokenResponseError', code: 'invalid_request' });
  const sent = server.requests.at(-1)?.params ?? new URLSearchParams();
  t.same([...sent].sort(), [
    ['actor_token', 'a'],
    ['actor_token_type', 'urn:ietf:params:oauth:token-type:access_token'],
    ['audience', 'x'],
    ['audience', 'y'],
    ['custom', '1'],
    ['grant_type', 'urn:ietf:params:oauth:grant-type:token-exchange'],
    ['requested_token_type', 'urn:ietf:params:oauth:token-type:id_token'],
    ['resource', 'https://a.test'],
    ['resource', 'https://b.test'],
    ['scope', 'read write'],
    ['subject_token', 's'],
    ['subject_token_type', 'urn:ietf:params:oauth:token-type:jwt'],
  ]);
});

t.test('absent parameters are not sent, and throwOnError false returns the failure', async (t) => {
  const { server, client } = makeClient();
  const outcome = await exchangeToken<boolean>(client, { subjectToken: 'unknown' }, { throwOnError: false });
  t.match(outcome, { ok: false, error: { code: 'invalid_request' } });
  const names = [...(server.requests.at(-1)?.params.keys() ?? [])].sort();
  t.same(names, ['grant_type', 'subject_token', 'subject_token_type']);
});
