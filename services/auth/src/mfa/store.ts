import { type AuditEntry, auditInsert, auditParameters } from '../db/audit-log.ts';
import { isUniqueViolation, nextRefreshTokenId, noInstance, type Queryable, query } from '../db/query.ts';
import type { ColumnCipher } from '../keys/column-encryption.ts';
import { type RefreshCounter, refreshCounterColumns, toRefreshCounter } from '../sessions/refresh-store.ts';
import { lockOwner } from '../users/store.ts';

/** A TOTP factor that its user has still to prove. */
interface NewTotpFactor {
  readonly id: string;
  readonly userId: string;
  /** Empty for none. */
  readonly friendlyName: string;
  /** In base32. */
  readonly secret: string;
  readonly at: Date;
}

/** The start of a verification. */
interface NewChallenge {
  readonly id: string;
  readonly factorId: string;
  /** Address of the client, which is to send the code too. */
  readonly ip: string;
  readonly at: Date;
}

/** A challenge as it is kept, with what verifies it. */
export interface Challenge {
  readonly createdAt: Date;
  /** Whether it has been answered: it is good for one answer only. */
  readonly isSpent: boolean;
  /** Whether it was made for the address that answers it. */
  readonly isSameAddress: boolean;
  /** In base32. */
  readonly secret: string;
  /** Number of the period whose code the factor has accepted last; 0 for none. */
  readonly lastPeriod: number;
}

/** A challenge that was answered correctly, and what the session becomes by that. */
interface VerifiedChallenge {
  readonly challengeId: string;
  readonly factorId: string;
  readonly userId: string;
  readonly sessionId: string;
  /** Value of the claim `amr`. */
  readonly method: string;
  /** Number of the period that the code is of. */
  readonly period: number;
  /** Takes the place of the refresh tokens that the session has, where they are kept. */
  readonly refreshToken: string;
  readonly at: Date;
}

/** Which factor, and whose: a factor of somebody else is none. */
interface FactorKey {
  readonly id: string;
  readonly userId: string;
}

/** What an administrator may change of a factor; what is absent stays. */
interface FactorChanges {
  readonly friendlyName?: string;
  readonly phone?: string;
}

/** Second factors and their challenges. A user is found with the factors, but not with their secrets. */
export interface FactorStore {
  /** Answers false when a factor of the user has that name: also when two ask at the same moment. */
  enroll(factor: NewTotpFactor, audit: AuditEntry): Promise<boolean>;
  /** Removes what the user began before that time and never proved. */
  removeUnverified(userId: string, before: Date): Promise<void>;
  challenge(challenge: NewChallenge, audit: AuditEntry): Promise<void>;
  findChallenge(of: {
    readonly challengeId: string;
    readonly factorId: string;
    readonly ip: string;
  }): Promise<Challenge | undefined>;
  /**
   * Spends a challenge. Its factor is verified then, the session at `aal2` with the method as a proof and with a new refresh token; the
   * user's sessions below `aal2` end, and their unverified factors of that type go. Answers false when somebody else spent it or the code
   * first, or the session has ended; otherwise the counter of the session, if its refresh tokens are not kept: it has gone up by two, so
   * that no token of before counts as the previous one.
   */
  verify(
    verified: VerifiedChallenge,
    audit: AuditEntry,
  ): Promise<{ readonly refreshCounter: RefreshCounter | undefined } | false>;
  /** Removes a factor; sessions that owe it their `aal2` fall back to `aal1`. Answers false when there is none. */
  remove(factor: FactorKey, of: { readonly at: Date; readonly audit: AuditEntry }): Promise<boolean>;
  update(
    factor: FactorKey,
    changes: FactorChanges,
    of: { readonly at: Date; readonly audit: AuditEntry },
  ): Promise<'updated' | 'not_found' | 'name_conflict'>;
}

