import { type AuditEntry, auditInsert, auditParameters } from '../audit/audit-log.ts';
import { lockOwner, type Queryable, query, type Row } from '../db/connection.ts';
import { toUser, type User, userColumns } from '../users/user.ts';
import type { Assertion, CeremonyData, Credential } from './ceremonies.ts';

/** A credential that signs a user in. */
export interface Passkey {
  readonly id: string;
  /** Empty for none. */
  readonly friendlyName: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | undefined;
  readonly credential: Omit<Credential, 'isUserVerified'>;
}

interface NewPasskey extends Pick<Passkey, 'id' | 'friendlyName' | 'createdAt' | 'credential'> {
  readonly userId: string;
}

/** A passkey matches only if it belongs to the user. */
interface PasskeyKey {
  readonly id: string;
  readonly userId: string;
}

interface NewPasskeyChallenge extends ChallengeKey {
  readonly data: CeremonyData;
  readonly at: Date;
  readonly expiresAt: Date;
}

interface ChallengeKey {
  readonly id: string;
  readonly type: 'registration' | 'authentication';
  /** Whose passkey is registered; undefined for a sign-in, whose user is not known yet. */
  readonly userId: string | undefined;
}

interface WriteOptions {
  readonly at: Date;
  readonly audit: AuditEntry;
}

/** Passkeys and their challenges. */
export class PasskeyStore {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  async challenge({ id, type, userId, data, at, expiresAt }: NewPasskeyChallenge): Promise<void> {
    await query(this.#sql, challengeSql, [id, type, userId ?? null, data, at, expiresAt]);
  }

