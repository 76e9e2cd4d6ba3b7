import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';

type Line = Readonly<Record<string, unknown>>;

/** The line of the access log for a request, which is written once it has been answered. */
async function lineOf(server: AuthServer, requestId: string): Promise<Line> {
  const find = (): Line | undefined =>
    server
      .logs()
      .split('\n')
      .filter((text) => text !== '')
      // Parsed boundary: a line of the log is an object of JSON.
      .map((text): Line => JSON.parse(text))
      .find((line) => line.request_id === requestId && line['@message'] === 'request completed');
  const line = await awaitUntil(find, { what: `request ${requestId} in the access log` });
  return line ?? {};
}

const withId = { REQUEST_ID_HEADER: 'x-id' };

t.test('the access log has the audit event of a request, by ids', async (t) => {
  const server = await startAuthServer(t, withId);
  const { userId, refreshToken } = await signUp(server);
  const body = { refresh_token: refreshToken };
  await server.call('POST', '/token?grant_type=refresh_token', { body, headers: { 'x-id': 'refresh' } });
  t.same((await lineOf(server, 'refresh')).auth_audit_event, {
    action: 'token_refreshed',
    log_type: 'token',
    actor_id: userId,
    actor_via_sso: false,
  });
  await server.call('GET', '/settings', { headers: { 'x-id': 'settings' } });
  t.notOk('auth_audit_event' in (await lineOf(server, 'settings')));
});

t.test('query and fragment of a referer are not logged', async (t) => {
  const server = await startAuthServer(t, withId);
  const refererOf = async (id: string, referer: string): Promise<unknown> => {
    await server.call('GET', '/settings', { headers: { 'x-id': id, referer } });
    return (await lineOf(server, id)).referer;
  };
  t.equal(
    await refererOf('page', 'https://user:geheim@app.example.com/in?code=geheim#geheim'),
    'https://app.example.com/in',
  );
  t.equal(await refererOf('no-url', 'nonsense'), undefined);
  t.equal(String(await refererOf('long', `https://app.example.com/${'x'.repeat(1000)}`)).length, 200);
});
