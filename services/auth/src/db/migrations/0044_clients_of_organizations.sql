-- Up Migration
-- Machine clients of an organization have its plan and limit: changes of the organization are changes of its clients.

create index if not exists oauth_client_settings_org on oauth_client_settings (org_id) where org_id is not null;

-- The schema is named because the connection of another program may have another search path.
create or replace function notify_clients_of_organization() returns trigger language plpgsql as $f$
declare
  ids uuid[];
begin
  execute format('select array(select client_id from %I.oauth_client_settings where org_id = $1 limit 201)', tg_table_schema)
    into ids using old.id;
  if cardinality(ids) > 0 then
    perform pg_notify('tollgate_identity',
      tg_table_schema || ':' || case when cardinality(ids) > 200 then '*' else array_to_string(ids, ',') end);
  end if;
  return null;
end $f$;

drop trigger if exists clients_of_organization_changed on organizations;
create trigger clients_of_organization_changed
  after update of plan, rate_limit on organizations for each row
  when ((old.plan, old.rate_limit) is distinct from (new.plan, new.rate_limit))
  execute function notify_clients_of_organization();
drop trigger if exists clients_of_organization_deleted on organizations;
create trigger clients_of_organization_deleted
  after delete on organizations for each row execute function notify_clients_of_organization();
