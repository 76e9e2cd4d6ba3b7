-- Up Migration
-- API keys, in a table of our own. Only digests of keys are stored. A key belongs to a user, to an organisation, or to nobody: a machine.

create table if not exists api_keys (
  id uuid primary key,
  name text not null,
  -- How the key starts, and its last four characters: by these an owner recognizes it. Empty for imported digests.
  prefix text not null,
  last4 text not null,
  -- SHA-256 in hexadecimal.
  digest text not null unique,
  user_id uuid references users (id) on delete cascade,
  org_id uuid references organizations (id) on delete cascade,
  scopes text[] not null default '{}',
  admin_scopes text[] not null default '{}',
  -- Null: those of the owner.
  role text,
  plan text,
  rate_limit jsonb,
  expires_at timestamptz,
  -- CIDR. Empty: any address.
  allowed_networks text[] not null default '{}',
  metadata jsonb not null default '{}',
  disabled boolean not null default false,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  last_used_at timestamptz,
  -- The key that this one replaces.
  rotated_from uuid,
  -- Id of the actor in the audit log.
  created_by text not null default '',
  check (num_nonnulls(user_id, org_id) <= 1)
);
create index if not exists api_keys_user_id on api_keys (user_id, created_at, id) where user_id is not null;
create index if not exists api_keys_org_id on api_keys (org_id, created_at, id) where org_id is not null;
create index if not exists api_keys_created_at on api_keys (created_at, id);
create unique index if not exists api_keys_rotated_from on api_keys (rotated_from) where rotated_from is not null;
create index if not exists api_keys_last4 on api_keys (last4);

-- Keys, and organizations that own keys, are named by their own id in notifications, as users are. See 0010_identity_changes.sql.
create or replace function notify_changed_identity() returns trigger language plpgsql as $f$
declare
  sent integer := coalesce(nullif(current_setting('tollgate.changed_identities', true), ''), '0');
  id uuid;
begin
  if tg_table_name in ('users', 'api_keys', 'organizations') then id := new.id; else id := new.user_id; end if;
  perform pg_notify('tollgate_identity', tg_table_schema || ':' || case when sent < 200 then id::text else '*' end);
  perform set_config('tollgate.changed_identities', (sent + 1)::text, true);
  return null;
end $f$;

create or replace function notify_deleted_identities() returns trigger language plpgsql as $f$
declare
  ids uuid[];
begin
  if tg_table_name in ('users', 'api_keys') then
    ids := array(select d.id from deleted d limit 201);
  else
    ids := array(select distinct d.user_id from deleted d limit 201);
  end if;
  if cardinality(ids) > 0 then
    perform pg_notify('tollgate_identity',
      tg_table_schema || ':' || case when cardinality(ids) > 200 then '*' else array_to_string(ids, ',') end);
  end if;
  return null;
end $f$;

-- The use of a key is not a change.
drop trigger if exists identity_changed on api_keys;
create trigger identity_changed
  after update of digest, user_id, org_id, scopes, admin_scopes, role, plan, rate_limit, expires_at, allowed_networks, metadata, disabled
  on api_keys for each row execute function notify_changed_identity();
drop trigger if exists identities_deleted on api_keys;
create trigger identities_deleted
  after delete on api_keys referencing old table as deleted for each statement
  execute function notify_deleted_identities();
drop trigger if exists identities_truncated on api_keys;
create trigger identities_truncated
  after truncate on api_keys for each statement execute function notify_truncated_identities();

-- Keys have the plan and the limit of the organization that owns them.
drop trigger if exists identity_changed on organizations;
create trigger identity_changed
  after update of plan, rate_limit on organizations for each row
  when ((old.plan, old.rate_limit) is distinct from (new.plan, new.rate_limit))
  execute function notify_changed_identity();
