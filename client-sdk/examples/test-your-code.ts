// Tests of code that needs tokens, without a network: the authorization server is a `fetch`.
//   node --test test-your-code.ts
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client } from '@tollgate/oauth2-client';
import { createAuthorizationServer } from '@tollgate/oauth2-client/testing';
import { TokenManager } from '@tollgate/oauth2-client/token-manager';

test('an hour later, fifty calls cause one refresh', async () => {
  const server = createAuthorizationServer({ accessTokenTtlSeconds: 3600 });
  const client = new Client({
    clientId: 'client',
    clientSecret: 'secret',
    site: server.issuer,
    fetch: server.fetch,
    now: server.now,
  });
  const token = await client.password.getToken('user', 'password');
  await using manager = new TokenManager({ client, token });
  server.advance(3601);
  const calls = Array.from({ length: 50 }, () => manager.fetch(`${server.endpoints.resource}/orders`));
  const statuses = (await Promise.all(calls)).map(({ status }) => status);
  assert.deepEqual(new Set(statuses), new Set([200]));
  assert.equal(server.count('token'), 2, 'the first token and one refresh');
});
