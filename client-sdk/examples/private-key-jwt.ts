// Authenticates with a private key instead of a secret (RFC 7523 §2.2).
//   ISSUER=https://as.example CLIENT_ID=… KEY_FILE=key.pem API=https://as.example/api/me node private-key-jwt.ts
import { readFile } from 'node:fs/promises';
import { discoverClient } from '@tollgate/oauth2-client/discovery';

const { ISSUER = '', CLIENT_ID = '', KEY_FILE = '', API = '' } = process.env;

const client = await discoverClient(ISSUER, {
  clientId: CLIENT_ID,
  allowedOrigins: [API],
  clientAuth: {
    method: 'private_key_jwt',
    algorithm: 'ES256',
    key: await readFile(KEY_FILE, 'utf8'),
    keyId: 'key-1',
  },
});
const token = await client.clientCredentials.getToken();
const response = await token.fetch(API);
console.log(response.status);
