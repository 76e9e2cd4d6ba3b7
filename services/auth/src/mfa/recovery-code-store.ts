import { type AuditEntry, auditInsert, auditParameters } from '../audit/audit-log.ts';
import { isUniqueViolation, lockOwner, type Queryable, query } from '../db/connection.ts';
import type { ColumnCipher } from '../keys/secrets.ts';
import { type RaisedSession, raiseParameters, raiseSql, type SessionRaise, toRaise } from './raise-sql.ts';

/** The codes of a user, of which there is one set. */
export interface RecoveryCodeSet {
  /** In the list of the user's factors. */
  readonly factorId: string;
  readonly total: number;
  readonly unused: readonly { readonly id: string; readonly hash: string }[];
  /** Set by GoTrue and older versions after too many wrong codes. */
  readonly lockedUntil: Date | undefined;
}

interface NewCodes {
  readonly userId: string;
  readonly hashes: readonly string[];
  readonly at: Date;
}

/** Recovery codes, in the tables of GoTrue. Only their hashes are stored. */
export class RecoveryCodeStore {
  readonly #sql: Queryable;
  readonly #cipher: ColumnCipher;
  readonly #onChange: ((userId: string) => void) | undefined;

  constructor(sql: Queryable, cipher: ColumnCipher, onChange?: (userId: string) => void) {
    this.#sql = sql;
    this.#cipher = cipher;
    this.#onChange = onChange;
  }

  async find(userId: string): Promise<RecoveryCodeSet | undefined> {
    const [row] = await query(this.#sql, findSql, [userId]);
    if (row === undefined) return undefined;
    // Parsed boundary: the columns selected by the statement, with the types of the schema.
    const r = row as unknown as SetRow;
    return {
      factorId: r.mfa_factor_id,
      total: r.total,
      unused: r.unused,
      lockedUntil: r.verification_locked_until ?? undefined,
    };
  }

  /**
   * Stores a set with its factor. Returns false when the user has one already, another factor has
   * the name, or no other factor is verified.
   */
  async enroll(
    {
      userId,
      hashes,
      at,
      ...factor
    }: NewCodes & { readonly factorId: string; readonly friendlyName: string },
    audit: AuditEntry,
  ): Promise<boolean> {
    const { factorId, friendlyName } = factor;
    const parameters = [factorId, userId, friendlyName, at, [...hashes], ...auditParameters(audit)];
    try {
      return (await query(this.#sql, enrollSql, parameters)).length > 0;
    } catch (error) {
      if (isUniqueViolation(error)) return false;
      throw error;
    }
  }

  /**
   * Replaces all codes, and ends a lockout. Returns false when there are none, or they are replaced
   * concurrently.
   */
  async replace({ userId, hashes, at }: NewCodes, audit: AuditEntry): Promise<boolean> {
    const parameters = [userId, at, [...hashes], ...auditParameters(audit)];
    return (await query(this.#sql, replaceSql, parameters)).length > 0;
  }

  /**
   * Spends a code, raises the session to `aal2` as a verified challenge does, and ends a lockout of
   * GoTrue. Returns false when the code has been spent concurrently, codes are locked, or
   * the session has ended.
   */
  async redeem(
    { codeId, ...session }: RaisedSession & { readonly codeId: string },
    audit: AuditEntry,
  ): Promise<SessionRaise | false> {
    const parameters = [codeId, ...raiseParameters(session), ...auditParameters(audit)];
    const [row] = await query(this.#sql, redeemSql, parameters);
    this.#onChange?.(session.userId);
    return row !== undefined && toRaise(row, session.sessionId, this.#cipher);
  }
}

const findSql = `
  select s.mfa_factor_id, s.verification_locked_until, count(c.id)::integer as total,
    coalesce(json_agg(json_build_object('id', c.id, 'hash', c.code_hash)) filter (where c.consumed_at is null and c.id is not null), '[]')
      as unused
  from mfa_recovery_code_sets s left join mfa_recovery_codes c on c.mfa_recovery_code_set_id = s.id
  where s.user_id = $1 group by s.id`;

interface SetRow {
  readonly mfa_factor_id: string;
  readonly verification_locked_until: Date | null;
  readonly total: number;
  readonly unused: RecoveryCodeSet['unused'];
}

const insertCodes = (set: string, hashes: `$${number}`, at: `$${number}`): string => `
  insert into mfa_recovery_codes (id, mfa_recovery_code_set_id, code_hash, created_at)
  select gen_random_uuid(), ${set}.id, code.hash, ${at} from ${set}, unnest(${hashes}::text[]) as code (hash)`;

const enrollSql = `
  with owner as (${lockOwner('$2')}), enrolled as (
    insert into mfa_factors (id, user_id, friendly_name, factor_type, status, secret, created_at, updated_at)
    select $1, id, $3, 'recovery_code', 'verified', '', $4, $4 from owner
    where exists (select 1 from mfa_factors where user_id = $2 and status = 'verified' and factor_type <> 'recovery_code')
    on conflict do nothing
    returning id
  ), code_set as (
    insert into mfa_recovery_code_sets (id, user_id, mfa_factor_id, created_at, updated_at)
    select gen_random_uuid(), $2, id, $4, $4 from enrolled
    returning id
  ), codes as (${insertCodes('code_set', '$5', '$4')}), audit as (${auditInsert(6, 'code_set')})
  select id from code_set`;

// A new set, because deleting the old one deletes all of its codes, also concurrently added ones.
const replaceSql = `
  with removed as (delete from mfa_recovery_code_sets where user_id = $1 returning mfa_factor_id), code_set as (
    insert into mfa_recovery_code_sets (id, user_id, mfa_factor_id, created_at, updated_at)
    select gen_random_uuid(), $1, mfa_factor_id, $2, $2 from removed
    returning id
  ), codes as (${insertCodes('code_set', '$3', '$2')}), audit as (${auditInsert(4, 'code_set')})
  select id from code_set`;

const redeemSql = `
  with owner as (${lockOwner('$3')}), code_set as (
    select id from mfa_recovery_code_sets
    where user_id = (select id from owner) and mfa_factor_id = $2
      and (verification_locked_until is null or verification_locked_until <= $7)
    for update
  ), spent as (
    update mfa_recovery_codes set consumed_at = $7
    where id = $1 and mfa_recovery_code_set_id = (select id from code_set) and consumed_at is null
      and exists (select 1 from sessions where id = $4 and user_id = $3)
    returning mfa_recovery_code_set_id as id
  ), reset as (
    update mfa_recovery_code_sets
    set failed_verification_count = 0, verification_locked_until = null, updated_at = $7
    where id = (select id from spent)
  ), ${raiseSql('spent')}, audit as (${auditInsert(8, 'raised')})
  select * from raised`;
