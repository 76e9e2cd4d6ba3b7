// Authenticates with a certificate (RFC 8705) to the authorization server and the API.
//   ISSUER=https://as.example CLIENT_ID=… CERT=client.crt KEY=client.key CA=ca.crt API=https://as.example/api/me node mutual-tls.ts
import { readFile } from 'node:fs/promises';
import { discoverClient } from '@tollgate/oauth2-client/discovery';
import { nodeTransport } from '@tollgate/oauth2-client/node';

const { ISSUER = '', CLIENT_ID = '', CERT = '', KEY = '', CA = '', API = '' } = process.env;

using transport = nodeTransport({
  cert: await readFile(CERT, 'utf8'),
  key: await readFile(KEY, 'utf8'),
  ca: await readFile(CA, 'utf8'),
});
const client = await discoverClient(ISSUER, {
  clientId: CLIENT_ID,
  clientAuth: 'tls_client_auth',
  fetch: transport,
  allowedOrigins: [API],
});
const token = await client.clientCredentials.getToken();
console.log((await token.fetch(API)).status);