const enroll = `
  with enrolled as (
    insert into mfa_factors (id, user_id, friendly_name, factor_type, status, secret, created_at, updated_at)
    values ($1, $2, $3, 'totp', 'unverified', $4, $5, $5)
    on conflict do nothing
    returning id
  ), audit as (${auditInsert(6, 'enrolled')})
  select id from enrolled`;

const removeUnverified = `
  delete from mfa_factors where user_id = $1 and status = 'unverified' and created_at <= $2`;

/** The functions of {@link FactorStore} that an enrolment calls. */
export function enrollFactor(
  sql: Queryable,
  cipher: ColumnCipher,
): Pick<FactorStore, 'enroll' | 'removeUnverified'> {
  return {
    async enroll({ id, userId, friendlyName, secret, at }, audit) {
      const parameters = [
        id,
        userId,
        friendlyName,
        cipher.encrypt(id, secret),
        at,
        ...auditParameters(audit),
      ];
      return (await query(sql, enroll, parameters)).length > 0;
    },
    async removeUnverified(userId, before) {
      await query(sql, removeUnverified, [userId, before]);
    },
  };
}

/** Of challenges in the same millisecond one in a thousand has the microsecond of another. */
const maxAttempts = 5;

const address = (parameter: string): string => `coalesce(nullif(${parameter}, ''), '0.0.0.0')::inet`;

// A constraint of GoTrue forbids that two factors are challenged at the same time: random
// microseconds keep them apart.
const challenge = `
  with challenge as (
    insert into mfa_challenges (id, factor_id, created_at, ip_address, otp_code) values ($1, $2, $4, ${address('$3')}, '')
  ), challenged as (
    update mfa_factors
    set last_challenged_at = $4::timestamptz + floor(random() * 1000)::integer * interval '1 microsecond' where id = $2
  )
  ${auditInsert(5)}`;

const find = `
  select c.created_at, c.verified_at is not null as spent, c.ip_address = ${address('$3')} as same_address,
    f.secret, coalesce(p.period, 0) as last_period
  from mfa_challenges c join mfa_factors f on f.id = c.factor_id left join tollgate_totp_periods p on p.factor_id = f.id
  where c.id = $1 and c.factor_id = $2`;

interface ChallengeRow {
  readonly created_at: Date;
  readonly spent: boolean;
  readonly same_address: boolean;
  readonly secret: string | null;
  readonly last_period: number;
}

/** The functions of {@link FactorStore} for challenges. */
export function challengeFactor(
  sql: Queryable,
  cipher: ColumnCipher,
): Pick<FactorStore, 'challenge' | 'findChallenge'> {
  return {
    async challenge({ id, factorId, ip, at }, audit) {
      const parameters = [id, factorId, ip, at, ...auditParameters(audit)];
      for (let attempt = 1; ; attempt += 1) {
        try {
          await query(sql, challenge, parameters);
          return;
        } catch (error) {
          if (!isUniqueViolation(error) || attempt === maxAttempts) throw error;
        }
      }
    },
    async findChallenge({ challengeId, factorId, ip }) {
      const [row] = await query(sql, find, [challengeId, factorId, ip]);
      if (row === undefined) return undefined;
      // Parsed boundary: these are the columns selected above, with the types of the schema.
      const r = row as unknown as ChallengeRow;
      return {
        createdAt: r.created_at,
        isSpent: r.spent,
        isSameAddress: r.same_address,
        secret: cipher.decrypt(factorId, r.secret ?? ''),
        lastPeriod: r.last_period,
      };
    },
  };
}