  /** Returns a challenge once. It may have expired. */
  async spendChallenge({
    id,
    type,
    userId,
  }: ChallengeKey): Promise<{ readonly challenge: string; readonly expiresAt: Date } | undefined> {
    const [row] = await query(this.#sql, spendChallengeSql, [id, type, userId ?? null]);
    // Parsed boundary: the columns selected by the statement, with the types of the schema.
    return row && { challenge: String(row.challenge), expiresAt: row.expires_at as Date };
  }

  /** Oldest first. */
  async list(userId: string): Promise<readonly Passkey[]> {
    return (await query(this.#sql, listSql, [userId])).map(toPasskey);
  }

  /** Locks the user, so that concurrent registrations count each other. Within a transaction. */
  async lockOwner(userId: string): Promise<void> {
    await query(this.#sql, lockOwner('$1'), [userId]);
  }

  async add(
    { id, userId, friendlyName, createdAt, credential }: NewPasskey,
    { max, audit }: { readonly max: number; readonly audit: AuditEntry },
  ): Promise<'added' | 'too_many' | 'exists'> {
    const [row] = await query(this.#sql, addSql, [
      id,
      userId,
      credential.id,
      credential.publicKey,
      credential.aaguid,
      credential.signCount,
      credential.transports,
      credential.isBackupEligible,
      credential.isBackedUp,
      friendlyName,
      createdAt,
      max,
      ...auditParameters(audit),
    ]);
    if (row?.added === true) return 'added';
    return row?.fits === true ? 'exists' : 'too_many';
  }

  /** The passkey with this credential, and its user unless deleted. */
  async findByCredential(
    credentialId: Buffer,
  ): Promise<{ readonly passkey: Passkey; readonly user: User } | undefined> {
    const [row] = await query(this.#sql, findByCredentialSql, [credentialId]);
    return row && { passkey: toPasskey(row), user: toUser(row) };
  }

  /** Returns false if the counter has increased concurrently, or the passkey has been removed. */
  async use(id: string, { signCount, isBackedUp }: Assertion, at: Date): Promise<boolean> {
    return (await query(this.#sql, useSql, [id, signCount, isBackedUp, at])).length > 0;
  }

  /** Returns undefined if there is no such passkey. */
  async rename(
    { id, userId }: PasskeyKey,
    friendlyName: string,
    { at, audit }: WriteOptions,
  ): Promise<Passkey | undefined> {
    const parameters = [id, userId, friendlyName, at, ...auditParameters(audit)];
    const [row] = await query(this.#sql, renameSql, parameters);
    return row && toPasskey(row);
  }

  /** Returns false if there is no such passkey. */
  async remove({ id, userId }: PasskeyKey, audit: AuditEntry): Promise<boolean> {
    return (await query(this.#sql, removeSql, [id, userId, ...auditParameters(audit)])).length > 0;
  }
}

const challengeSql = `
  insert into webauthn_challenges (id, challenge_type, user_id, session_data, created_at, expires_at)
  values ($1, $2, $3, $4, $5, $6)`;

const spendChallengeSql = `
  delete from webauthn_challenges where id = $1 and challenge_type = $2 and user_id is not distinct from $3
  returning session_data ->> 'challenge' as challenge, expires_at`;

const passkeyColumns = `
  p.id as passkey_id, p.credential_id, p.public_key, p.aaguid, p.sign_count, p.transports, p.backup_eligible, p.backed_up,
  p.friendly_name, p.created_at as passkey_created_at, p.last_used_at`;

const listSql = `select ${passkeyColumns} from webauthn_credentials p where p.user_id = $1 order by p.created_at, p.id`;

const addSql = `
  with fitting as (select 1 where (select count(*) from webauthn_credentials where user_id = $2) < $12), added as (
    insert into webauthn_credentials (id, user_id, credential_id, public_key, attestation_type, aaguid, sign_count, transports,
      backup_eligible, backed_up, friendly_name, created_at, updated_at)
    select $1, $2, $3, $4, 'none', $5::uuid, $6, $7::jsonb, $8, $9, $10, $11, $11 from fitting
    on conflict (credential_id) do nothing
    returning id
  ), audit as (${auditInsert(13, 'added')})
  select exists (select 1 from added) as added, exists (select 1 from fitting) as fits`;

const findByCredentialSql = `
  select ${passkeyColumns}, ${userColumns} from webauthn_credentials p join users u on u.id = p.user_id
  where p.credential_id = $1 and u.deleted_at is null`;

const useSql = `
  update webauthn_credentials set sign_count = $2, backed_up = $3, last_used_at = $4, updated_at = $4
  where id = $1 and (sign_count < $2 or (sign_count = 0 and $2 = 0)) returning id`;

const renameSql = `
  with renamed as (
    update webauthn_credentials set friendly_name = $3, updated_at = $4 where id = $1 and user_id = $2 returning *
  ), audit as (${auditInsert(5, 'renamed')})
  select ${passkeyColumns} from renamed p`;

const removeSql = `
  with removed as (
    delete from webauthn_credentials where id = $1 and user_id = $2 returning id
  ), audit as (${auditInsert(3, 'removed')})
  select id from removed`;

interface PasskeyRow {
  readonly passkey_id: string;
  readonly credential_id: Buffer;
  readonly public_key: Buffer;
  readonly aaguid: string | null;
  /** A bigint. */
  readonly sign_count: string;
  readonly transports: readonly string[] | null;
  readonly backup_eligible: boolean;
  readonly backed_up: boolean;
  readonly friendly_name: string;
  readonly passkey_created_at: Date;
  readonly last_used_at: Date | null;
}

/** Converts a row of {@link passkeyColumns}. */
function toPasskey(row: Row): Passkey {
  // Parsed boundary: these are the columns selected above, with the types of the schema.
  const r = row as unknown as PasskeyRow;
  return {
    id: r.passkey_id,
    friendlyName: r.friendly_name,
    createdAt: r.passkey_created_at,
    lastUsedAt: r.last_used_at ?? undefined,
    credential: {
      id: r.credential_id,
      publicKey: r.public_key,
      signCount: Number(r.sign_count),
      transports: r.transports ?? [],
      aaguid: r.aaguid ?? '',
      isBackupEligible: r.backup_eligible,
      isBackedUp: r.backed_up,
    },
  };
}
