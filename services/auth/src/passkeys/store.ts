import type { JsonObject } from '@tollgate/kit/json';
import { type AuditEntry, auditInsert } from '../audit/audit-log.ts';
import type { Queryable } from '../db/connection.ts';
import { lockOwner } from '../db/fragments.ts';
import {
  bigint,
  boolean,
  bytea,
  integer,
  jsonOf,
  type RowOf,
  text,
  timestamptz,
  uuid,
} from '../db/sql-types.ts';
import { parameters, raw, statement } from '../db/statement.ts';
import { toUser, type User, userColumns, userRow } from '../users/user.ts';

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

  async challenge(challenge: NewPasskeyChallenge): Promise<void> {
    await insertChallenge.run(this.#sql, challenge);
  }

  /** Returns a challenge once. It may have expired. */
  async spendChallenge(
    key: ChallengeKey,
  ): Promise<{ readonly challenge: string; readonly expiresAt: Date } | undefined> {
    const row = await spendChallenge.first(this.#sql, key);
    return row && { challenge: String(row.challenge), expiresAt: row.expires_at };
  }

  /** Oldest first. */
  async list(userId: string): Promise<readonly Passkey[]> {
    return (await list.run(this.#sql, { userId })).map(toPasskey);
  }

  /** Locks the user, so that concurrent registrations count each other. Within a transaction. */
  async lockOwner(userId: string): Promise<void> {
    await lock.run(this.#sql, { userId });
  }

  async add(
    { createdAt, credential, ...passkey }: NewPasskey,
    options: { readonly max: number; readonly audit: AuditEntry },
  ): Promise<'added' | 'too_many' | 'exists'> {
    const row = await add.first(this.#sql, {
      ...credential,
      credentialId: credential.id,
      ...passkey,
      at: createdAt,
      ...options,
    });
    if (row?.added === true) return 'added';
    return row?.fits === true ? 'exists' : 'too_many';
  }

  /** The passkey with this credential, and its user unless deleted. */
  async findByCredential(
    credentialId: Buffer,
  ): Promise<{ readonly passkey: Passkey; readonly user: User } | undefined> {
    const row = await findByCredential.first(this.#sql, { credentialId });
    return row && { passkey: toPasskey(row), user: toUser(row) };
  }

  /** Returns false if the counter has increased concurrently, or the passkey has been removed. */
  async use(id: string, { signCount, isBackedUp }: Assertion, at: Date): Promise<boolean> {
    return use.matches(this.#sql, { id, signCount, isBackedUp, at });
  }

  /** Returns undefined if there is no such passkey. */
  async rename(key: PasskeyKey, friendlyName: string, options: WriteOptions): Promise<Passkey | undefined> {
    const row = await rename.first(this.#sql, { ...key, friendlyName, ...options });
    return row && toPasskey(row);
  }

  /** Returns false if there is no such passkey. */
  async remove(key: PasskeyKey, audit: AuditEntry): Promise<boolean> {
    return remove.matches(this.#sql, { ...key, audit });
  }
}

const p = {
  ...parameters(uuid, 'id', 'aaguid'),
  ...parameters(uuid.orNull, 'userId'),
  ...parameters(text, 'type', 'friendlyName'),
  ...parameters(jsonOf<CeremonyData>(), 'data'),
  ...parameters(timestamptz, 'at', 'expiresAt'),
  ...parameters(bytea, 'credentialId', 'publicKey'),
  ...parameters(integer, 'signCount', 'max'),
  ...parameters(jsonOf<readonly string[]>(), 'transports'),
  ...parameters(boolean, 'isBackupEligible', 'isBackedUp'),
};

const lock = statement({ id: uuid })`${lockOwner(p.userId)}`;

const insertChallenge = statement({})`
  insert into webauthn_challenges (id, challenge_type, user_id, session_data, created_at, expires_at)
  values (${p.id}, ${p.type}, ${p.userId}, ${p.data}, ${p.at}, ${p.expiresAt})`;

const spendChallenge = statement({ challenge: text.orNull, expires_at: timestamptz })`
  delete from webauthn_challenges where id = ${p.id} and challenge_type = ${p.type} and user_id is not distinct from ${p.userId}
  returning session_data ->> 'challenge' as challenge, expires_at`;

const passkeyColumns = raw(`
  p.id as passkey_id, p.credential_id, p.public_key, p.aaguid, p.sign_count, p.transports, p.backup_eligible, p.backed_up,
  p.friendly_name, p.created_at as passkey_created_at, p.last_used_at`);
const passkeyRow = {
  passkey_id: uuid,
  credential_id: bytea,
  public_key: bytea,
  aaguid: uuid.orNull,
  sign_count: bigint,
  transports: jsonOf<readonly string[]>(),
  backup_eligible: boolean,
  backed_up: boolean,
  friendly_name: text,
  passkey_created_at: timestamptz,
  last_used_at: timestamptz.orNull,
};

const list = statement(passkeyRow)`
  select ${passkeyColumns} from webauthn_credentials p where p.user_id = ${p.userId} order by p.created_at, p.id`;

const add = statement({ added: boolean, fits: boolean })`
  with fitting as (select 1 where (select count(*) from webauthn_credentials where user_id = ${p.userId}) < ${p.max}), added as (
    insert into webauthn_credentials (id, user_id, credential_id, public_key, attestation_type, aaguid, sign_count, transports,
      backup_eligible, backed_up, friendly_name, created_at, updated_at)
    select ${p.id}, ${p.userId}, ${p.credentialId}, ${p.publicKey}, 'none', ${p.aaguid}::uuid, ${p.signCount},
      ${p.transports}::jsonb, ${p.isBackupEligible}, ${p.isBackedUp}, ${p.friendlyName}, ${p.at}, ${p.at} from fitting
    on conflict (credential_id) do nothing
    returning id
  ), audit as (${auditInsert('added')})
  select exists (select 1 from added) as added, exists (select 1 from fitting) as fits`;

const findByCredential = statement({ ...passkeyRow, ...userRow })`
  select ${passkeyColumns}, ${userColumns} from webauthn_credentials p join users u on u.id = p.user_id
  where p.credential_id = ${p.credentialId} and u.deleted_at is null`;

const use = statement({})`
  update webauthn_credentials set sign_count = ${p.signCount}, backed_up = ${p.isBackedUp}, last_used_at = ${p.at}, updated_at = ${p.at}
  where id = ${p.id} and (sign_count < ${p.signCount} or (sign_count = 0 and ${p.signCount} = 0)) returning id`;

const rename = statement(passkeyRow)`
  with renamed as (
    update webauthn_credentials set friendly_name = ${p.friendlyName}, updated_at = ${p.at} where id = ${p.id}
      and user_id = ${p.userId} returning *
  ), audit as (${auditInsert('renamed')})
  select ${passkeyColumns} from renamed p`;

const remove = statement({})`
  with removed as (
    delete from webauthn_credentials where id = ${p.id} and user_id = ${p.userId} returning id
  ), audit as (${auditInsert('removed')})
  select id from removed`;

/** Converts a row of {@link passkeyColumns}. */
function toPasskey(r: RowOf<typeof passkeyRow>): Passkey {
  return {
    id: r.passkey_id,
    friendlyName: r.friendly_name,
    createdAt: r.passkey_created_at,
    lastUsedAt: r.last_used_at ?? undefined,
    credential: {
      id: r.credential_id,
      publicKey: r.public_key,
      signCount: Number(r.sign_count),
      transports: r.transports,
      aaguid: r.aaguid ?? '',
      isBackupEligible: r.backup_eligible,
      isBackedUp: r.backed_up,
    },
  };
}

/** The public key of an authenticator and what is known of it. */
export interface Credential {
  readonly id: Buffer;
  /** The key in COSE format. */
  readonly publicKey: Buffer;
  /** 0 for authenticators that do not count. */
  readonly signCount: number;
  readonly transports: readonly string[];
  /** A UUID that names the model of the authenticator; all zeros if it is unknown. */
  readonly aaguid: string;
  /** Whether it may be copied to other devices. Does not change. */
  readonly isBackupEligible: boolean;
  readonly isBackedUp: boolean;
  readonly isUserVerified: boolean;
}

/** Changes by an accepted assertion. */
export interface Assertion {
  readonly signCount: number;
  readonly isBackedUp: boolean;
  readonly isUserVerified: boolean;
}

/** Stored until the response arrives. GoTrue reads the same members. */
export type CeremonyData = JsonObject & { readonly challenge: string };
