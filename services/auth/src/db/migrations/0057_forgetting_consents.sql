-- Up Migration
-- Another program that revokes a consent may have no rights on our tables. The triggers run as the owner; nobody else may make
-- triggers of the function, which would run with these rights on tables of their own.

create or replace function forget_consent_resources() returns trigger language plpgsql security definer set search_path = '' as $f$
begin
  execute format('delete from %I.oauth_consent_resources where consent_id = $1', tg_table_schema) using old.id;
  return null;
end $f$;
revoke execute on function forget_consent_resources() from public;
