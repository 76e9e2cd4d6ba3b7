// A service that calls an API as itself.
//   SITE=https://as.example CLIENT_ID=… CLIENT_SECRET=… API=https://as.example/api/me node client-credentials.ts
import { Client } from '@tollgate/oauth2-client';

const { SITE = '', CLIENT_ID = '', CLIENT_SECRET = '', API = '' } = process.env;

const client = new Client({ clientId: CLIENT_ID, clientSecret: CLIENT_SECRET, site: SITE });
const token = await client.clientCredentials.getToken({ scope: 'read' });
const { parsed } = await token.get<{ client_id: string }>(API);
console.log(parsed.client_id);
