import { type AuditEntry, auditInsert } from '../audit/audit-log.ts';
import type { Queryable } from '../db/connection.ts';
import { type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { parameters, raw, statement } from '../db/statement.ts';

/** An invitation to an organization, which ends when it is accepted. */
export interface Invitation {
  readonly id: string;
  readonly organizationId: string;
  /** The address, in lower case. */
  readonly email: string;
  readonly role: string;
  /** Undefined if an administrator has sent it. */
  readonly invitedBy: string | undefined;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

const columns = raw('id, organization_id, email, role, invited_by, created_at, expires_at');
const row = {
  id: uuid,
  organization_id: uuid,
  email: text,
  role: text,
  invited_by: uuid.orNull,
  created_at: timestamptz,
  expires_at: timestamptz,
};

const p = {
  ...parameters(uuid, 'id', 'organizationId'),
  ...parameters(uuid.orNull, 'invitedBy'),
  ...parameters(text, 'email', 'role', 'tokenHash'),
  ...parameters(timestamptz, 'createdAt', 'expiresAt', 'at'),
};

// An earlier invitation of the address ends: the link in its mail is not valid any more.
const insert = statement({})`
  with created as (
    insert into organization_invitations (id, organization_id, email, role, token_hash, invited_by, created_at, expires_at)
    values (${p.id}, ${p.organizationId}, ${p.email}, ${p.role}, ${p.tokenHash}, ${p.invitedBy}, ${p.createdAt}, ${p.expiresAt})
    on conflict (organization_id, email) do update set id = excluded.id, role = excluded.role, token_hash = excluded.token_hash,
      invited_by = excluded.invited_by, created_at = excluded.created_at, expires_at = excluded.expires_at
    returning id
  ), audit as (${auditInsert('created')})
  select 1 from created`;

const list = statement(row)`
  select ${columns} from organization_invitations
  where organization_id = ${p.organizationId} and expires_at > ${p.at} order by created_at, id`;

const findByToken = statement(row)`
  select ${columns} from organization_invitations where token_hash = ${p.tokenHash} and expires_at > ${p.at}`;

const take = statement({})`
  delete from organization_invitations where token_hash = ${p.tokenHash} and expires_at > ${p.at} returning id`;

const revoke = statement({})`
  with revoked as (
    delete from organization_invitations where id = ${p.id} and organization_id = ${p.organizationId} returning id
  ), audit as (${auditInsert('revoked')})
  select 1 from revoked`;

const withdraw = statement({})`delete from organization_invitations where token_hash = ${p.tokenHash}`;

/** Invitations to organizations. Tokens are stored as digests. */
export class InvitationStore {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  /** Replaces an earlier invitation of the address. */
  async insert(invitation: Invitation & { readonly tokenHash: string }, audit: AuditEntry): Promise<void> {
    await insert.run(this.#sql, { ...invitation, audit });
  }

  /** Oldest first, without expired ones. */
  async list(organizationId: string, at: Date): Promise<readonly Invitation[]> {
    return (await list.run(this.#sql, { organizationId, at })).map(toInvitation);
  }

  async findByToken(tokenHash: string, at: Date): Promise<Invitation | undefined> {
    const found = await findByToken.first(this.#sql, { tokenHash, at });
    return found && toInvitation(found);
  }

  /** Spends an invitation. Of concurrent calls exactly one returns true. */
  async take(tokenHash: string, at: Date): Promise<boolean> {
    return take.matches(this.#sql, { tokenHash, at });
  }

  async revoke(ids: Pick<Invitation, 'id' | 'organizationId'>, audit: AuditEntry): Promise<boolean> {
    return revoke.matches(this.#sql, { ...ids, audit });
  }

  /** Removes an invitation that could not be sent. */
  async withdraw(tokenHash: string): Promise<void> {
    await withdraw.run(this.#sql, { tokenHash });
  }
}

function toInvitation(found: RowOf<typeof row>): Invitation {
  return {
    id: found.id,
    organizationId: found.organization_id,
    email: found.email,
    role: found.role,
    invitedBy: found.invited_by ?? undefined,
    createdAt: found.created_at,
    expiresAt: found.expires_at,
  };
}
