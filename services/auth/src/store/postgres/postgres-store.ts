import type { Sql } from 'postgres';
import type { ColumnCipher } from '../../encryption/column-cipher.ts';
import type { Store } from '../../ports/store.ts';
import { appendAuditEntry } from './audit/append-audit-entry.ts';
import { listAuditEntries } from './audit/list-audit-entries.ts';
import { cleanup } from './cleanup/remove-expired.ts';
import { resealColumns } from './encryption/reseal.ts';
import { challengeFactor } from './factors/challenge-factor.ts';
import { changeFactor } from './factors/change-factor.ts';
import { enrollFactor } from './factors/enroll-factor.ts';
import { verifyChallenge } from './factors/verify-challenge.ts';
import { flows } from './flows/flows.ts';
import { findIdentityStates } from './identity-states/find-identity-states.ts';
import { guessStore } from './limits/guess-store.ts';
import { quotaCounter } from './limits/quota-counter.ts';
import { oneTimeTokens } from './one-time-tokens/one-time-tokens.ts';
import { type Queryable, query } from './query.ts';
import {
  describeProblems,
  schemaProblemsOf,
  schemaProblemsParameters,
  schemaProblemsQuery,
} from './schema/schema-problems.ts';
import { usedColumns } from './schema/used-columns.ts';
import { advanceCounter } from './sessions/advance-counter.ts';
import { endSessions } from './sessions/end-sessions.ts';
import { findSession } from './sessions/find-session.ts';
import { listSessions } from './sessions/list-sessions.ts';
import { refreshSession } from './sessions/refresh-session.ts';
import { startSession } from './sessions/start-session.ts';
import { countEmailConfirmation } from './users/count-email-confirmation.ts';
import { deleteUser } from './users/delete-user.ts';
import { discardUnconfirmed } from './users/discard-unconfirmed.ts';
import { findTaken } from './users/find-taken.ts';
import { findUser } from './users/find-user.ts';
import { insertUser } from './users/insert-user.ts';
import { listUsers } from './users/list-users.ts';
import { rehashPassword } from './users/rehash-password.ts';
import { updateUser } from './users/update-user.ts';

/** How rows are written. */
export interface WriteOptions {
  /** Keeps one-time tokens in the form and places that GoTrue reads. Default false: as digests. */
  readonly dbSharedWithGotrue?: boolean;
}

/** The store over a pool of connections, with what is to be encrypted sealed by `cipher`; a new function is a file and a line here. */
export function createPostgresStore(sql: Sql, cipher: ColumnCipher, options: WriteOptions = {}): Store {
  return {
    ...tablesOver(sql, cipher, options),
    // The library's type unwraps arrays of queries, which a store never answers.
    transaction: <T>(work: (store: Store) => Promise<T>) =>
      sql.begin((connection) => work(storeWithin(connection, cipher, options))) as Promise<T>,
    ping: () => ping(sql),
  };
}

async function ping(sql: Queryable): Promise<void> {
  const rows = await query(sql, schemaProblemsQuery, schemaProblemsParameters(usedColumns));
  const problems = describeProblems(schemaProblemsOf(rows));
  if (problems !== undefined) throw new Error(`the schema ${problems}`);
}

function tablesOver(
  sql: Queryable,
  cipher: ColumnCipher,
  { dbSharedWithGotrue = false }: WriteOptions,
): Omit<Store, 'transaction' | 'ping'> {
  return {
    users: {
      ...findUser(sql),
      list: listUsers(sql),
      findTaken: findTaken(sql),
      insert: insertUser(sql, cipher),
      update: updateUser(sql, cipher),
      discardUnconfirmed: discardUnconfirmed(sql),
      countEmailConfirmation: countEmailConfirmation(sql),
      ...deleteUser(sql),
      rehashPassword: rehashPassword(sql, cipher),
    },
    sessions: {
      ...findSession(sql, cipher),
      ...refreshSession(sql),
      ...advanceCounter(sql, cipher),
      start: startSession(sql, cipher),
      end: endSessions(sql),
      ...listSessions(sql),
    },
    factors: {
      ...enrollFactor(sql, cipher),
      ...challengeFactor(sql, cipher),
      ...changeFactor(sql),
      verify: verifyChallenge(sql, cipher),
    },
    audit: { append: appendAuditEntry(sql), list: listAuditEntries(sql) },
    oneTimeTokens: oneTimeTokens(sql, { asSent: dbSharedWithGotrue }),
    flows: flows(sql),
    quotas: quotaCounter(sql),
    guesses: guessStore(sql),
    cleanup: cleanup(sql),
    sealedColumns: resealColumns(sql, cipher),
    identityStates: findIdentityStates(sql),
  };
}

/** Within a transaction a further one is part of it. */
function storeWithin(connection: Queryable, cipher: ColumnCipher, options: WriteOptions): Store {
  const store: Store = {
    ...tablesOver(connection, cipher, options),
    transaction: (work) => work(store),
    ping: () => ping(connection),
  };
  return store;
}
