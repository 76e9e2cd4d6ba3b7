-- Up Migration
-- Endpoints of webhooks that administrators add. Each has its own rows in tollgate_events, so that a slow one delays no other.

create table if not exists tollgate_webhooks (
  id uuid primary key,
  name text not null unique,
  url text not null,
  -- Encrypted like other secrets, if the settings say so.
  secret text not null,
  -- Signs, too, until the time. Empty: none.
  previous_secret text not null default '',
  previous_secret_until timestamptz,
  -- Empty: all.
  event_types text[] not null default '{}',
  disabled boolean not null default false,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  last_delivered_at timestamptz,
  last_failed_at timestamptz,
  last_error text not null default ''
);

-- The nil UUID is the endpoint of the settings.
alter table tollgate_events
  add column if not exists webhook_id uuid not null default '00000000-0000-0000-0000-000000000000';
drop index if exists tollgate_events_pending;
create index if not exists tollgate_events_pending_by_webhook on tollgate_events (webhook_id, user_id, id) where failed_at is null;
drop index if exists tollgate_events_due;
create index if not exists tollgate_events_due_by_webhook on tollgate_events (webhook_id, next_attempt_at nulls first, id) where failed_at is null;

-- `tollgate.event_endpoints` names the endpoints that the server delivers to: `settings`, `api` or `settings,api`. Servers of earlier
-- versions do not set it, and have the endpoint of the settings.
create or replace function tollgate_write_event(event_type text, event_user uuid, details jsonb) returns void language plpgsql as $f$
declare
  endpoints text := coalesce(nullif(current_setting('tollgate.event_endpoints', true), ''), 'settings');
begin
  perform pg_advisory_xact_lock(hashtextextended('tollgate_events ' || event_user::text, 0));
  if endpoints like 'settings%' then
    insert into tollgate_events (user_id, type, data) values (event_user, event_type, details);
  end if;
  if endpoints like '%api' then
    insert into tollgate_events (webhook_id, user_id, type, data)
    select w.id, event_user, event_type, details from tollgate_webhooks w
    where not w.disabled and (w.event_types = '{}' or event_type = any(w.event_types));
  end if;
end $f$;
