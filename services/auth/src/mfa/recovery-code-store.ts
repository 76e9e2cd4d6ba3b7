import { type AuditEntry, auditInsert } from '../audit/audit-log.ts';
import { isUniqueViolation, type Queryable } from '../db/connection.ts';
import { lockOwner } from '../db/fragments.ts';
import { integer, jsonOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { fragment, parameters, statement } from '../db/statement.ts';
import type { ColumnCipher } from '../keys/secrets.ts';
import {
  type RaisedSession,
  raisedRow,
  raiseParameters,
  raiseSql,
  type SessionRaise,
  toRaise,
} from './raise-sql.ts';

/** The codes of a user, of which there is one set. */
export interface RecoveryCodeSet {
  /** The list of the user's factors has it. */
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
    const row = await find.first(this.#sql, { userId });
    if (row === undefined) return undefined;
    const { mfa_factor_id: factorId, verification_locked_until: lockedUntil, total, unused } = row;
    return { factorId, total, unused, lockedUntil: lockedUntil ?? undefined };
  }

  /**
   * Stores a set with its factor. Returns false when the user has one already, another factor has
   * the name, or no other factor is verified.
   */
  async enroll(
    codes: NewCodes & { readonly factorId: string; readonly friendlyName: string },
    audit: AuditEntry,
  ): Promise<boolean> {
    try {
      return await enroll.matches(this.#sql, { ...codes, audit });
    } catch (error) {
      if (isUniqueViolation(error)) return false;
      throw error;
    }
  }

  /**
   * Replaces all codes, and ends a lockout. Returns false when there are none, or they are replaced
   * concurrently.
   */
  async replace(codes: NewCodes, audit: AuditEntry): Promise<boolean> {
    return replace.matches(this.#sql, { ...codes, audit });
  }

  /**
   * Spends a code, raises the session to `aal2` as a verified challenge does, and ends a lockout of
   * GoTrue. Returns false when the code has been spent concurrently, codes are locked, or
   * the session has ended.
   */
  async redeem(
    session: RaisedSession & { readonly codeId: string },
    audit: AuditEntry,
  ): Promise<SessionRaise | false> {
    const row = await redeem.first(this.#sql, { ...session, audit });
    this.#onChange?.(session.userId);
    return row !== undefined && toRaise(row, session.sessionId, this.#cipher);
  }
}

const p = {
  ...raiseParameters,
  ...parameters(uuid, 'codeId'),
  ...parameters(text.list, 'hashes'),
  ...parameters(text, 'friendlyName'),
};

const setRow = {
  mfa_factor_id: uuid,
  verification_locked_until: timestamptz.orNull,
  total: integer,
  unused: jsonOf<RecoveryCodeSet['unused']>(),
};

const find = statement(setRow)`
  select s.mfa_factor_id, s.verification_locked_until, count(c.id)::integer as total,
    coalesce(json_agg(json_build_object('id', c.id, 'hash', c.code_hash)) filter (where c.consumed_at is null and c.id is not null), '[]')
      as unused
  from mfa_recovery_code_sets s left join mfa_recovery_codes c on c.mfa_recovery_code_set_id = s.id
  where s.user_id = ${p.userId} group by s.id`;

const insertCodes = fragment`
  insert into mfa_recovery_codes (id, mfa_recovery_code_set_id, code_hash, created_at)
  select gen_random_uuid(), code_set.id, code.hash, ${p.at} from code_set, unnest(${p.hashes}::text[]) as code (hash)`;

const enroll = statement({})`
  with owner as (${lockOwner(p.userId)}), enrolled as (
    insert into mfa_factors (id, user_id, friendly_name, factor_type, status, secret, created_at, updated_at)
    select ${p.factorId}, id, ${p.friendlyName}, 'recovery_code', 'verified', '', ${p.at}, ${p.at} from owner
    where exists (select 1 from mfa_factors where user_id = ${p.userId} and status = 'verified' and factor_type <> 'recovery_code')
    on conflict do nothing
    returning id
  ), code_set as (
    insert into mfa_recovery_code_sets (id, user_id, mfa_factor_id, created_at, updated_at)
    select gen_random_uuid(), ${p.userId}, id, ${p.at}, ${p.at} from enrolled
    returning id
  ), codes as (${insertCodes}), audit as (${auditInsert('code_set')})
  select id from code_set`;

// A new set, because deleting the old one deletes all of its codes, also concurrently added ones.
const replace = statement({})`
  with removed as (delete from mfa_recovery_code_sets where user_id = ${p.userId} returning mfa_factor_id), code_set as (
    insert into mfa_recovery_code_sets (id, user_id, mfa_factor_id, created_at, updated_at)
    select gen_random_uuid(), ${p.userId}, mfa_factor_id, ${p.at}, ${p.at} from removed
    returning id
  ), codes as (${insertCodes}), audit as (${auditInsert('code_set')})
  select id from code_set`;

const redeem = statement(raisedRow)`
  with owner as (${lockOwner(p.userId)}), code_set as (
    select id from mfa_recovery_code_sets
    where user_id = (select id from owner) and mfa_factor_id = ${p.factorId}
      and (verification_locked_until is null or verification_locked_until <= ${p.at})
    for update
  ), spent as (
    update mfa_recovery_codes set consumed_at = ${p.at}
    where id = ${p.codeId} and mfa_recovery_code_set_id = (select id from code_set) and consumed_at is null
      and exists (select 1 from sessions where id = ${p.sessionId} and user_id = ${p.userId})
    returning mfa_recovery_code_set_id as id
  ), reset as (
    update mfa_recovery_code_sets
    set failed_verification_count = 0, verification_locked_until = null, updated_at = ${p.at}
    where id = (select id from spent)
  ), ${raiseSql('spent')}, audit as (${auditInsert('raised')})
  select * from raised`;
