-- Up Migration
-- Organizations are in tables of our own: GoTrue ignores them, and whatever it deletes takes what refers to it along. A user may be
-- deleted by any program: triggers end the memberships of soft-deleted users, too.

create table if not exists organizations (
  id uuid primary key,
  name text not null,
  slug text not null constraint organizations_slug_key unique,
  -- Null: none.
  plan text,
  -- `{ requests_per_unit, unit }`. Null: none.
  rate_limit jsonb,
  metadata jsonb not null default '{}',
  -- Role of users who join by a verified domain of their email. Null: they cannot.
  domain_role text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index if not exists organizations_created on organizations (created_at, id);

create table if not exists organization_members (
  organization_id uuid not null references organizations (id) on delete cascade,
  user_id uuid not null references users (id) on delete cascade,
  role text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (organization_id, user_id)
);
create index if not exists organization_members_user on organization_members (user_id);

create table if not exists organization_invitations (
  id uuid primary key,
  organization_id uuid not null references organizations (id) on delete cascade,
  -- In lower case.
  email text not null,
  role text not null,
  -- SHA-256 of the token of the link.
  token_hash text not null constraint organization_invitations_token_key unique,
  invited_by uuid references users (id) on delete set null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint organization_invitations_email_key unique (organization_id, email)
);
create index if not exists organization_invitations_email on organization_invitations (email);
create index if not exists organization_invitations_expiry on organization_invitations (expires_at);

create table if not exists organization_domains (
  organization_id uuid not null references organizations (id) on delete cascade,
  -- In lower case.
  domain text not null,
  -- Value of the TXT record that proves it.
  token text not null,
  -- Null: not proven yet.
  verified_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (organization_id, domain)
);
-- Several organizations may try to prove a domain; one has it.
create unique index if not exists organization_domains_verified on organization_domains (domain) where verified_at is not null;

-- The active organization of a session, until it is changed, the membership ends, or the session does.
create table if not exists session_organizations (
  session_id uuid primary key references sessions (id) on delete cascade,
  organization_id uuid not null,
  user_id uuid not null,
  foreign key (organization_id, user_id) references organization_members (organization_id, user_id) on delete cascade
);
create index if not exists session_organizations_member on session_organizations (organization_id, user_id);

-- The schema is named because the connection of another program may have another search path.
create or replace function end_memberships() returns trigger language plpgsql as $f$
begin
  execute format('delete from %I.organization_members where user_id = $1', tg_table_schema) using new.id;
  return null;
end $f$;

create or replace function notify_changed_organization() returns trigger language plpgsql as $f$
declare
  ids uuid[];
begin
  execute format('select array(select user_id from %I.organization_members where organization_id = $1 limit 201)', tg_table_schema)
    into ids using new.id;
  if cardinality(ids) > 0 then
    perform pg_notify('tollgate_identity',
      tg_table_schema || ':' || case when cardinality(ids) > 200 then '*' else array_to_string(ids, ',') end);
  end if;
  return null;
end $f$;

drop trigger if exists memberships_ended on users;
create trigger memberships_ended
  after update of deleted_at on users for each row when (old.deleted_at is null and new.deleted_at is not null)
  execute function end_memberships();

drop trigger if exists organization_changed on organizations;
create trigger organization_changed
  after update of plan, rate_limit on organizations for each row
  when ((old.plan, old.rate_limit) is distinct from (new.plan, new.rate_limit))
  execute function notify_changed_organization();

drop trigger if exists member_added on organization_members;
create trigger member_added
  after insert on organization_members for each row execute function notify_changed_identity();
drop trigger if exists member_changed on organization_members;
create trigger member_changed
  after update of role on organization_members for each row when (old.role is distinct from new.role)
  execute function notify_changed_identity();
drop trigger if exists members_deleted on organization_members;
create trigger members_deleted
  after delete on organization_members referencing old table as deleted for each statement
  execute function notify_deleted_identities();
drop trigger if exists members_truncated on organization_members;
create trigger members_truncated
  after truncate on organization_members for each statement execute function notify_truncated_identities();
