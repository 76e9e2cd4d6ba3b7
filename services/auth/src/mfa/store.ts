import type { JsonObject } from '@tollgate/kit/json';
import { type AuditEntry, auditInsert, auditParameters } from '../audit/audit-log.ts';
import { isUniqueViolation, lockOwner, type Queryable, query } from '../db/connection.ts';
import type { ColumnCipher } from '../keys/secrets.ts';
import type { Assertion, CeremonyData } from '../passkeys/ceremonies.ts';
import { type RaisedSession, raiseParameters, raiseSql, type SessionRaise, toRaise } from './raise-sql.ts';

/** Columns of a factor that depend on its type. */
export interface FactorColumns {
  /** In base32. */
  readonly secret?: string;
  /** Digits. An unverified factor of the same phone is replaced. */
  readonly phone?: string;
}

interface NewFactor extends FactorColumns {
  readonly id: string;
  readonly userId: string;
  readonly type: string;
  /** Empty for none. */
  readonly friendlyName: string;
  readonly at: Date;
}

/** Columns of a challenge that depend on the type of its factor. */
export interface ChallengeColumns {
  /** The code that was sent, or its hash. */
  readonly otpCode?: string;
  readonly webAuthnData?: CeremonyData;
}

interface NewChallenge extends ChallengeColumns {
  readonly id: string;
  readonly factorId: string;
  /** Address of the client, which must also send the code. */
  readonly ip: string;
  readonly at: Date;
}

export interface Challenge {
  readonly createdAt: Date;
  /** A challenge is valid for one answer. */
  readonly isSpent: boolean;
  /** Whether the challenge was created from the address that answers it. */
  readonly isSameAddress: boolean;
  /** The code that was sent, or its hash; empty for none. */
  readonly otpCode: string;
  /** In base32; of TOTP only. */
  readonly secret: string;
  /** TOTP period of the last accepted code of the factor; 0 for none. */
  readonly lastTotpPeriod: number;
  /** In base64url; empty for none. */
  readonly webAuthnChallenge: string;
  /** Credential of WebAuthn only, once verified. */
  readonly credential: JsonObject | undefined;
}

/** Columns that a verification writes, and that depend on the type of the factor. */
export interface VerificationColumns {
  /** Period of the code, which must be later than that of the last accepted one. */
  readonly totpPeriod?: number;
  /** The credential of a WebAuthn factor, which must not have one yet. */
  readonly newCredential?: JsonObject;
  /** AAGUID of the new credential. */
  readonly aaguid?: string;
  /** Use of the credential, whose counter must have increased. */
  readonly assertion?: Assertion;
}

/** A correctly answered challenge, and the session that it raises to `aal2`. */
interface VerifiedChallenge extends RaisedSession, VerificationColumns {
  readonly challengeId: string;
}

/** A factor matches only if it belongs to the user. */
interface FactorKey {
  readonly id: string;
  readonly userId: string;
}

export interface WriteOptions {
  readonly at: Date;
  readonly audit: AuditEntry;
}

/** One in a thousand challenges of the same millisecond collides by its microseconds. */
const maxChallengeAttempts = 5;

/** Second factors and their challenges. Secrets are read only to verify a challenge. */
export class FactorStore {
  readonly #sql: Queryable;
  readonly #cipher: ColumnCipher;
  readonly #onChange: ((userId: string) => void) | undefined;

  constructor(sql: Queryable, cipher: ColumnCipher, onChange?: (userId: string) => void) {
    this.#sql = sql;
    this.#cipher = cipher;
    this.#onChange = onChange;
  }

