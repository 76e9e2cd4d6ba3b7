import { type AuditEntry, auditInsert } from '../audit/audit-log.ts';
import type { Queryable } from '../db/connection.ts';
import { text, timestamptz, uuid } from '../db/sql-types.ts';
import { parameters, statement } from '../db/statement.ts';
import type { Organization } from './organization.ts';
import { organizationColumns, organizationRow, toOrganization } from './store.ts';

/** A domain of email addresses that belongs to an organization. */
export interface OrganizationDomain {
  readonly domain: string;
  readonly verifiedAt: Date;
}

const p = {
  ...parameters(uuid, 'id', 'userId'),
  ...parameters(text, 'domain'),
  ...parameters(timestamptz, 'at'),
};

const list = statement({ domain: text, verified_at: timestamptz.notNull })`
  select domain, verified_at from organization_domains
  where organization_id = ${p.id} and verified_at is not null order by domain`;

// The unique index has the verified domains of all organizations.
const put = statement({})`
  with added as (
    insert into organization_domains (organization_id, domain, token, verified_at, created_at)
    values (${p.id}, ${p.domain}, '', ${p.at}, ${p.at})
    on conflict (domain) where verified_at is not null do nothing returning domain
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

/** Domains of organizations. A domain belongs to one organization. */
export class DomainStore {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  async list(id: string): Promise<readonly OrganizationDomain[]> {
    const rows = await list.run(this.#sql, { id });
    return rows.map(({ domain, verified_at: verifiedAt }) => ({ domain, verifiedAt }));
  }

  /** Returns false if an organization has the domain. */
  async add(domain: { readonly id: string; readonly domain: string; readonly at: Date }, audit: AuditEntry) {
    return put.matches(this.#sql, { ...domain, audit });
  }

  async remove(
    domain: { readonly id: string; readonly domain: string },
    audit: AuditEntry,
  ): Promise<boolean> {
    return remove.matches(this.#sql, { ...domain, audit });
  }

  /** Organizations that a user may join by the domain of their email. */
  async listJoinable(domain: string, userId: string): Promise<readonly Organization[]> {
    return (await listJoinable.run(this.#sql, { domain, userId })).map(toOrganization);
  }
}
