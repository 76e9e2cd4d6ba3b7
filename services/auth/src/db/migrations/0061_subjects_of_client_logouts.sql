-- Up Migration
-- Each client is an endpoint of its own for the ends of its sessions, and the session is the subject: logout tokens need no order, so that one that
-- fails delays no other, and a slow client delays only itself.

create or replace function tollgate_client_logout() returns trigger language plpgsql security definer set search_path = '' as $f$
declare
  client uuid := pg_catalog.to_jsonb(old) ->> 'oauth_client_id';
begin
  if client is not null then
    execute format(
      'insert into %1$I.tollgate_events (webhook_id, user_id, type, data)
      select client_id, $3, ''client.logout'', jsonb_build_object(''sub'', $2, ''sid'', $3)
      from %1$I.oauth_client_settings where client_id = $1 and metadata ->> ''backchannel_logout_uri'' is not null',
      tg_table_schema) using client, old.user_id, old.id;
  end if;
  return null;
end $f$;

update tollgate_events set webhook_id = user_id, user_id = (data ->> 'sid')::uuid
where webhook_id = '00000000-0000-0000-0000-000000000001';
