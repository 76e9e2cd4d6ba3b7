// Uses a generic OAuth 2.0 client.
import { createHash, randomBytes } from 'node:crypto';
import { Client, OAuthError } from '@tollgate/oauth2-client';
import t from 'tap';
import { type AuthServer, signUp, startAuthServer } from '../../helpers/auth-server.ts';
import { linkIn, startMailingServer } from '../../helpers/mail-server.ts';

const ada = { email: 'ada@example.com', password: 'correct horse' };

function clientOf({ url }: Pick<AuthServer, 'url'>) {
  return new Client({
    clientId: 'shop',
    site: url,
    tokenEndpoint: '/token',
    redirectUri: 'https://example.com/x',
  });
}

t.test('client signs in by password, calls the API and refreshes the token', async (t) => {
  const server = await startAuthServer(t);
  await signUp(server, ada);
  const token = await clientOf(server).password.getToken(ada.email, ada.password);
  t.match((await token.get('/user')).parsed, { email: ada.email });
  const next = await token.refresh();
  t.not(next.refreshToken, token.refreshToken);
  t.match((await next.get('/user')).parsed, { email: ada.email });
});

t.test('errors have the form of OAuth 2.0', async (t) => {
  const server = await startAuthServer(t);
  const client = clientOf(server);
  const refusalOf = (requests: Promise<unknown>) =>
    requests.then(
      () => undefined,
      (error: unknown) => (error instanceof OAuthError ? [error.status, error.code] : error),
    );
  t.same(await refusalOf(client.password.getToken(ada.email, 'wrong')), [400, 'invalid_grant']);
  t.same(await refusalOf(client.authCode.getToken('made up', { code_verifier: 'x' })), [
    400,
    'invalid_grant',
  ]);
  t.same(await refusalOf(client.clientCredentials.getToken()), [400, 'unsupported_grant_type']);
});

t.test('client exchanges the code of a link', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const verifier = randomBytes(32).toString('base64url');
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  const body = { ...ada, code_challenge: challenge, code_challenge_method: 's256' };
  await server.call('POST', '/signup', { body });
  const { pathname, search } = linkIn(await smtp.mailTo(ada.email));
  const { headers } = await server.call('GET', `${pathname}${search}`);
  const code = new URL(headers.get('location') ?? '').searchParams.get('code') ?? '';
  const token = await clientOf(server).authCode.getToken(code, { code_verifier: verifier });
  t.match((await token.get('/user')).parsed, { email: ada.email, email_confirmed_at: String });
});
