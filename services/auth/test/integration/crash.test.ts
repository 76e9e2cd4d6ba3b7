import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { temporaryFolder } from '@tollgate/testkit/folders';
import postgres, { type Sql } from 'postgres';
import t from 'tap';
import { type Link, startLink } from '../helpers/link.ts';
import { type ServerCommand, startServerCommand } from '../helpers/server-command.ts';
import { testDatabase } from '../helpers/test-database.ts';

/** Acknowledged changes of one user. */
interface Known {
  readonly email: string;
  accessToken: string;
  refreshToken: string;
}

const workers = 6;
const variables = { LOG_LEVEL: 'info' };

async function post(url: string, body: unknown): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

/**
 * Signs users up and refreshes their sessions until the server is gone; keeps what was
 * acknowledged.
 */
async function load(server: ServerCommand, known: Known[], crash: AbortSignal): Promise<void> {
  try {
    for (;;) {
      const email = `${randomUUID()}@example.com`;
      const signedUp = await post(`${server.url}/signup`, { email, password: 'correct horse' });
      if (signedUp.status !== 200) throw new Error(await signedUp.text());
      const user = await read(signedUp, { email });
      known.push(user);
      for (let refreshes = 0; refreshes < 3; refreshes++) {
        const answer = await post(`${server.url}/token?grant_type=refresh_token`, {
          refresh_token: user.refreshToken,
        });
        if (answer.status !== 200) throw new Error(await answer.text());
        Object.assign(user, await read(answer, { email }));
      }
    }
  } catch (error) {
    // The connection is cut when the server is killed, or it says that its database is; before that
    // it is a failure of this test.
    if (!crash.aborted) throw error;
  }
}

async function read(response: Response, { email }: { readonly email: string }): Promise<Known> {
  // Parsed boundary: the form of a session.
  const session = (await response.json()) as { access_token: string; refresh_token: string };
  return { email, accessToken: session.access_token, refreshToken: session.refresh_token };
}

async function killDuringLoad(server: ServerCommand, known: Known[], crash: () => Promise<void>) {
  const before = known.length;
  const crashing = new AbortController();
  const running = Array.from({ length: workers }, () => load(server, known, crashing.signal));
  await awaitUntil(() => known.length >= before + 12, { what: 'users', timeoutMs: 60_000 });
  crashing.abort();
  await crash();
  await Promise.all(running);
}

t.test('after a SIGKILL under load no committed data is lost and the server recovers', async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const known: Known[] = [];

  const first = await startServerCommand(folder.path, variables);
  await killDuringLoad(first, known, first.kill);

  // At once: PostgreSQL may still be shutting down, or may not have noticed yet.
  const second = await startServerCommand(folder.path, variables);
  await killDuringLoad(second, known, async () => {
    // Both at once, as when the machine loses power: the lock file of PostgreSQL stays behind.
    const [postmaster] = readFileSync(join(folder.path, 'data/postmaster.pid'), 'utf8').split('\n');
    process.kill(Number(postmaster), 'SIGKILL');
    await second.kill();
  });

  const third = await startServerCommand(folder.path, variables);
  t.teardown(third.stop);
  for (const { email, accessToken, refreshToken } of known) {
    const user = await fetch(`${third.url}/user`, { headers: { authorization: `Bearer ${accessToken}` } });
    t.match(await user.json(), { email });
    const refreshed = await post(`${third.url}/token?grant_type=refresh_token`, {
      refresh_token: refreshToken,
    });
    t.equal(refreshed.status, 200, await refreshed.text());
  }
  t.ok(known.length >= 24);
  t.equal(await third.stop(), 0, 'asked to, it ends in order');
});

/** Whether a statement of the server waits for a lock. */
async function isServerWaiting(sql: Sql): Promise<boolean> {
  const rows = await sql`select 1 from pg_stat_activity
    where application_name = 'tollgate-auth' and wait_event_type = 'Lock' and datname = current_database()`;
  return rows.length > 0;
}

/** Kills the server once it has committed a refresh, and before it can answer. */
async function killBetweenCommitAndAnswer(
  server: ServerCommand,
  { refreshToken, sql, link }: { readonly refreshToken: string; readonly sql: Sql; readonly link: Link },
): Promise<void> {
  const lost = await sql.begin(async (locking) => {
    await locking`select 1 from auth.sessions for update`;
    const request = post(`${server.url}/token?grant_type=refresh_token`, { refresh_token: refreshToken });
    const rejected = t.rejects(request, 'no answer');
    await awaitUntil(() => isServerWaiting(sql), { what: 'the refresh to wait for the session' });
    link.dropAnswers();
    // A promise would be awaited here, with the lock.
    return { rejected };
  });
  const isCommitted = async () =>
    (await sql`select 1 from auth.sessions where refreshed_at is not null`).length > 0;
  await awaitUntil(isCommitted, { what: 'the refresh to be committed' });
  await server.kill();
  await lost.rejected;
}

for (const version of ['1', '2'])
  t.test(
    `a refresh whose answer was lost by SIGKILL can be repeated with tokens of version ${version}`,
    async (t) => {
      const { url } = await testDatabase(t);
      const sql = postgres(url, { max: 2 });
      t.teardown(() => sql.end());
      const folder = temporaryFolder();
      t.teardown(folder.remove);
      const start = (databaseUrl: string) =>
        startServerCommand(folder.path, {
          ...variables,
          SVC_DB_DATABASE_URL: databaseUrl,
          SVC_SECURITY_REFRESH_TOKEN_ALGORITHM_VERSION: version,
        });
      const link = await startLink(t, url);
      const first = await start(link.url);
      const email = 'ada@example.com';
      const user = await read(await post(`${first.url}/signup`, { email, password: 'correct horse' }), {
        email,
      });
      await killBetweenCommitAndAnswer(first, { refreshToken: user.refreshToken, sql, link });
      // Long after the reuse interval.
      await sql`update auth.sessions set refreshed_at = refreshed_at - interval '1 day'`;
      await sql`update auth.refresh_tokens set updated_at = updated_at - interval '1 day'`;

      const second = await start(url);
      t.teardown(second.stop);
      const refresh = (refreshToken: string) =>
        post(`${second.url}/token?grant_type=refresh_token`, { refresh_token: refreshToken });
      const repeated = await refresh(user.refreshToken);
      t.equal(repeated.status, 200);
      const next = await read(repeated, { email });
      t.not(next.refreshToken, user.refreshToken);
      t.equal((await refresh(next.refreshToken)).status, 200, 'the session goes on');
    },
  );
