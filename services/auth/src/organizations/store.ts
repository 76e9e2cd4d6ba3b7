import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '@tollgate/kit/json';
import { type AuditEntry, auditInsert } from '../audit/audit-log.ts';
import { isUniqueViolation, type Queryable } from '../db/connection.ts';
import { type CursorPage, Lister, type Listing, type Position } from '../db/paging.ts';
import { boolean, integer, jsonOf, type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { bind, type Fragment, fragment, join, parameters, raw, statement } from '../db/statement.ts';
import type { Organization } from './organization.ts';

/** Columns of an organization, for `… organizations o`: {@link organizationRow}. */
export const organizationColumns = raw(
  'o.id, o.name, o.slug, o.plan, o.rate_limit, o.metadata, o.domain_role, o.created_at, o.updated_at',
);

export const organizationRow = {
  id: uuid,
  name: text,
  slug: text,
  plan: text.orNull,
  rate_limit: jsonOf<JsonObject>().orNull,
  metadata: jsonOf<JsonObject>(),
  domain_role: text.orNull,
  created_at: timestamptz,
  updated_at: timestamptz,
};
const membershipRow = { ...organizationRow, member_role: text };

export function toOrganization(row: RowOf<typeof organizationRow>): Organization {
  const { id, name, slug, metadata } = row;
  return {
    ...{ id, name, slug, metadata },
    plan: row.plan ?? undefined,
    limit: row.rate_limit ?? undefined,
    domainRole: row.domain_role ?? undefined,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** An organization and the role of a member. */
export interface Membership {
  readonly organization: Organization;
  readonly role: string;
}

export interface Member {
  readonly userId: string;
  readonly role: string;
  readonly email: string;
  readonly name: string;
  readonly createdAt: Date;
}

const p = {
  ...parameters(uuid, 'id', 'userId', 'sessionId'),
  ...parameters(uuid.orNull, 'ownerId'),
  ...parameters(text, 'name', 'slug', 'role', 'email'),
  ...parameters(text.orNull, 'plan', 'domainRole'),
  ...parameters(jsonOf<JsonObject>(), 'metadata'),
  ...parameters(jsonOf<JsonObject>().orNull, 'limit'),
  ...parameters(timestamptz, 'at'),
};

const insert = statement({})`
  with created as (
    insert into organizations (id, name, slug, plan, rate_limit, metadata, domain_role, created_at, updated_at)
    values (${p.id}, ${p.name}, ${p.slug}, ${p.plan}, ${p.limit}, ${p.metadata}, ${p.domainRole}, ${p.at}, ${p.at})
    on conflict (slug) do nothing returning id
  ), owner as (
    insert into organization_members (organization_id, user_id, role, created_at, updated_at)
    select id, ${p.ownerId}, 'owner', ${p.at}, ${p.at} from created where ${p.ownerId}::uuid is not null
  ), audit as (${auditInsert('created')})
  select 1 from created`;

const find = statement(
  organizationRow,
)`select ${organizationColumns} from organizations o where o.id = ${p.id}`;

const lock = statement(organizationRow)`
  select ${organizationColumns} from organizations o where o.id = ${p.id} for no key update`;

const update = statement({})`
  with updated as (
    update organizations set name = ${p.name}, slug = ${p.slug}, plan = ${p.plan}, rate_limit = ${p.limit},
      metadata = ${p.metadata}, domain_role = ${p.domainRole}, updated_at = ${p.at}
    where id = ${p.id} returning id
  ), audit as (${auditInsert('updated')})
  select 1 from updated`;

const deleteOrganization = statement({})`
  with deleted as (delete from organizations where id = ${p.id} returning id), audit as (${auditInsert('deleted')})
  select 1 from deleted`;

const memberships = fragment`
  select ${organizationColumns}, m.role as member_role
  from organization_members m join organizations o on o.id = m.organization_id
  where m.user_id = ${p.userId}`;

const findMembership = statement(membershipRow)`${memberships} and m.organization_id = ${p.id}`;
const listMemberships = statement(membershipRow)`${memberships} order by m.created_at, o.id`;

const memberColumns = raw(`m.user_id, m.role, coalesce(u.email, '') as email,
  coalesce(u.raw_user_meta_data ->> 'full_name', '') as name, m.created_at`);
const memberRow = { user_id: uuid, role: text, email: text, name: text, created_at: timestamptz };

const listMembers = statement(memberRow)`
  select ${memberColumns} from organization_members m join users u on u.id = m.user_id
  where m.organization_id = ${p.id} order by m.created_at, m.user_id`;

/** A page, sorted in memory: an organization has few members beside all users. */
function nextMembers({ limit, after }: Omit<CursorPage, 'order'>) {
  const isAfter = after
    ? fragment` and (m.created_at, m.user_id) > (${bind(text, after.createdAt)}::text::timestamptz, ${bind(uuid, after.id)}::uuid)`
    : raw('');
  return statement({ ...memberRow, position: text })`
    select ${memberColumns}, m.created_at::text as position
    from organization_members m join users u on u.id = m.user_id
    where m.organization_id = ${p.id}${isAfter} order by m.created_at, m.user_id limit ${bind(integer, limit)}`;
}

const findMember = statement(memberRow)`
  select ${memberColumns} from organization_members m join users u on u.id = m.user_id
  where m.organization_id = ${p.id} and m.user_id = ${p.userId}`;

// Two statements: a count in the first would not see what was committed while it waited.
const lockUser = statement({})`
  select id from users where id = ${p.userId} and deleted_at is null for no key update`;
const countMemberships = statement({ memberships: integer })`
  select count(*)::int as memberships from organization_members where user_id = ${p.userId}`;

const countMembers = statement({ owners: integer, members: integer, invitations: integer })`
  select count(*) filter (where role = 'owner')::int as owners, count(*)::int as members,
    (select count(*)::int from organization_invitations i
      where i.organization_id = ${p.id} and i.expires_at > ${p.at}) as invitations
  from organization_members where organization_id = ${p.id}`;

const hasMemberWithEmail = statement({})`
  select 1 from organization_members m join users u on u.id = m.user_id
  where m.organization_id = ${p.id} and lower(u.email) = ${p.email} limit 1`;

const addMember = statement({})`
  with added as (
    insert into organization_members (organization_id, user_id, role, created_at, updated_at)
    values (${p.id}, ${p.userId}, ${p.role}, ${p.at}, ${p.at}) on conflict do nothing returning user_id
  ), audit as (${auditInsert('added')})
  select 1 from added`;

const setRole = statement({})`
  with changed as (
    update organization_members set role = ${p.role}, updated_at = ${p.at}
    where organization_id = ${p.id} and user_id = ${p.userId} returning user_id
  ), audit as (${auditInsert('changed')})
  select 1 from changed`;

const removeMember = statement({})`
  with removed as (
    delete from organization_members where organization_id = ${p.id} and user_id = ${p.userId} returning user_id
  ), audit as (${auditInsert('removed')})
  select 1 from removed`;

const activate = statement({ is_active: boolean })`
  insert into session_organizations (session_id, organization_id, user_id)
  select s.id, m.organization_id, m.user_id from sessions s join organization_members m on m.user_id = s.user_id
  where s.id = ${p.sessionId} and m.organization_id = ${p.id} and m.user_id = ${p.userId}
  on conflict (session_id) do update set organization_id = excluded.organization_id, user_id = excluded.user_id
  returning true as is_active`;

const deactivate = statement({})`delete from session_organizations where session_id = ${p.sessionId}`;

/** Which organizations to list. An absent member does not restrict the list. */
export interface OrganizationFilter {
  readonly plan?: string;
  readonly slug?: string;
  readonly userId?: string;
  readonly withoutOwner?: boolean;
}

function matching({ plan, slug, userId, withoutOwner }: OrganizationFilter): Fragment<unknown> {
  const member = raw('select from organization_members m where m.organization_id = o.id');
  const parts = [
    raw('true'),
    ...(plan === undefined ? [] : [fragment`o.plan = ${bind(text, plan)}`]),
    ...(slug === undefined ? [] : [fragment`o.slug = ${bind(text, slug)}`]),
    ...(userId === undefined
      ? []
      : [fragment`exists (${member} and m.user_id = ${bind(uuid, userId)}::uuid)`]),
    ...(withoutOwner === true ? [fragment`not exists (${member} and m.role = 'owner')`] : []),
  ];
  return join(parts, ' and ');
}

const listedRow = { ...organizationRow, position: text.orNull };

const organizationListing: Listing<OrganizationFilter, typeof listedRow> = {
  table: 'organizations',
  alias: 'o',
  columns: organizationColumns,
  row: listedRow,
  condition: matching,
  count: (filter) => fragment`(select count(*) from organizations o where ${matching(filter)})`,
  alternative: () => undefined,
};

/** Organizations, their members, and which of them are active in sessions. */
export class OrganizationStore {
  readonly #sql: Queryable;
  readonly #onChange: ((ids: readonly string[]) => void) | undefined;
  readonly #lister: Lister<OrganizationFilter, typeof listedRow>;

  /** @param onChange called with members and organizations that the gateway must read again */
  constructor(sql: Queryable, onChange?: (ids: readonly string[]) => void) {
    this.#sql = sql;
    this.#onChange = onChange;
    this.#lister = new Lister(sql, organizationListing);
  }

  /** Newest first. `next` is undefined for the last page. */
  async listAfter(
    filter: OrganizationFilter,
    page: Omit<CursorPage, 'order'>,
  ): Promise<{ readonly items: readonly Organization[]; readonly next: Position | undefined }> {
    const { items, next } = await this.#lister.listAfter(filter, { ...page, order: 'desc' });
    return { items: items.map(toOrganization), next };
  }

  /** Returns false if the slug is taken. */
  async insert(
    organization: Omit<Organization, 'createdAt' | 'updatedAt'>,
    options: { readonly ownerId: string | undefined; readonly at: Date; readonly audit: AuditEntry },
  ): Promise<boolean> {
    return insert.matches(this.#sql, { ...toValues(organization), ...options });
  }

  async find(id: string): Promise<Organization | undefined> {
    const row = await find.first(this.#sql, { id });
    return row && toOrganization(row);
  }

  /** Locks the organization, and with it the number of its members, until the transaction ends. */
  async lock(id: string): Promise<Organization | undefined> {
    const row = await lock.first(this.#sql, { id });
    return row && toOrganization(row);
  }

  /** Returns false if the slug is taken. Requires a lock. */
  async update(
    organization: Organization,
    { before, audit }: { readonly before: Organization; readonly audit: AuditEntry },
  ): Promise<boolean> {
    try {
      await update.run(this.#sql, { ...toValues(organization), at: organization.updatedAt, audit });
    } catch (error) {
      if (isUniqueViolation(error)) return false;
      throw error;
    }
    const { slug, plan, limit } = organization;
    if (slug !== before.slug || plan !== before.plan || !isDeepStrictEqual(limit, before.limit))
      await this.#notify(organization.id);
    return true;
  }

  async delete(id: string, audit: AuditEntry): Promise<boolean> {
    const members = this.#onChange === undefined ? [] : await listMembers.run(this.#sql, { id });
    const isDeleted = await deleteOrganization.matches(this.#sql, { id, audit });
    this.#onChange?.([id, ...members.map(({ user_id }) => user_id)]);
    return isDeleted;
  }

  async findMembership(id: string, userId: string): Promise<Membership | undefined> {
    const row = await findMembership.first(this.#sql, { id, userId });
    return row && { organization: toOrganization(row), role: row.member_role };
  }

  /** Oldest membership first. */
  async listMemberships(userId: string): Promise<readonly Membership[]> {
    const rows = await listMemberships.run(this.#sql, { userId });
    return rows.map((row) => ({ organization: toOrganization(row), role: row.member_role }));
  }

  /** Oldest first. */
  async listMembers(id: string): Promise<readonly Member[]> {
    return (await listMembers.run(this.#sql, { id })).map(toMember);
  }

  /** A page of them. `next` is undefined for the last page. */
  async listMembersAfter(
    id: string,
    { limit, after }: Omit<CursorPage, 'order'>,
  ): Promise<{ readonly items: readonly Member[]; readonly next: Position | undefined }> {
    const rows = await nextMembers({ limit: limit + 1, after }).run(this.#sql, { id });
    const page = rows.slice(0, limit);
    const last = rows.length > limit ? page.at(-1) : undefined;
    return { items: page.map(toMember), next: last && { createdAt: last.position, id: last.user_id } };
  }

  async findMember(id: string, userId: string): Promise<Member | undefined> {
    const row = await findMember.first(this.#sql, { id, userId });
    return row && toMember(row);
  }

  /**
   * Locks the user, and with it the number of their organizations, which it returns; undefined if
   * there is no such user.
   */
  async lockUser(userId: string): Promise<number | undefined> {
    if (!(await lockUser.matches(this.#sql, { userId }))) return undefined;
    return (await countMemberships.first(this.#sql, { userId }))?.memberships;
  }

  /** Expired invitations do not count. */
  async countMembers(id: string, at: Date) {
    const row = await countMembers.first(this.#sql, { id, at });
    return row ?? { owners: 0, members: 0, invitations: 0 };
  }

  /** @param email in lower case */
  async hasMemberWithEmail(id: string, email: string): Promise<boolean> {
    return hasMemberWithEmail.matches(this.#sql, { id, email });
  }

  /** Returns false if the user is a member. */
  async addMember(
    member: { readonly id: string; readonly userId: string; readonly role: string; readonly at: Date },
    audit: AuditEntry,
  ): Promise<boolean> {
    const isAdded = await addMember.matches(this.#sql, { ...member, audit });
    this.#onChange?.([member.userId]);
    return isAdded;
  }

  async setRole(
    member: { readonly id: string; readonly userId: string; readonly role: string; readonly at: Date },
    audit: AuditEntry,
  ): Promise<void> {
    await setRole.run(this.#sql, { ...member, audit });
    this.#onChange?.([member.userId]);
  }

  async removeMember(id: string, userId: string, audit: AuditEntry): Promise<void> {
    await removeMember.run(this.#sql, { id, userId, audit });
    this.#onChange?.([userId]);
  }

  /** Returns false if the user is not a member, or the session has ended. */
  async activate(
    session: { readonly sessionId: string; readonly userId: string },
    id: string,
  ): Promise<boolean> {
    return activate.matches(this.#sql, { ...session, id });
  }

  async deactivate(sessionId: string): Promise<void> {
    await deactivate.run(this.#sql, { sessionId });
  }

  async #notify(id: string): Promise<void> {
    if (this.#onChange === undefined) return;
    const members = await listMembers.run(this.#sql, { id });
    this.#onChange([id, ...members.map(({ user_id }) => user_id)]);
  }
}

function toValues(organization: Omit<Organization, 'createdAt' | 'updatedAt'>) {
  const { id, name, slug, plan, limit, metadata, domainRole } = organization;
  return { id, name, slug, plan, limit, metadata, domainRole };
}

function toMember(row: RowOf<typeof memberRow>): Member {
  const { user_id: userId, role, email, name, created_at: createdAt } = row;
  return { userId, role, email, name, createdAt };
}
