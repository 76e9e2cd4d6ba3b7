import { Client } from '../../src/index.ts';
import { type AuthorizationServer, createAuthorizationServer } from '../../src/testing.ts';
import { TokenManager, type TokenManagerOptions } from '../../src/token-manager.ts';

/** A client of a test server. */
export function makeClient(server: AuthorizationServer): Client {
  return new Client({
    ...{ site: server.issuer, clientId: 'client', clientSecret: 'secret' },
    ...{ fetch: server.fetch, now: server.now },
  });
}

/**
 * A server whose clock stands still unless it is advanced, its client, and a token of it with a
 * refresh token. Tokens live an hour.
 */
export async function startGrant(server = createAuthorizationServer({ now: () => 1_800_000_000 })) {
  const client = makeClient(server);
  return { server, client, token: await client.password.getToken('user', 'password', { scope: 'a' }) };
}

/** A manager without chance: no jitter, no cooldown. */
export function makeManager(options: TokenManagerOptions): TokenManager {
  return new TokenManager({ jitterSeconds: 0, cooldownMs: 0, random: () => 0, ...options });
}
