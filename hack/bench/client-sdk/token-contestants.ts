import { createRequire } from 'node:module';
import { Client } from '@tollgate/oauth2-client';
import * as openid from 'openid-client';
import type { Work } from './measure-round.ts';

/** What this uses of simple-oauth2, which has no types. */
interface SimpleOauth2 {
  ClientCredentials: new (config: {
    client: { id: string; secret: string };
    auth: { tokenHost: string; tokenPath: string };
  }) => { getToken(params: { scope: string }): Promise<{ token: { access_token?: unknown } }> };
}

const clientId = 'bench';
const clientSecret = 'a-secret-of-usual-length';
const scope = 'read write';

/** A client credentials token by each library, and by `fetch` alone, which comes first: the others are measured against it. */
export function tokenContestants(origin: string): Work[] {
  return [bareFetch(origin), ours(origin), openidClient(origin), simpleOauth2(origin)];
}

function bareFetch(origin: string): Work {
  const authorization = `Basic ${btoa(`${clientId}:${clientSecret}`)}`;
  return {
    name: 'fetch',
    run: async () => {
      const response = await fetch(`${origin}/oauth/token`, {
        method: 'POST',
        headers: { authorization, accept: 'application/json' },
        body: new URLSearchParams({ grant_type: 'client_credentials', scope }),
        signal: AbortSignal.timeout(10_000),
      });
      const { access_token } = (await response.json()) as { access_token?: unknown };
      demandToken(access_token);
    },
  };
}

function ours(origin: string): Work {
  const client = new Client({ clientId, clientSecret, site: origin });
  return {
    name: '@tollgate/oauth2-client',
    run: async () => demandToken((await client.clientCredentials.getToken({ scope })).token),
  };
}

function openidClient(origin: string): Work {
  const config = new openid.Configuration(
    { issuer: origin, token_endpoint: `${origin}/oauth/token` },
    clientId,
    undefined,
    openid.ClientSecretBasic(clientSecret),
  );
  openid.allowInsecureRequests(config);
  return {
    name: 'openid-client',
    run: async () => demandToken((await openid.clientCredentialsGrant(config, { scope })).access_token),
  };
}

function simpleOauth2(origin: string): Work {
  // The package has no types: SimpleOauth2 above is what its documentation says.
  const { ClientCredentials } = createRequire(import.meta.url)('simple-oauth2') as SimpleOauth2;
  const client = new ClientCredentials({
    client: { id: clientId, secret: clientSecret },
    auth: { tokenHost: origin, tokenPath: '/oauth/token' },
  });
  return {
    name: 'simple-oauth2',
    run: async () => demandToken((await client.getToken({ scope })).token.access_token),
  };
}

function demandToken(token: unknown) {
  if (typeof token !== 'string' || !token.startsWith('token-')) throw new Error(`no token: ${String(token)}`);
}
