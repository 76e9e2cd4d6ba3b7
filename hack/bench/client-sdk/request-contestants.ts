import { AccessToken, Client, type Fetch } from '@tollgate/oauth2-client';
import { TokenManager } from '@tollgate/oauth2-client/token-manager';
import type { Work } from './measure-round.ts';

/** An authorized request that is read to its end: by `fetch` alone, which comes first, and by each way of ours. */
export function requestContestants(origin: string, send: Fetch = fetch): Work[] {
  const url = `${origin}/resource`;
  const client = new Client({ clientId: 'bench', clientSecret: 'secret', site: origin, fetch: send });
  const token = AccessToken.fromHash(client, {
    access_token: 'token-0',
    token_type: 'Bearer',
    expires_in: 3600,
  });
  const manager = new TokenManager({ client, token });
  return [
    {
      name: 'fetch',
      run: async () => {
        const response = await send(url, { headers: { authorization: 'Bearer token-0' } });
        demandBody(await response.text());
      },
    },
    { name: 'token.fetch', run: async () => demandBody(await (await token.fetch(url)).text()) },
    { name: 'token.get', run: async () => demandBody((await token.get(url)).body) },
    { name: 'manager.fetch', run: async () => demandBody(await (await manager.fetch(url)).text()) },
  ];
}

function demandBody(body: string) {
  if (!body.startsWith('{"id":7')) throw new Error(`not the resource: ${body}`);
}
