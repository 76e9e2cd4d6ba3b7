// A service that calls an API as itself.
//   ISSUER=https://as.example CLIENT_ID=… CLIENT_SECRET=… API=https://as.example/api/me node client-credentials.ts
import { discoverClient } from '@tollgate/oauth2-client/discovery';

const { ISSUER = '', CLIENT_ID = '', CLIENT_SECRET = '', API = '' } = process.env;

const client = await discoverClient(ISSUER, {
  clientId: CLIENT_ID,
  clientSecret: CLIENT_SECRET,
  allowedOrigins: [API],
});
const token = await client.clientCredentials.getToken({ scope: 'read' });
const { parsed } = await token.get<{ client_id: string }>(API);
console.log(parsed.client_id);
