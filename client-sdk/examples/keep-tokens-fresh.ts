// Many calls share one token: it is acquired at first use, renewed once before it expires, and
// stored in files for the next run and other processes.
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
