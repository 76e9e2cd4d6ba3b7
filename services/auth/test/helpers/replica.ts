import { randomUUID } from 'node:crypto';
import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { type FakeClock, fakeClock } from '@tollgate/testkit/fake-clock';
import type t from 'tap';
import { Store } from '../../src/app/store.ts';
import { auditEntry } from '../../src/audit/audit-log.ts';
import { connect, disconnect } from '../../src/db/connection.ts';
import type { ChangedIds } from '../../src/db/state-reads.ts';
import { IdentityCache } from '../../src/ext-authz/identity-cache.ts';
import { IdentityListener } from '../../src/ext-authz/identity-listener.ts';
import type { User, UserChanges } from '../../src/users/user.ts';
import { metadata, newRefreshToken } from './test-store.ts';
import { unencrypted } from './unencrypted.ts';

/** The parts of a replica that cache users. */
export interface Replica {
  readonly store: Store;
  readonly states: IdentityCache;
  readonly listener: IdentityListener;
  readonly clock: FakeClock;
  /** Changes received since it started to listen, oldest first. */
  readonly received: ChangedIds[];
  logs(): string;
}

/** Starts a replica and waits until it listens. */
export async function startReplica(
  test: Pick<typeof t, 'teardown'>,
  databaseUrl: string,
  { maxStalenessMs }: { readonly maxStalenessMs: number },
): Promise<Replica> {
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 3 });
  test.teardown(() => disconnect(sql));
  const store = new Store(sql, { cipher: unencrypted });
  const clock = fakeClock(metadata.nowMs);
  const states = new IdentityCache({ store: store.identityStates, nowMs: clock.nowMs, maxStalenessMs });
  const received: ChangedIds[] = [];
  const lines: string[] = [];
  const listener = new IdentityListener({
    databaseUrl,
    dbNamespace: 'auth',
    onChange(changed) {
      received.push(changed);
      states.invalidate(changed);
    },
    logger: createLogger({
      level: 'info',
      format: 'json',
      destination: { write: (line) => void lines.push(line) },
    }),
  });
  listener.start();
  test.teardown(() => listener.stop());
  await awaitUntil(() => listener.isUp(), { what: 'the listener to listen' });
  received.length = 0;
  return { store, states, listener, clock, received, logs: () => lines.join('') };
}

/** Starts a session of a user and returns its id. */
export async function startSession(store: Store, user: User): Promise<string> {
  const id = randomUUID();
  await store.sessions.start(
    {
      id,
      userId: user.id,
      aal: 'aal1',
      method: 'password',
      userAgent: '',
      ip: '',
      tag: '',
      refreshToken: newRefreshToken(),
      at: new Date(metadata.nowMs),
    },
    auditEntry(user, 'login', { metadata }),
  );
  return id;
}

/** Changes a user as an administrator would. */
export async function changeUser(store: Store, user: User, changes: UserChanges): Promise<void> {
  const changed = await store.users.update(user.id, changes, {
    at: new Date(metadata.nowMs),
    audit: auditEntry(user, 'user_modified', { metadata }),
  });
  if (!changed.ok) throw new Error(changed.reason);
}
