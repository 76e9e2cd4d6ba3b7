-- The schema that Tollgate made before its migration 0030, in the schema auth.
create schema auth;
set search_path to auth;
do $$ begin
  create type factor_type as enum ('totp', 'webauthn', 'phone');
exception when duplicate_object then null; end $$;
do $$ begin
  create type factor_status as enum ('unverified', 'verified');
exception when duplicate_object then null; end $$;
do $$ begin
  create type aal_level as enum ('aal1', 'aal2', 'aal3');
exception when duplicate_object then null; end $$;
do $$ begin
  create type code_challenge_method as enum ('s256', 'plain');
exception when duplicate_object then null; end $$;
do $$ begin
  create type one_time_token_type as enum (
    'confirmation_token',
    'reauthentication_token',
    'recovery_token',
    'email_change_token_new',
    'email_change_token_current',
    'phone_change_token'
  );
exception when duplicate_object then null; end $$;
create table if not exists users (
  id uuid primary key,
  instance_id uuid,
  aud varchar(255),
  role varchar(255),
  email varchar(255),
  encrypted_password varchar(255),
  email_confirmed_at timestamptz,
  invited_at timestamptz,
  confirmation_token varchar(255) default '',
  confirmation_sent_at timestamptz,
  recovery_token varchar(255) default '',
  recovery_sent_at timestamptz,
  email_change_token_new varchar(255) default '',
  email_change varchar(255) default '',
  email_change_sent_at timestamptz,
  last_sign_in_at timestamptz,
  raw_app_meta_data jsonb,
  raw_user_meta_data jsonb,
  is_super_admin boolean,
  created_at timestamptz,
  updated_at timestamptz,
  phone text unique default null,
  phone_confirmed_at timestamptz,
  phone_change text default '',
  phone_change_token varchar(255) default '',
  phone_change_sent_at timestamptz,
  confirmed_at timestamptz generated always as (least(email_confirmed_at, phone_confirmed_at)) stored,
  email_change_token_current varchar(255) default '',
  email_change_confirm_status smallint default 0 check (email_change_confirm_status between 0 and 2),
  banned_until timestamptz,
  reauthentication_token varchar(255) default '',
  reauthentication_sent_at timestamptz,
  is_sso_user boolean not null default false,
  deleted_at timestamptz,
  is_anonymous boolean not null default false
);
create index if not exists users_instance_id_idx on users (instance_id);
create index if not exists users_instance_id_email_idx on users (instance_id, lower(email));
create unique index if not exists users_email_partial_key on users (email) where is_sso_user = false;
create index if not exists users_is_anonymous_idx on users (is_anonymous);
create index if not exists users_created_at_idx on users (created_at desc, id);
create table if not exists identities (
  id uuid primary key default gen_random_uuid(),
  provider_id text not null,
  user_id uuid not null references users (id) on delete cascade,
  identity_data jsonb not null,
  provider text not null,
  last_sign_in_at timestamptz,
  created_at timestamptz,
  updated_at timestamptz,
  email text generated always as (lower(identity_data ->> 'email')) stored,
  unique (provider_id, provider)
);
create index if not exists identities_user_id_idx on identities (user_id);
create index if not exists identities_email_idx on identities (email text_pattern_ops);
create table if not exists audit_log_entries (
  instance_id uuid,
  id uuid primary key default gen_random_uuid(),
  payload json,
  created_at timestamptz,
  ip_address varchar(64) not null default ''
);
create index if not exists audit_log_entries_created_at_idx on audit_log_entries (created_at desc);
create table if not exists sessions (
  id uuid primary key,
  user_id uuid not null references users (id) on delete cascade,
  created_at timestamptz,
  updated_at timestamptz,
  factor_id uuid,
  aal aal_level,
  not_after timestamptz,
  refreshed_at timestamp without time zone,
  user_agent text,
  ip inet,
  tag text,
  oauth_client_id uuid,
  scopes text check (char_length(scopes) <= 4096),
  refresh_token_hmac_key text,
  refresh_token_counter bigint
);
create index if not exists sessions_user_id_idx on sessions (user_id);
create index if not exists user_id_created_at_idx on sessions (user_id, created_at);
create index if not exists sessions_not_after_idx on sessions (not_after desc);
create table if not exists refresh_tokens (
  instance_id uuid,
  id bigserial primary key,
  token varchar(255) unique,
  user_id varchar(255),
  revoked boolean,
  created_at timestamptz,
  updated_at timestamptz,
  parent varchar(255),
  session_id uuid references sessions (id) on delete cascade
);
create index if not exists refresh_tokens_parent_idx on refresh_tokens (parent);
create index if not exists refresh_tokens_session_id_revoked_idx on refresh_tokens (session_id, revoked);
create index if not exists refresh_tokens_updated_at_idx on refresh_tokens (updated_at desc);
create index if not exists refresh_tokens_instance_id_user_id_idx on refresh_tokens (instance_id, user_id);
create table if not exists mfa_amr_claims (
  session_id uuid not null references sessions (id) on delete cascade,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  authentication_method text not null,
  id uuid primary key default gen_random_uuid(),
  constraint mfa_amr_claims_session_id_authentication_method_pkey unique (session_id, authentication_method)
);
create table if not exists mfa_factors (
  id uuid primary key,
  user_id uuid not null references users (id) on delete cascade,
  friendly_name text,
  factor_type factor_type not null,
  status factor_status not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  secret text,
  phone text,
  last_challenged_at timestamptz unique,
  web_authn_credential jsonb,
  web_authn_aaguid uuid,
  last_webauthn_challenge_data jsonb
);
create unique index if not exists mfa_factors_user_friendly_name_unique
  on mfa_factors (friendly_name, user_id) where trim(friendly_name) <> '';
