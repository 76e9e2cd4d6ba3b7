import type { JsonObject } from '@tollgate/kit/json';
import { type AuditEntry, auditInsert } from '../audit/audit-log.ts';
import { isUniqueViolation, type Queryable } from '../db/connection.ts';
import { lockOwner } from '../db/fragments.ts';
import { boolean, integer, jsonOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { fragment, parameters, raw, statement } from '../db/statement.ts';
import type { ColumnCipher } from '../keys/secrets.ts';
import type { Assertion, CeremonyData } from '../passkeys/store.ts';
import {
  type RaisedSession,
  raisedRow,
  raiseParameters,
  raiseSql,
  type SessionRaise,
  toRaise,
} from './raise-sql.ts';

/** Columns of a factor that depend on its type. */
export interface FactorColumns {
  /** The secret in base32. */
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
  /** The secret of TOTP in base32. */
  readonly secret: string;
  /** TOTP period of the last accepted code of the factor; 0 for none. */
  readonly lastTotpPeriod: number;
  /** The challenge in base64url; empty for none. */
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
    await lock.run(this.#sql, { userId });
  }

  /**
   * `conflict` when the user has a factor of that name or phone, also a concurrent one; `full` when
   * they have `max` factors.
   */
  async enroll(
    factor: NewFactor,
    { max, audit }: { readonly max: number; readonly audit: AuditEntry },
  ): Promise<'enrolled' | 'conflict' | 'full'> {
    const { id, phone } = factor;
    // GoTrue cannot read factors with null here.
    const secret = factor.secret === undefined ? '' : this.#cipher.encrypt(id, factor.secret);
    const row = await enroll.first(this.#sql, { ...factor, phone, secret, max, audit });
    if (row?.is_full === true) return 'full';
    return row?.is_enrolled === true ? 'enrolled' : 'conflict';
  }

  /** Deletes factors that were enrolled at `before` or earlier and never verified. */
  async removeUnverified(userId: string, before: Date): Promise<void> {
    await removeUnverified.run(this.#sql, { userId, before });
  }

  async challenge(challenge: NewChallenge, audit: AuditEntry): Promise<void> {
    const { id, webAuthnData } = challenge;
    const otpCode = challenge.otpCode === undefined ? '' : this.#cipher.encrypt(id, challenge.otpCode);
    for (let attempt = 1; ; attempt += 1) {
      try {
        await insertChallenge.run(this.#sql, { ...challenge, otpCode, webAuthnData, audit });
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
    const r = await findChallenge.first(this.#sql, key);
    if (r === undefined) return undefined;
    return {
      createdAt: r.created_at,
      isSpent: r.spent,
      isSameAddress: r.same_address === true,
      otpCode: this.#cipher.decrypt(key.challengeId, r.otp_code ?? ''),
      secret: r.secret === null ? '' : this.#cipher.decrypt(key.factorId, r.secret),
      lastTotpPeriod: r.last_period,
      webAuthnChallenge: r.web_authn_challenge ?? '',
      credential: r.web_authn_credential ?? undefined,
    };
  }

  async deleteChallenge(id: string): Promise<void> {
    await deleteChallenge.run(this.#sql, { id });
  }

  /** The credentials of the user's verified WebAuthn factors. */
  async listCredentials(
    userId: string,
  ): Promise<readonly { readonly factorId: string; readonly credential: JsonObject }[]> {
    return listCredentials.run(this.#sql, { userId });
  }

  /**
   * Spends the challenge, verifies its factor and raises the session. Other unverified factors of
   * its type are deleted. Returns false when the challenge, the code or the counter of the
   * credential has been spent concurrently, or the session has ended.
   */
  async verify(verified: VerifiedChallenge, audit: AuditEntry): Promise<SessionRaise | false> {
    const { userId, sessionId, totpPeriod, newCredential, aaguid, assertion } = verified;
    const row = await verify.first(this.#sql, {
      ...verified,
      ...{ totpPeriod, newCredential, aaguid },
      signCount: assertion?.signCount,
      isBackedUp: assertion?.isBackedUp,
      audit,
    });
    this.#onChange?.(userId);
    return row !== undefined && toRaise(row, sessionId, this.#cipher);
  }

  /**
   * Sessions that the factor raised to `aal2` fall back to `aal1`. Returns false when there is no
   * such factor.
   */
  async remove(key: FactorKey, options: WriteOptions): Promise<boolean> {
    return remove.matches(this.#sql, { ...key, ...options });
  }

  /** Absent changes leave the value as it is. */
  async update(
    key: FactorKey,
    { friendlyName, phone }: { readonly friendlyName?: string; readonly phone?: string },
    options: WriteOptions,
  ): Promise<'updated' | 'not_found' | 'name_conflict'> {
    try {
      const isUpdated = await update.matches(this.#sql, { ...key, newName: friendlyName, phone, ...options });
      return isUpdated ? 'updated' : 'not_found';
    } catch (error) {
      if (isUniqueViolation(error)) return 'name_conflict';
      throw error;
    }
  }
}

const p = {
  ...raiseParameters,
  ...parameters(uuid, 'id', 'challengeId'),
  ...parameters(text, 'type', 'friendlyName', 'secret', 'ip', 'otpCode'),
  ...parameters(text.orNull, 'newName', 'phone'),
  ...parameters(integer, 'max'),
  ...parameters(timestamptz, 'before'),
  ...parameters(jsonOf<CeremonyData>().orNull, 'webAuthnData'),
  ...parameters(integer.orNull, 'totpPeriod', 'signCount'),
  ...parameters(jsonOf<JsonObject>().orNull, 'newCredential'),
  ...parameters(uuid.orNull, 'aaguid'),
  ...parameters(boolean.orNull, 'isBackedUp'),
};

const lock = statement({ id: uuid })`${lockOwner(p.userId)}`;
const deleteChallenge = statement({})`delete from mfa_challenges where id = ${p.id}`;

const enroll = statement({ is_full: boolean, is_enrolled: boolean })`
  with replaced as (
    delete from mfa_factors where user_id = ${p.userId} and phone = ${p.phone} and status = 'unverified' returning id
  ), counted as (
    select count(*) >= ${p.max}::int as is_full from mfa_factors where user_id = ${p.userId} and id not in (select id from replaced)
  ), enrolled as (
    insert into mfa_factors (id, user_id, friendly_name, factor_type, status, secret, phone, created_at, updated_at)
    select ${p.id}, ${p.userId}, ${p.friendlyName}, ${p.type}::factor_type, 'unverified', ${p.secret}, ${p.phone},
      ${p.at}, ${p.at} from counted where not is_full
    on conflict do nothing
    returning id
  ), audit as (${auditInsert('enrolled')})
  select is_full, exists (select 1 from enrolled) as is_enrolled from counted`;

const removeUnverified = statement({})`
  delete from mfa_factors where user_id = ${p.userId} and status = 'unverified' and created_at <= ${p.before}`;

const address = fragment`coalesce(nullif(${p.ip}, ''), '0.0.0.0')::inet`;

// GoTrue's schema forbids two factors with the same challenge time: random microseconds keep them
// apart.
const insertChallenge = statement({})`
  with challenge as (
    insert into mfa_challenges (id, factor_id, created_at, ip_address, otp_code, web_authn_session_data)
    values (${p.id}, ${p.factorId}, ${p.at}, ${address}, ${p.otpCode}, ${p.webAuthnData})
  ), challenged as (
    update mfa_factors
    set last_challenged_at = ${p.at}::timestamptz + floor(random() * 1000)::integer * interval '1 microsecond' where id = ${p.factorId}
  )
  ${auditInsert()}`;

const challengeRow = {
  created_at: timestamptz,
  spent: boolean,
  same_address: boolean.orNull,
  otp_code: text.orNull,
  secret: text.orNull,
  last_period: integer,
  web_authn_credential: jsonOf<JsonObject>().orNull,
  web_authn_challenge: text.orNull,
};

const findChallenge = statement(challengeRow)`
  select c.created_at, c.verified_at is not null as spent, c.ip_address = ${address} as same_address,
    c.otp_code, f.secret, coalesce(p.period, 0) as last_period, f.web_authn_credential,
    c.web_authn_session_data ->> 'challenge' as web_authn_challenge
  from mfa_challenges c join mfa_factors f on f.id = c.factor_id left join tollgate_totp_periods p on p.factor_id = f.id
  where c.id = ${p.challengeId} and c.factor_id = ${p.factorId}`;

const listCredentials = statement({ factorId: uuid, credential: jsonOf<JsonObject>().notNull })`
  select id as "factorId", web_authn_credential as credential from mfa_factors
  where user_id = ${p.userId} and status = 'verified' and web_authn_credential is not null order by created_at, id`;

const storedSignCount = raw(`(web_authn_credential -> 'authenticator' ->> 'signCount')::bigint`);

const remove = statement({})`
  with owner as (${lockOwner(p.userId)}), removed as (
    delete from mfa_factors where id = ${p.id} and user_id = (select id from owner) returning id, factor_type
  ), lowered as (
    update sessions set aal = 'aal1', factor_id = null, updated_at = ${p.at}
    where user_id = ${p.userId} and factor_id = (select id from removed)
    returning id
  ), proofs as (
    delete from mfa_amr_claims
    where session_id in (select id from lowered) and authentication_method in (
      select case factor_type when 'totp' then 'totp' else 'mfa/' || factor_type end from removed)
  ), audit as (${auditInsert('removed')})
  select id from removed`;

const update = statement({})`
  with updated as (
    update mfa_factors
    set friendly_name = coalesce(${p.newName}, friendly_name), phone = coalesce(${p.phone}, phone), updated_at = ${p.at}
    where id = ${p.id} and user_id = ${p.userId}
    returning id
  ), audit as (${auditInsert('updated')})
  select id from updated`;

// Concurrent answers wait for the row locks, and all but one then find the code or the challenge
// spent. The user row is locked first: two sessions would otherwise deadlock on each other's factor
// and session. Locking the factor fails when it has been deleted concurrently.
const verify = statement(raisedRow)`
  with owner as (${lockOwner(p.userId)}), factor as (
    select id, factor_type from mfa_factors where id = ${p.factorId} and user_id = (select id from owner) for no key update
  ), spent as (
    update mfa_challenges set verified_at = ${p.at}
    where id = ${p.challengeId} and factor_id = (select id from factor) and verified_at is null
      and exists (select 1 from sessions where id = ${p.sessionId} and user_id = ${p.userId})
    returning factor_id
  ), fresh as (
    insert into tollgate_totp_periods as p (factor_id, period)
    select factor_id, ${p.totpPeriod}::integer from spent where ${p.totpPeriod}::integer is not null
    on conflict (factor_id) do update set period = excluded.period where p.period < excluded.period
    returning factor_id
  ), accepted as (
    select factor_id from fresh union all select factor_id from spent where ${p.totpPeriod}::integer is null
  ), verified as (
    update mfa_factors
    set status = 'verified', updated_at = case status when 'verified' then updated_at else ${p.at} end,
      web_authn_aaguid = coalesce(${p.aaguid}::uuid, web_authn_aaguid),
      web_authn_credential = case when ${p.signCount}::bigint is null then coalesce(${p.newCredential}::jsonb, web_authn_credential) else
        jsonb_set(jsonb_set(web_authn_credential, '{authenticator,signCount}', to_jsonb(${p.signCount}::bigint)),
          '{flags,backupState}', to_jsonb(${p.isBackedUp}::boolean)) end
    where id = (select factor_id from accepted) and (${p.newCredential}::jsonb is null or status = 'unverified')
      and (${p.signCount}::bigint is null or ${storedSignCount} < ${p.signCount} or (${storedSignCount} = 0 and ${p.signCount} = 0))
    returning id
  ), ${raiseSql('verified')}, unverified as (
    delete from mfa_factors
    where user_id = ${p.userId} and id <> ${p.factorId} and status = 'unverified'
      and factor_type = (select factor_type from factor) and exists (select 1 from raised)
  ), audit as (${auditInsert('raised')})
  select * from raised`;
