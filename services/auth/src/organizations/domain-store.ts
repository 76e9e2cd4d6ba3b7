import { type AuditEntry, auditInsert } from '../audit/audit-log.ts';
import { isUniqueViolation, type Queryable } from '../db/connection.ts';
import { integer, type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { parameters, statement } from '../db/statement.ts';
import type { Organization } from './organization.ts';
import { organizationColumns, organizationRow, toOrganization } from './store.ts';

/** A domain of email addresses that an organization has, or claims. */
export interface OrganizationDomain {
  readonly domain: string;
  /** Part of the TXT record that proves it. Empty if an administrator has added the domain. */
  readonly token: string;
  /** Undefined: the organization only claims it. */
  readonly verifiedAt: Date | undefined;
}

/** Ids of a domain of an organization. */
interface DomainKey {
  readonly id: string;
  readonly domain: string;
}

const row = { domain: text, token: text, verified_at: timestamptz.orNull };

const p = {
  ...parameters(uuid, 'id', 'userId'),
  ...parameters(text, 'domain', 'token'),
  ...parameters(timestamptz, 'at'),
};

const list = statement(row)`
  select domain, token, verified_at from organization_domains where organization_id = ${p.id} order by domain`;

const find = statement(row)`
  select domain, token, verified_at from organization_domains
  where organization_id = ${p.id} and domain = ${p.domain}`;

const count = statement({ total: integer })`
  select count(*)::int as total from organization_domains where organization_id = ${p.id}`;

const isTaken = statement({})`
  select 1 from organization_domains
  where domain = ${p.domain} and verified_at is not null and organization_id <> ${p.id}`;

const claim = statement({})`
  with added as (
    insert into organization_domains (organization_id, domain, token, created_at)
    values (${p.id}, ${p.domain}, ${p.token}, ${p.at}) returning domain
  ), audit as (${auditInsert('added')})
  select 1 from added`;

// The unique index of verified domains fails these two statements when another organization has it.
const verify = statement({})`
  with verified as (
    update organization_domains set verified_at = ${p.at}
    where organization_id = ${p.id} and domain = ${p.domain} and token = ${p.token} and verified_at is null
    returning domain
  ), audit as (${auditInsert('verified')})
  select 1 from verified`;
const put = statement({})`
  with added as (
    insert into organization_domains (organization_id, domain, token, verified_at, created_at)
    values (${p.id}, ${p.domain}, '', ${p.at}, ${p.at})
    on conflict (organization_id, domain) do update set verified_at = excluded.verified_at
      where organization_domains.verified_at is null
    returning domain
  ), audit as (${auditInsert('added')})
  select 1 from added`;

const remove = statement({})`
  with removed as (
    delete from organization_domains where organization_id = ${p.id} and domain = ${p.domain} returning domain
  ), audit as (${auditInsert('removed')})
  select 1 from removed`;

const listJoinable = statement(organizationRow)`
  select ${organizationColumns} from organization_domains d join organizations o on o.id = d.organization_id
  where d.domain = ${p.domain} and d.verified_at is not null and o.domain_role is not null and not exists (
    select from organization_members m where m.organization_id = o.id and m.user_id = ${p.userId})`;

/** Domains of organizations. Several may claim a domain; one has it. */
export class DomainStore {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  async list(id: string): Promise<readonly OrganizationDomain[]> {
    return (await list.run(this.#sql, { id })).map(toDomain);
  }

  async find(key: DomainKey): Promise<OrganizationDomain | undefined> {
    const found = await find.first(this.#sql, { ...key });
    return found && toDomain(found);
  }

  /** Counts domains of an organization, also claimed ones. */
  async count(id: string): Promise<number> {
    return (await count.first(this.#sql, { id }))?.total ?? 0;
  }

  /** Whether another organization has the domain. */
  async isTaken(key: DomainKey): Promise<boolean> {
    return isTaken.matches(this.#sql, { ...key });
  }

  /** Adds a domain that is not verified. Requires a lock on the organization. */
  async claim(
    claimed: DomainKey & { readonly token: string; readonly at: Date },
    audit: AuditEntry,
  ): Promise<void> {
    await claim.run(this.#sql, { ...claimed, audit });
  }

  /** Returns `taken` if another organization has the domain, false if there is no such claim. */
  async verify(
    claimed: DomainKey & { readonly token: string; readonly at: Date },
    audit: AuditEntry,
  ): Promise<boolean | 'taken'> {
    return orTaken(verify.matches(this.#sql, { ...claimed, audit }));
  }

  /** Adds a verified domain. Returns false if an organization has it. */
  async add(domain: DomainKey & { readonly at: Date }, audit: AuditEntry): Promise<boolean> {
    return (await orTaken(put.matches(this.#sql, { ...domain, audit }))) === true;
  }

  async remove(domain: DomainKey, audit: AuditEntry): Promise<boolean> {
    return remove.matches(this.#sql, { ...domain, audit });
  }

  /** Organizations that a user may join by the domain of their email. */
  async listJoinable(domain: string, userId: string): Promise<readonly Organization[]> {
    return (await listJoinable.run(this.#sql, { domain, userId })).map(toOrganization);
  }
}

async function orTaken(written: Promise<boolean>): Promise<boolean | 'taken'> {
  try {
    return await written;
  } catch (error) {
    if (isUniqueViolation(error)) return 'taken';
    throw error;
  }
}

function toDomain({ domain, token, verified_at: verifiedAt }: RowOf<typeof row>): OrganizationDomain {
  return { domain, token, verifiedAt: verifiedAt ?? undefined };
}