create unique index if not exists unique_phone_factor_per_user on mfa_factors (user_id, phone);
create index if not exists factor_id_created_at_idx on mfa_factors (user_id, created_at);
create table if not exists mfa_challenges (
  id uuid primary key,
  factor_id uuid not null references mfa_factors (id) on delete cascade,
  created_at timestamptz not null,
  verified_at timestamptz,
  ip_address inet not null,
  otp_code text,
  web_authn_session_data jsonb
);
create index if not exists mfa_challenge_created_at_idx on mfa_challenges (created_at desc);
create table if not exists one_time_tokens (
  id uuid primary key,
  user_id uuid not null references users (id) on delete cascade,
  token_type one_time_token_type not null,
  token_hash text not null check (char_length(token_hash) > 0),
  relates_to text not null,
  created_at timestamp without time zone not null default now(),
  updated_at timestamp without time zone not null default now()
);
create index if not exists one_time_tokens_token_hash_hash_idx on one_time_tokens using hash (token_hash);
create index if not exists one_time_tokens_relates_to_hash_idx on one_time_tokens using hash (relates_to);
create unique index if not exists one_time_tokens_user_id_token_type_key on one_time_tokens (user_id, token_type);
create table if not exists flow_state (
  id uuid primary key,
  user_id uuid,
  auth_code text,
  code_challenge_method code_challenge_method,
  code_challenge text,
  provider_type text not null,
  provider_access_token text,
  provider_refresh_token text,
  created_at timestamptz,
  updated_at timestamptz,
  authentication_method text not null,
  auth_code_issued_at timestamptz,
  invite_token text,
  referrer text,
  oauth_client_state_id uuid,
  linking_target_id uuid,
  email_optional boolean not null default false
);
create index if not exists idx_auth_code on flow_state (auth_code);
create index if not exists idx_user_id_auth_method on flow_state (user_id, authentication_method);
create index if not exists flow_state_created_at_idx on flow_state (created_at desc);
create unlogged table if not exists rate_limits (
  limiter text not null,
  key text not null,
  used double precision not null,
  since timestamptz not null,
  primary key (limiter, key)
);
create index if not exists rate_limits_since_idx on rate_limits (since);
alter table mfa_factors drop constraint if exists mfa_factors_last_challenged_at_key;
create index if not exists mfa_challenges_factor_id_idx on mfa_challenges (factor_id);
create index if not exists sessions_factor_id_idx on sessions (factor_id) where factor_id is not null;
do $$
declare
  claim text;
  wanted text[];
