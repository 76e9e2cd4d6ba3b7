// Many calls, one token: it is fetched when first needed, renewed once when it runs out, and kept in files so that
// the next run, or another process, goes on with it.
//   ISSUER=https://as.example CLIENT_ID=… CLIENT_SECRET=… API=https://as.example/api/me STORE=./tokens node keep-tokens-fresh.ts
import { discoverClient } from '@tollgate/oauth2-client/discovery';
import { fileTokenStore } from '@tollgate/oauth2-client/node';
import { TokenManager } from '@tollgate/oauth2-client/token-manager';

const { ISSUER = '', CLIENT_ID = '', CLIENT_SECRET = '', API = '', STORE = 'tokens' } = process.env;

const client = await discoverClient(ISSUER, {
  clientId: CLIENT_ID,
  clientSecret: CLIENT_SECRET,
  allowedOrigins: [API],
});
await using manager = new TokenManager({
  client,
  store: fileTokenStore({ folder: STORE }),
  acquire: () => client.clientCredentials.getToken({ scope: 'read' }),
});
const responses = await Promise.all(Array.from({ length: 20 }, () => manager.fetch(API)));
console.log(responses.filter(({ ok }) => ok).length);
