// Tells errors apart: OAuthError if a server refused, TransportError if there was no response.
//   ISSUER=https://as.example CLIENT_ID=… CLIENT_SECRET=… node handle-errors.ts
import { OAuthError, TransportError } from '@tollgate/oauth2-client';
import { discoverClient } from '@tollgate/oauth2-client/discovery';

const { ISSUER = '', CLIENT_ID = '' } = process.env;

const client = await discoverClient(ISSUER, {
  clientId: CLIENT_ID,
  clientSecret: 'not the secret',
  timeoutMs: 10_000,
});
try {
  await client.clientCredentials.getToken();
} catch (error) {
  if (error instanceof OAuthError) {
    console.log(`refused with ${error.status}: ${error.code}`);
    if (error.retryAfterMs !== undefined) console.log(`try again in ${error.retryAfterMs} ms`);
  } else if (error instanceof TransportError) {
    console.log(`no answer (${error.kind})`, error.cause);
  } else throw error;
}

// Without exceptions, `ok` distinguishes a token from a failure.
const outcome = await client.clientCredentials.getToken({}, { throwOnError: false });
console.log(outcome.ok ? 'a token' : `no token: ${outcome.error.code}`);
