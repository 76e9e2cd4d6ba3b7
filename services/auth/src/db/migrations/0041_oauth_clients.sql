-- Up Migration
-- What clients of the OAuth server have in addition to the columns of GoTrue, which reads all columns of its tables and knows no others.
-- There is no foreign key: a schema of GoTrue before 2025 has no `oauth_clients`.

create table if not exists oauth_client_settings (
  client_id uuid primary key,
  -- Null: that of `oauth_clients`, which cannot have private_key_jwt.
  token_endpoint_auth_method text,
  jwks jsonb,
  jwks_uri text,
  scopes text[] not null default '{}',
  audiences text[] not null default '{}',
  plan text,
  role text,
  -- As `app_metadata.limit` of users.
  rate_limit jsonb,
  org_id uuid,
  disabled boolean not null default false,
  -- Every change of a client writes it, so that the trigger below notifies.
  updated_at timestamptz not null default now()
);

-- Tells who listens to `tollgate_identity` which client has changed, as for users.
create or replace function notify_changed_client() returns trigger language plpgsql as $f$
declare
  changed jsonb := case when tg_op = 'DELETE' then to_jsonb(old) else to_jsonb(new) end;
begin
  perform pg_notify('tollgate_identity', tg_table_schema || ':' || coalesce(changed ->> 'client_id', changed ->> 'id'));
  return null;
end $f$;

drop trigger if exists client_changed on oauth_client_settings;
create trigger client_changed
  after insert or update or delete on oauth_client_settings for each row execute function notify_changed_client();
drop trigger if exists clients_truncated on oauth_client_settings;
create trigger clients_truncated
  after truncate on oauth_client_settings for each statement execute function notify_truncated_identities();

-- Changes that GoTrue makes. Its table is missing in a schema that it made before 2025.
do $$ begin
  if to_regclass('oauth_clients') is null then
    return;
  end if;
  drop trigger if exists client_changed on oauth_clients;
  create trigger client_changed after update or delete on oauth_clients for each row execute function notify_changed_client();
end $$;
