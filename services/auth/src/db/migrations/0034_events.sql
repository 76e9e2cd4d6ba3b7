-- Up Migration
-- Events for webhooks, written by triggers in the transaction of the change. Only connections with `tollgate.events` = `on` write
-- events: those of servers with SVC_EVENT_WEBHOOK_URI.

create table if not exists tollgate_events (
  id bigint generated always as identity primary key,
  event_id uuid not null default gen_random_uuid() unique,
  user_id uuid not null,
  type text not null,
  data jsonb not null,
  created_at timestamptz not null default clock_timestamp(),
  attempts integer not null default 0,
  -- Null: not attempted yet.
  next_attempt_at timestamptz,
  retry_until timestamptz,
  -- Set once retries are given up.
  failed_at timestamptz,
  last_error text not null default ''
);
create index if not exists tollgate_events_pending on tollgate_events (user_id, id) where failed_at is null;
create index if not exists tollgate_events_due on tollgate_events (next_attempt_at nulls first, id) where failed_at is null;
create index if not exists tollgate_events_failed on tollgate_events (failed_at) where failed_at is not null;

create or replace function tollgate_event_user(u users) returns jsonb language sql stable as $f$
  select jsonb_build_object(
    'id', u.id, 'aud', coalesce(u.aud, ''), 'role', coalesce(u.role, ''),
    'email', coalesce(u.email, ''), 'phone', coalesce(u.phone, ''),
    'email_confirmed_at', u.email_confirmed_at, 'phone_confirmed_at', u.phone_confirmed_at,
    'app_metadata', coalesce(u.raw_app_meta_data, '{}'), 'user_metadata', coalesce(u.raw_user_meta_data, '{}'),
    'banned_until', u.banned_until, 'is_anonymous', u.is_anonymous,
    'created_at', u.created_at, 'updated_at', u.updated_at)
$f$;

-- The lock is held until the commit, so that the order of ids is that of commits for each user. The triggers are deferred to
-- the commit, when all row locks are held: a lock between two statements could cause deadlocks.
create or replace function tollgate_write_event(event_type text, event_user uuid, details jsonb) returns void language plpgsql as $f$
begin
  perform pg_advisory_xact_lock(hashtextextended('tollgate_events ' || event_user::text, 0));
  insert into tollgate_events (user_id, type, data) values (event_user, event_type, details);
end $f$;

-- The columns are compared here and not in the conditions of triggers, which would make it impossible to change their types.
create or replace function tollgate_user_event() returns trigger language plpgsql as $f$
begin
  if tg_op = 'INSERT' then
    perform tollgate_write_event('user.created', new.id, jsonb_build_object('user', tollgate_event_user(new)));
    return null;
  end if;
  if tg_op = 'DELETE' or new.deleted_at is not null then
    -- Soft deletion removes the contacts from the row.
    if old.deleted_at is null then
      perform tollgate_write_event('user.deleted', old.id, jsonb_build_object('user', tollgate_event_user(old)));
    end if;
    return null;
  end if;
  -- A hash that is replaced by one of the same password keeps `updated_at`.
  if old.encrypted_password is distinct from new.encrypted_password and old.updated_at is distinct from new.updated_at then
    perform tollgate_write_event('password.changed', new.id, jsonb_build_object('user', tollgate_event_user(new)));
  end if;
  if (old.aud, old.role, old.email, old.phone, old.email_confirmed_at, old.phone_confirmed_at, old.raw_app_meta_data,
      old.raw_user_meta_data, old.banned_until, old.is_anonymous)
    is distinct from (new.aud, new.role, new.email, new.phone, new.email_confirmed_at, new.phone_confirmed_at,
      new.raw_app_meta_data, new.raw_user_meta_data, new.banned_until, new.is_anonymous) then
    perform tollgate_write_event('user.updated', new.id, jsonb_build_object('user', tollgate_event_user(new)));
  end if;
  return null;
end $f$;

-- Sessions, factors and identities that are deleted with their user have no events of their own.
create or replace function tollgate_related_event() returns trigger language plpgsql as $f$
declare
  related jsonb := case when tg_op = 'DELETE' then to_jsonb(old) else to_jsonb(new) end;
  owner users%rowtype;
  details jsonb;
begin
  if tg_op = 'UPDATE' and to_jsonb(old) -> 'status' = to_jsonb(new) -> 'status' then
    return null;
  end if;
  select * into owner from users u where u.id = (related ->> 'user_id')::uuid and u.deleted_at is null;
  if not found then
    return null;
  end if;
  if tg_table_name = 'sessions' then
    details := jsonb_build_object('session', jsonb_build_object('id', related -> 'id', 'aal', related -> 'aal',
      'ip', related -> 'ip', 'user_agent', related -> 'user_agent', 'created_at', related -> 'created_at'));
  elsif tg_table_name = 'mfa_factors' then
    details := jsonb_build_object('factor', jsonb_build_object('id', related -> 'id', 'factor_type', related -> 'factor_type',
      'friendly_name', related -> 'friendly_name', 'status', related -> 'status'));
  else
    -- The first identity is part of the creation of the user.
    if tg_op = 'INSERT' and (select count(*) from identities i where i.user_id = owner.id) < 2 then
      return null;
    end if;
    details := jsonb_build_object('identity', jsonb_build_object('id', related -> 'id', 'provider', related -> 'provider',
      'provider_id', related -> 'provider_id', 'email', related -> 'email'));
  end if;
  perform tollgate_write_event(tg_argv[0], owner.id, jsonb_build_object('user', tollgate_event_user(owner)) || details);
  return null;
end $f$;

drop trigger if exists tollgate_user_changed on users;
create constraint trigger tollgate_user_changed after insert or update or delete on users
  deferrable initially deferred for each row when (current_setting('tollgate.events', true) = 'on')
  execute function tollgate_user_event();

drop trigger if exists tollgate_session_created on sessions;
create constraint trigger tollgate_session_created after insert on sessions
  deferrable initially deferred for each row when (current_setting('tollgate.events', true) = 'on')
  execute function tollgate_related_event('user.signed_in');
drop trigger if exists tollgate_session_deleted on sessions;
create constraint trigger tollgate_session_deleted after delete on sessions
  deferrable initially deferred for each row when (current_setting('tollgate.events', true) = 'on')
  execute function tollgate_related_event('session.revoked');

drop trigger if exists tollgate_factor_created on mfa_factors;
create constraint trigger tollgate_factor_created after insert on mfa_factors
  deferrable initially deferred for each row when (current_setting('tollgate.events', true) = 'on')
  execute function tollgate_related_event('factor.enrolled');
drop trigger if exists tollgate_factor_verified on mfa_factors;
create constraint trigger tollgate_factor_verified after update on mfa_factors
  deferrable initially deferred for each row when (current_setting('tollgate.events', true) = 'on')
  execute function tollgate_related_event('factor.verified');
drop trigger if exists tollgate_factor_deleted on mfa_factors;
create constraint trigger tollgate_factor_deleted after delete on mfa_factors
  deferrable initially deferred for each row when (current_setting('tollgate.events', true) = 'on')
  execute function tollgate_related_event('factor.removed');

drop trigger if exists tollgate_identity_created on identities;
create constraint trigger tollgate_identity_created after insert on identities
  deferrable initially deferred for each row when (current_setting('tollgate.events', true) = 'on')
  execute function tollgate_related_event('identity.linked');
drop trigger if exists tollgate_identity_deleted on identities;
create constraint trigger tollgate_identity_deleted after delete on identities
  deferrable initially deferred for each row when (current_setting('tollgate.events', true) = 'on')
  execute function tollgate_related_event('identity.unlinked');
