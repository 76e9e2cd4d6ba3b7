import { Agent, get } from 'node:http';
import { awaitUntil } from '@tollgate/testkit/await-until';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { startAuthServer } from '../helpers/auth-server.ts';
import { startMailingServer } from '../helpers/mail-server.ts';

/**
 * A server with a request in flight: it waits for the mail server, which has yet to take a mail.
 */
async function withRequestInFlight(t: Test, variables: Readonly<Record<string, string>> = {}) {
  const { server, smtp } = await startMailingServer(t, variables);
  smtp.hold(true);
  const body = { email: 'ada@example.com', password: 'correct horse' };
  const answer = server.call('POST', '/signup', { body });
  // Awaited later; prevents an unhandled rejection until then.
  answer.catch(() => undefined);
  const sql = postgres(server.databaseUrl, { max: 1 });
  await awaitUntil(async () => (await sql`select from auth.one_time_tokens`).length > 0, {
    what: 'the request to be under way',
  });
  await sql.end();
  return { server, smtp, answer };
}

t.test('a stopping server completes requests in flight and accepts no new ones', async (t) => {
  const { server, smtp, answer } = await withRequestInFlight(t);
  const stopped = server.stop();
  await awaitUntil(
    () =>
      server.call('GET', '/health').then(
        () => false,
        () => true,
      ),
    {
      what: 'new requests to be refused',
    },
  );
  smtp.hold(false);
  t.equal((await answer).status, 200);
  t.match(await stopped, { failed: false, late: [] });
});

t.test('requests that exceed DRAIN_TIMEOUT are aborted', async (t) => {
  const { server, answer } = await withRequestInFlight(t, { DRAIN_TIMEOUT: '50ms' });
  t.match(await server.stop(), { failed: false });
  await t.rejects(answer, { message: 'fetch failed' });
});

t.test('during SHUTDOWN_DELAY responses close keep-alive connections', async (t) => {
  const server = await startAuthServer(t, { SHUTDOWN_DELAY: '3s' });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  const connectionOf = (url: string): Promise<string | undefined> =>
    new Promise((resolve, reject) => {
      get(url, { agent }, (answer) => {
        answer.resume();
        answer.once('end', () => resolve(answer.headers.connection));
      }).once('error', reject);
    });
  const urls = [`${server.url}/health`, `http://127.0.0.1:${server.extAuthz.http}/x`];
  for (const url of urls) t.equal(await connectionOf(url), 'keep-alive', url);
  void server.stop();
  for (const url of urls) {
    // The first one comes on the connection of before, the second one on a new one.
    t.equal(await connectionOf(url), 'close', url);
    t.equal(await connectionOf(url), 'close', url);
  }
});
