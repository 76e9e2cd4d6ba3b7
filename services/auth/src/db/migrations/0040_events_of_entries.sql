-- Up Migration
-- Entries of the audit log whose payload names an event are events, too: actions that change no row of a user, such as failed sign-ins.

create or replace function tollgate_audit_event() returns trigger language plpgsql as $f$
declare
  entry jsonb := new.payload::jsonb;
  traits jsonb := coalesce(entry -> 'traits', '{}');
  id_form constant text := '^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';
  subject uuid;
  owner users%rowtype;
begin
  if entry ->> 'event' is null then
    return null;
  end if;
  -- Events are delivered in order for each user; those of other things are in order for who acted.
  subject := coalesce(substring(traits ->> 'user_id' from id_form), substring(entry ->> 'actor_id' from id_form),
    '00000000-0000-0000-0000-000000000000')::uuid;
  select * into owner from users u where u.id = subject and u.deleted_at is null;
  perform tollgate_write_event(entry ->> 'event', subject,
    case when owner.id is null then '{}'::jsonb else jsonb_build_object('user', tollgate_event_user(owner)) end
    || jsonb_build_object(
      'actor', jsonb_build_object('id', entry -> 'actor_id', 'kind', entry -> 'actor_kind',
        'name', coalesce(entry -> 'actor_name', entry -> 'actor_username'), 'ip', new.ip_address),
      'details', traits));
  return null;
end $f$;

-- The payload is read in the function and not in the condition, which would make it impossible to change the type of the column.
drop trigger if exists tollgate_entry_created on audit_log_entries;
create constraint trigger tollgate_entry_created after insert on audit_log_entries
  deferrable initially deferred for each row when (current_setting('tollgate.events', true) = 'on')
  execute function tollgate_audit_event();
