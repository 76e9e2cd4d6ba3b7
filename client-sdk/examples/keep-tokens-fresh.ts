// Many calls, one token: it is fetched when first needed, renewed once when it runs out, and kept in a file so that
// the next run, or another process, goes on with it.
//   SITE=https://as.example CLIENT_ID=… CLIENT_SECRET=… API=https://as.example/api/me STORE=token.json node keep-tokens-fresh.ts
import { Client } from '@tollgate/oauth2-client';
import { fileStore } from '@tollgate/oauth2-client/node';
import { TokenManager } from '@tollgate/oauth2-client/token-manager';

const { SITE = '', CLIENT_ID = '', CLIENT_SECRET = '', API = '', STORE = 'token.json' } = process.env;

const client = new Client({ clientId: CLIENT_ID, clientSecret: CLIENT_SECRET, site: SITE });
await using manager = new TokenManager({
  client,
  store: fileStore(STORE),
  acquire: () => client.clientCredentials.getToken({ scope: 'read' }),
});
const responses = await Promise.all(Array.from({ length: 20 }, () => manager.fetch(API)));
console.log(responses.filter(({ ok }) => ok).length);
