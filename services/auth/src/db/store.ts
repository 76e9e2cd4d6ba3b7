import type { Sql } from 'postgres';
import { findIdentityStates, type IdentityStateStore } from '../ext-authz/store.ts';
import { type ColumnCipher, resealColumns, type SealedColumnStore } from '../keys/column-encryption.ts';
import { type QuotaCounter, quotaCounter } from '../messages/quotas.ts';
import {
  challengeFactor,
  changeFactor,
  enrollFactor,
  type FactorStore,
  verifyChallenge,
} from '../mfa/store.ts';
import { RefreshTokenStore } from '../sessions/refresh-store.ts';
import { SessionStore } from '../sessions/store.ts';
import { type GuessStore, guessStore } from '../sign-in/guess-store.ts';
import { type FlowStore, flows } from '../sign-in/pkce.ts';
import {
  countEmailConfirmation,
  deleteUser,
  discardUnconfirmed,
  findTaken,
  findUser,
  insertUser,
  listUsers,
  rehashPassword,
  type UserStore,
  updateUser,
} from '../users/store.ts';
import { type OneTimeTokenStore, oneTimeTokens } from '../verification/store.ts';
import { type AuditStore, appendAuditEntry, listAuditEntries } from './audit-log.ts';
import { type CleanupStore, cleanup } from './cleanup.ts';
import { type Queryable, query } from './query.ts';
import {
  describeProblems,
  schemaProblemsOf,
  schemaProblemsParameters,
  schemaProblemsQuery,
  usedColumns,
} from './schema.ts';

/**
 * All that is kept. Each function is one statement: atomic by itself, and its audit entry with it.
 * Several that must hold together run in `transaction`.
 */
export interface Store {
  readonly users: UserStore;
  readonly sessions: SessionStore;
  readonly refreshTokens: RefreshTokenStore;
  readonly factors: FactorStore;
  readonly audit: AuditStore;
  readonly oneTimeTokens: OneTimeTokenStore;
  readonly flows: FlowStore;
  readonly quotas: QuotaCounter;
  readonly guesses: GuessStore;
  readonly cleanup: CleanupStore;
  readonly sealedColumns: SealedColumnStore;
  readonly identityStates: IdentityStateStore;
  /** Runs `work` in a transaction, which is rolled back when it throws. `work` must use the store it is given. */
  transaction<T>(work: (store: Store) => Promise<T>): Promise<T>;
  /** Rejects when the database does not answer, or lacks a column that requests use. */
  ping(): Promise<void>;
}

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
    sessions: new SessionStore(sql, cipher),
    refreshTokens: new RefreshTokenStore(sql, cipher),
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
