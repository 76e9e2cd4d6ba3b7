-- Up Migration
-- The end of a session of an OAuth client is an event for its `backchannel_logout_uri`, whatever ends the session: a sign-out, an administrator,
-- the deletion of the user, GoTrue. It is no event when expired rows are cleaned up. The subject is the client, so that a slow one delays itself.

-- The row is read as JSON: a schema that GoTrue made before 2026 has no such column, until GoTrue adds it.
create or replace function tollgate_client_logout() returns trigger language plpgsql security definer set search_path = '' as $f$
declare
  client uuid := pg_catalog.to_jsonb(old) ->> 'oauth_client_id';
begin
  if client is not null then
    execute format(
      'insert into %1$I.tollgate_events (webhook_id, user_id, type, data)
      select ''00000000-0000-0000-0000-000000000001'', client_id, ''client.logout'', jsonb_build_object(''sub'', $2, ''sid'', $3)
      from %1$I.oauth_client_settings where client_id = $1 and metadata ->> ''backchannel_logout_uri'' is not null',
      tg_table_schema) using client, old.user_id, old.id;
  end if;
  return null;
end $f$;
revoke execute on function tollgate_client_logout() from public;

drop trigger if exists tollgate_client_session_deleted on sessions;
create trigger tollgate_client_session_deleted after delete on sessions for each row
  when (coalesce(current_setting('tollgate.events', true), '') <> 'off')
  execute function tollgate_client_logout();