begin
  if not exists (select from pg_proc where proname = 'jwt' and pronamespace = current_schema()::regnamespace) then
    create function jwt() returns jsonb language sql stable as $f$
      select coalesce(
        nullif(current_setting('request.jwt.claim', true), ''),
        nullif(current_setting('request.jwt.claims', true), '')
      )::jsonb
    $f$;
  end if;
  foreach wanted slice 1 in array array[['uid', 'sub', 'uuid'], ['role', 'role', 'text'], ['email', 'email', 'text']] loop
    claim := wanted[2];
    if not exists (select from pg_proc where proname = wanted[1] and pronamespace = current_schema()::regnamespace) then
      execute format(
        $f$create function %I() returns %s language sql stable as %L$f$,
        wanted[1],
        wanted[3],
        format(
          $f$select coalesce(
            nullif(current_setting(%L, true), ''),
            nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> %L
          )::%s$f$,
          'request.jwt.claim.' || claim,
          claim,
          wanted[3]
        )
      );
    end if;
  end loop;
end $$;
create index if not exists sessions_created_at_idx on sessions (created_at);
create index if not exists one_time_tokens_created_at_idx on one_time_tokens (created_at);
alter table mfa_factors add column if not exists last_totp_period integer;
create function notify_changed_identity() returns trigger language plpgsql as $f$
declare
  sent integer := coalesce(nullif(current_setting('tollgate.changed_identities', true), ''), '0');
  id uuid;
begin
  if tg_table_name = 'users' then id := new.id; else id := new.user_id; end if;
  perform pg_notify('tollgate_identity', tg_table_schema || ':' || case when sent < 200 then id::text else '*' end);
  perform set_config('tollgate.changed_identities', (sent + 1)::text, true);
  return null;
end $f$;
create function notify_deleted_identities() returns trigger language plpgsql as $f$
declare
  ids uuid[];
begin
  if tg_table_name = 'users' then
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
create function notify_truncated_identities() returns trigger language plpgsql as $f$
begin
  perform pg_notify('tollgate_identity', tg_table_schema || ':*');
  return null;
end $f$;
create trigger identity_changed
  after update of role, raw_app_meta_data, banned_until, deleted_at, is_anonymous on users for each row
  when ((old.role, old.raw_app_meta_data, old.banned_until, old.deleted_at, old.is_anonymous)
    is distinct from (new.role, new.raw_app_meta_data, new.banned_until, new.deleted_at, new.is_anonymous))
  execute function notify_changed_identity();
create trigger identities_deleted
  after delete on users referencing old table as deleted for each statement
  execute function notify_deleted_identities();
create trigger identities_truncated
  after truncate on users for each statement execute function notify_truncated_identities();
create trigger session_end_changed
  after update of not_after on sessions for each row when (old.not_after is distinct from new.not_after)
  execute function notify_changed_identity();
create trigger sessions_deleted
  after delete on sessions referencing old table as deleted for each statement
  execute function notify_deleted_identities();
create trigger sessions_truncated
  after truncate on sessions for each statement execute function notify_truncated_identities();
create index if not exists users_anonymous_created_at_idx on users (created_at) where is_anonymous;
do $$ begin
  alter table users alter column encrypted_password type text;
exception when feature_not_supported then
  raise notice 'users.encrypted_password stays as it is: something stands on it';
end $$;
create table tollgate_migrations (id serial primary key, name varchar(255) not null, run_on timestamp not null);
insert into tollgate_migrations (name, run_on)
  select name, now() from unnest(array['0001_users', '0002_sessions', '0003_factors_and_links', '0007_factors', '0008_functions',
    '0009_used_codes', '0010_identity_changes', '0020_anonymous_users', '0021_room_for_encrypted_passwords']) as name;
reset search_path;
