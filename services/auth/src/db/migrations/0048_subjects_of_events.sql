-- Up Migration
-- Events are delivered in order for each subject. That of an entry of the audit log was a user or else the actor, so that one rejected
-- event of a key delayed those of all keys, organizations and clients which the same administrator changed.

-- The subject: the user, key, organization, client or provider that an entry names, else the user who acted for themselves. Events without
-- a subject, such as imports, wait for no other: each has a subject of its own.
create or replace function tollgate_event_subject(event_type text, actor_kind text, actor_id text, traits jsonb) returns uuid
  language plpgsql volatile as $f$
declare
  id_form constant text := '^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';
  subject text := coalesce(traits ->> 'user_id', traits ->> 'key_id', traits ->> 'org_id', traits ->> 'client_id',
    case when event_type like 'provider.%' then traits ->> 'provider' end,
    case when actor_kind in ('user', 'unauthenticated') then actor_id end);
begin
  return case when subject is null then gen_random_uuid() when subject ~ id_form then subject::uuid else md5(subject)::uuid end;
end $f$;

create or replace function tollgate_audit_event() returns trigger language plpgsql as $f$
declare
  entry jsonb := new.payload::jsonb;
  traits jsonb := coalesce(entry -> 'traits', '{}');
  id_form constant text := '^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';
  owner users%rowtype;
begin
  if entry ->> 'event' is null then
    return null;
  end if;
  select * into owner from users u
  where u.id = coalesce(substring(traits ->> 'user_id' from id_form), substring(entry ->> 'actor_id' from id_form))::uuid
    and u.deleted_at is null;
  perform tollgate_write_event(entry ->> 'event',
    tollgate_event_subject(entry ->> 'event', entry ->> 'actor_kind', entry ->> 'actor_id', traits),
    case when owner.id is null then '{}'::jsonb else jsonb_build_object('user', tollgate_event_user(owner)) end
    || jsonb_build_object(
      'actor', jsonb_build_object('id', entry -> 'actor_id', 'kind', entry -> 'actor_kind',
        'name', coalesce(entry -> 'actor_name', entry -> 'actor_username'), 'ip', new.ip_address),
      'details', traits));
  return null;
end $f$;

-- The name is of the time when users were the only subjects. Servers of earlier versions, which may run meanwhile, read the column.
comment on column tollgate_events.user_id is 'The subject: events of a subject are delivered in order.';

-- Events that wait for one of another subject are due at once.
update tollgate_events
set user_id = tollgate_event_subject(type, data -> 'actor' ->> 'kind', data -> 'actor' ->> 'id', data -> 'details'),
  next_attempt_at = case when attempts = 0 then null else next_attempt_at end
where data ? 'details';
