-- Up Migration
-- Tables and columns of GoTrue since 2026 that passkeys and WebAuthn factors use, for a schema that an earlier GoTrue made; and
-- events of passkeys.

create table if not exists webauthn_credentials (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null references users (id) on delete cascade,
  credential_id bytea not null,
  public_key bytea not null,
  attestation_type text not null default '',
  aaguid uuid,
  sign_count bigint not null default 0,
  transports jsonb not null default '[]',
  backup_eligible boolean not null default false,
  backed_up boolean not null default false,
  friendly_name text not null default '',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  last_used_at timestamptz
);
create unique index if not exists webauthn_credentials_credential_id_key on webauthn_credentials (credential_id);
create index if not exists webauthn_credentials_user_id_idx on webauthn_credentials (user_id);

create table if not exists webauthn_challenges (
  id uuid primary key default gen_random_uuid(),
  user_id uuid references users (id) on delete cascade,
  challenge_type text not null check (challenge_type in ('signup', 'registration', 'authentication')),
  session_data jsonb not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index if not exists webauthn_challenges_user_id_idx on webauthn_challenges (user_id);
create index if not exists webauthn_challenges_expires_at_idx on webauthn_challenges (expires_at);

alter table mfa_factors
  add column if not exists web_authn_credential jsonb,
  add column if not exists web_authn_aaguid uuid;
alter table mfa_challenges add column if not exists web_authn_session_data jsonb;

-- Passkeys that are deleted with their user have no events of their own.
create or replace function tollgate_passkey_event() returns trigger language plpgsql as $f$
declare
  passkey jsonb := case when tg_op = 'DELETE' then to_jsonb(old) else to_jsonb(new) end;
  owner users%rowtype;
begin
  select * into owner from users u where u.id = (passkey ->> 'user_id')::uuid and u.deleted_at is null;
  if found then
    perform tollgate_write_event(tg_argv[0], owner.id, jsonb_build_object('user', tollgate_event_user(owner),
      'passkey', jsonb_build_object('id', passkey -> 'id', 'friendly_name', passkey -> 'friendly_name')));
  end if;
  return null;
end $f$;

drop trigger if exists tollgate_passkey_created on webauthn_credentials;
create constraint trigger tollgate_passkey_created after insert on webauthn_credentials
  deferrable initially deferred for each row when (current_setting('tollgate.events', true) = 'on')
  execute function tollgate_passkey_event('passkey.registered');
drop trigger if exists tollgate_passkey_deleted on webauthn_credentials;
create constraint trigger tollgate_passkey_deleted after delete on webauthn_credentials
  deferrable initially deferred for each row when (current_setting('tollgate.events', true) = 'on')
  execute function tollgate_passkey_event('passkey.removed');
