import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t from 'tap';
import { type ServerCommand, startServerCommand } from './helpers/server-command.ts';

/** What the server has acknowledged of one user. */
interface Known {
  readonly email: string;
  accessToken: string;
  refreshToken: string;
}

const workers = 6;
/** A lost answer must not end the session while the server is away. */
const variables = { SVC_SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: '10m', LOG_LEVEL: 'info' };

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