const remove = `
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

const update = `
  with updated as (
    update mfa_factors
    set friendly_name = coalesce($4, friendly_name), phone = coalesce($5, phone), updated_at = $3
    where id = $1 and user_id = $2
    returning id
  ), audit as (${auditInsert(6, 'updated')})
  select id from updated`;

/** The functions of {@link FactorStore} for a factor that is there. */
export function changeFactor(sql: Queryable): Pick<FactorStore, 'remove' | 'update'> {
  return {
    async remove({ id, userId }, { at, audit }) {
      return (await query(sql, remove, [id, userId, at, ...auditParameters(audit)])).length > 0;
    },
    async update({ id, userId }, { friendlyName, phone }, { at, audit }) {
      const parameters = [id, userId, at, friendlyName ?? null, phone ?? null, ...auditParameters(audit)];
      try {
        return (await query(sql, update, parameters)).length > 0 ? 'updated' : 'not_found';
      } catch (error) {
        if (isUniqueViolation(error)) return 'name_conflict';
        throw error;
      }
    },
  };
}

// Of answers that arrive together one finds code and challenge unspent; the others wait for their rows and then do not. The user comes
// first: each of two sessions would otherwise wait for the factor and the session of the other, which it takes away.
// Locking the factor finds out whether it has been deleted in the meantime.
const text = `
  with owner as (${lockOwner('$3')}), factor as (
    select id from mfa_factors where id = $2 and user_id = (select id from owner) for no key update
  ), fresh as (
    insert into tollgate_totp_periods as p (factor_id, period)
    select id, $8 from factor
    where exists (select 1 from mfa_challenges where id = $1 and factor_id = $2 and verified_at is null)
      and exists (select 1 from sessions where id = $4 and user_id = $3)
    on conflict (factor_id) do update set period = excluded.period where p.period < excluded.period
    returning factor_id
  ), verified as (
    update mfa_factors
    set status = 'verified', updated_at = case status when 'verified' then updated_at else $7 end
    where id = (select factor_id from fresh)
    returning id
  ), spent as (
    update mfa_challenges set verified_at = $7
    where id = $1 and factor_id = (select id from verified) and verified_at is null
    returning factor_id
  ), raised as (
    update sessions s set aal = 'aal2', factor_id = $2, updated_at = $7, refresh_token_counter = refresh_token_counter + 2,
      refreshed_at = case when refresh_token_hmac_key is null then refreshed_at else $7::timestamptz at time zone 'utc' end
    where id = $4 and user_id = $3 and exists (select 1 from spent)
    returning id, ${refreshCounterColumns}
  ), proof as (
    insert into mfa_amr_claims (id, session_id, authentication_method, created_at, updated_at)
    select gen_random_uuid(), id, $5, $7, $7 from raised
    on conflict (session_id, authentication_method) do update set updated_at = excluded.updated_at
  ), revoked as (
    update refresh_tokens set revoked = true, updated_at = $7
    where session_id = (select id from raised) and revoked is not true
    returning id, token
  ), successor as (
    insert into refresh_tokens (id, token, parent, user_id, session_id, revoked, created_at, updated_at, instance_id)
    select ${nextRefreshTokenId}, $6, coalesce((select token from revoked order by id desc limit 1), ''), $3::uuid::text, id, false, $7, $7,
      ${noInstance}
    from raised where refresh_token_hmac_key is null
  ), lower_sessions as (
    delete from sessions
    where user_id = $3 and id <> $4 and coalesce(aal, 'aal1') < 'aal2' and exists (select 1 from raised)
  ), unverified as (
    delete from mfa_factors
    where user_id = $3 and id <> $2 and status = 'unverified' and factor_type = 'totp' and exists (select 1 from raised)
  ), audit as (${auditInsert(9, 'raised')})
  select ${refreshCounterColumns} from raised s`;

/** {@link FactorStore.verify} */
export function verifyChallenge(sql: Queryable, cipher: ColumnCipher): FactorStore['verify'] {
  return async (verified, audit) => {
    const rows = await query(sql, text, [
      verified.challengeId,
      verified.factorId,
      verified.userId,
      verified.sessionId,
      verified.method,
      verified.refreshToken,
      verified.at,
      verified.period,
      ...auditParameters(audit),
    ]);
    const [row] = rows;
    return (
      row !== undefined && {
        refreshCounter: toRefreshCounter(row, { sessionId: verified.sessionId, cipher }),
      }
    );
  };
}