  /**
   * Makes concurrent enrollments of a user wait until the transaction ends: a statement counts the
   * factors that are there when it starts.
   */
  async lockOwner(userId: string): Promise<void> {
    await query(this.#sql, lockOwner('$1'), [userId]);
  }

  /**
   * `conflict` when the user has a factor of that name or phone, also a concurrent one; `full` when
   * they have `max` factors.
   */
  async enroll(
    factor: NewFactor,
    { max, audit }: { readonly max: number; readonly audit: AuditEntry },
  ): Promise<'enrolled' | 'conflict' | 'full'> {
    const { id, userId, type, friendlyName, secret, phone, at } = factor;
    // GoTrue cannot read factors with null here.
    const sealed = secret === undefined ? '' : this.#cipher.encrypt(id, secret);
    const columns = [id, userId, type, friendlyName, sealed, at, phone ?? null];
    const [row] = await query(this.#sql, enrollSql, [...columns, ...auditParameters(audit), max]);
    if (row?.is_full === true) return 'full';
    return row?.is_enrolled === true ? 'enrolled' : 'conflict';
  }

  /** Deletes factors that were enrolled at `before` or earlier and never verified. */
  async removeUnverified(userId: string, before: Date): Promise<void> {
    await query(this.#sql, removeUnverifiedSql, [userId, before]);
  }

  async challenge(challenge: NewChallenge, audit: AuditEntry): Promise<void> {
    const { id, factorId, ip, at, otpCode, webAuthnData = null } = challenge;
    const sealed = otpCode === undefined ? '' : this.#cipher.encrypt(id, otpCode);
    const parameters = [id, factorId, ip, at, sealed, webAuthnData, ...auditParameters(audit)];
    for (let attempt = 1; ; attempt += 1) {
      try {
        await query(this.#sql, challengeSql, parameters);
        return;
      } catch (error) {
        if (!isUniqueViolation(error) || attempt === maxChallengeAttempts) throw error;
      }
    }
  }

  async findChallenge(key: {
    readonly challengeId: string;
    readonly factorId: string;
    readonly ip: string;
  }): Promise<Challenge | undefined> {
    const [row] = await query(this.#sql, findChallengeSql, [key.challengeId, key.factorId, key.ip]);
    if (row === undefined) return undefined;
    // Parsed boundary: the columns selected by the statement, with the types of the schema.
    const r = row as unknown as ChallengeRow;
    return {
      createdAt: r.created_at,
      isSpent: r.spent,
      isSameAddress: r.same_address,
      otpCode: this.#cipher.decrypt(key.challengeId, r.otp_code ?? ''),
      secret: r.secret === null ? '' : this.#cipher.decrypt(key.factorId, r.secret),
      lastTotpPeriod: r.last_period,
      webAuthnChallenge: r.web_authn_challenge ?? '',
      credential: r.web_authn_credential ?? undefined,
    };
  }

  async deleteChallenge(id: string): Promise<void> {
    await query(this.#sql, 'delete from mfa_challenges where id = $1', [id]);
  }

  /** The credentials of the user's verified WebAuthn factors. */
  async listCredentials(
    userId: string,
  ): Promise<readonly { readonly factorId: string; readonly credential: JsonObject }[]> {
    const rows = await query(this.#sql, listCredentialsSql, [userId]);
    // Parsed boundary: the columns selected by the statement, with the types of the schema.
    return rows as readonly unknown[] as readonly { factorId: string; credential: JsonObject }[];
  }

  /**
   * Spends the challenge, verifies its factor and raises the session. Other unverified factors of
   * its type are deleted. Returns false when the challenge, the code or the counter of the
   * credential has been spent concurrently, or the session has ended.
   */
  async verify(verified: VerifiedChallenge, audit: AuditEntry): Promise<SessionRaise | false> {
    const { userId, sessionId } = verified;
    const [row] = await query(this.#sql, verifySql, [
      verified.challengeId,
      ...raiseParameters(verified),
      verified.totpPeriod ?? null,
      verified.newCredential ?? null,
      verified.aaguid ?? null,
      verified.assertion?.signCount ?? null,
      verified.assertion?.isBackedUp ?? null,
      ...auditParameters(audit),
    ]);
    this.#onChange?.(userId);
    return row !== undefined && toRaise(row, sessionId, this.#cipher);
  }

  /**
   * Sessions that the factor raised to `aal2` fall back to `aal1`. Returns false when there is no
   * such factor.
   */
  async remove({ id, userId }: FactorKey, { at, audit }: WriteOptions): Promise<boolean> {
    const parameters = [id, userId, at, ...auditParameters(audit)];
    return (await query(this.#sql, removeSql, parameters)).length > 0;
  }

  /** Absent changes leave the value as it is. */
  async update(
    { id, userId }: FactorKey,
    { friendlyName, phone }: { readonly friendlyName?: string; readonly phone?: string },
    { at, audit }: WriteOptions,
  ): Promise<'updated' | 'not_found' | 'name_conflict'> {
    const parameters = [id, userId, at, friendlyName ?? null, phone ?? null, ...auditParameters(audit)];
    try {
      return (await query(this.#sql, updateSql, parameters)).length > 0 ? 'updated' : 'not_found';
    } catch (error) {
      if (isUniqueViolation(error)) return 'name_conflict';
      throw error;
    }
  }
}

const enrollSql = `
  with replaced as (
    delete from mfa_factors where user_id = $2 and phone = $7 and status = 'unverified' returning id
  ), counted as (
    select count(*) >= $11::int as is_full from mfa_factors where user_id = $2 and id not in (select id from replaced)
  ), enrolled as (
    insert into mfa_factors (id, user_id, friendly_name, factor_type, status, secret, phone, created_at, updated_at)
    select $1, $2, $4, $3::factor_type, 'unverified', $5, $7, $6, $6 from counted where not is_full
    on conflict do nothing
    returning id
  ), audit as (${auditInsert(8, 'enrolled')})
  select is_full, exists (select 1 from enrolled) as is_enrolled from counted`;

const removeUnverifiedSql = `
  delete from mfa_factors where user_id = $1 and status = 'unverified' and created_at <= $2`;

function address(parameter: string): string {
  return `coalesce(nullif(${parameter}, ''), '0.0.0.0')::inet`;
}

// GoTrue's schema forbids two factors with the same challenge time: random microseconds keep them
// apart.
const challengeSql = `
  with challenge as (
    insert into mfa_challenges (id, factor_id, created_at, ip_address, otp_code, web_authn_session_data)
    values ($1, $2, $4, ${address('$3')}, $5, $6)
  ), challenged as (
    update mfa_factors
    set last_challenged_at = $4::timestamptz + floor(random() * 1000)::integer * interval '1 microsecond' where id = $2
  )
  ${auditInsert(7)}`;

const findChallengeSql = `
  select c.created_at, c.verified_at is not null as spent, c.ip_address = ${address('$3')} as same_address,
    c.otp_code, f.secret, coalesce(p.period, 0) as last_period, f.web_authn_credential,
    c.web_authn_session_data ->> 'challenge' as web_authn_challenge
  from mfa_challenges c join mfa_factors f on f.id = c.factor_id left join tollgate_totp_periods p on p.factor_id = f.id
  where c.id = $1 and c.factor_id = $2`;

interface ChallengeRow {
  readonly created_at: Date;
  readonly spent: boolean;
  readonly same_address: boolean;
  readonly otp_code: string | null;
  readonly secret: string | null;
  readonly last_period: number;
  readonly web_authn_challenge: string | null;
  readonly web_authn_credential: JsonObject | null;
}

const listCredentialsSql = `
  select id as "factorId", web_authn_credential as credential from mfa_factors
  where user_id = $1 and status = 'verified' and web_authn_credential is not null order by created_at, id`;

const storedSignCount = `(web_authn_credential -> 'authenticator' ->> 'signCount')::bigint`;

const removeSql = `
  with owner as (${lockOwner('$2')}), removed as (
    delete from mfa_factors where id = $1 and user_id = (select id from owner) returning id, factor_type
  ), lowered as (
    update sessions set aal = 'aal1', factor_id = null, updated_at = $3
    where user_id = $2 and factor_id = (select id from removed)
    returning id
  ), proofs as (
    delete from mfa_amr_claims
    where session_id in (select id from lowered) and authentication_method in (
      select case factor_type when 'totp' then 'totp' else 'mfa/' || factor_type end from removed)
  ), audit as (${auditInsert(4, 'removed')})
  select id from removed`;

const updateSql = `
  with updated as (
    update mfa_factors
    set friendly_name = coalesce($4, friendly_name), phone = coalesce($5, phone), updated_at = $3
    where id = $1 and user_id = $2
    returning id
  ), audit as (${auditInsert(6, 'updated')})
  select id from updated`;

// Concurrent answers wait for the row locks, and all but one then find the code or the challenge
// spent. The user row is locked first: two sessions would otherwise deadlock on each other's factor
// and session. Locking the factor fails when it has been deleted concurrently.
const verifySql = `
  with owner as (${lockOwner('$3')}), factor as (
    select id, factor_type from mfa_factors where id = $2 and user_id = (select id from owner) for no key update
  ), spent as (
    update mfa_challenges set verified_at = $7
    where id = $1 and factor_id = (select id from factor) and verified_at is null
      and exists (select 1 from sessions where id = $4 and user_id = $3)
    returning factor_id
  ), fresh as (
    insert into tollgate_totp_periods as p (factor_id, period)
    select factor_id, $8::integer from spent where $8::integer is not null
    on conflict (factor_id) do update set period = excluded.period where p.period < excluded.period
    returning factor_id
  ), accepted as (
    select factor_id from fresh union all select factor_id from spent where $8::integer is null
  ), verified as (
    update mfa_factors
    set status = 'verified', updated_at = case status when 'verified' then updated_at else $7 end,
      web_authn_aaguid = coalesce($10::uuid, web_authn_aaguid),
      web_authn_credential = case when $11::bigint is null then coalesce($9::jsonb, web_authn_credential) else
        jsonb_set(jsonb_set(web_authn_credential, '{authenticator,signCount}', to_jsonb($11::bigint)),
          '{flags,backupState}', to_jsonb($12::boolean)) end
    where id = (select factor_id from accepted) and ($9::jsonb is null or status = 'unverified')
      and ($11::bigint is null or ${storedSignCount} < $11 or (${storedSignCount} = 0 and $11 = 0))
    returning id
  ), ${raiseSql('verified')}, unverified as (
    delete from mfa_factors
    where user_id = $3 and id <> $2 and status = 'unverified' and factor_type = (select factor_type from factor) and exists (select 1 from raised)
  ), audit as (${auditInsert(13, 'raised')})
  select * from raised`;
