-- Up Migration
-- Tells who listens to the channel `tollgate_identity` whose role, metadata, ban or session has changed: `<schema>:<user id>,<user id>…`,
-- or `<schema>:*` where they are too many to name. Sign-ins and refreshes change none of the columns below: they send nothing.
-- A payload is at most 8,000 bytes: up to 63 of the schema, and 37 for each of 200 ids.

-- PostgreSQL gives a trigger either the columns that it is about, or all rows of the statement at once. With columns a sign-in does
-- not even get here. Rows are counted for each transaction: equal notifications of one are sent once.
create or replace function notify_changed_identity() returns trigger language plpgsql as $f$
declare
  sent integer := coalesce(nullif(current_setting('tollgate.changed_identities', true), ''), '0');
  id uuid;
begin
  if tg_table_name = 'users' then id := new.id; else id := new.user_id; end if;
  perform pg_notify('tollgate_identity', tg_table_schema || ':' || case when sent < 200 then id::text else '*' end);
  perform set_config('tollgate.changed_identities', (sent + 1)::text, true);
  return null;
end $f$;

create or replace function notify_deleted_identities() returns trigger language plpgsql as $f$
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

create or replace function notify_truncated_identities() returns trigger language plpgsql as $f$
begin
  perform pg_notify('tollgate_identity', tg_table_schema || ':*');
  return null;
end $f$;

drop trigger if exists identity_changed on users;
create trigger identity_changed
  after update of role, raw_app_meta_data, banned_until, deleted_at, is_anonymous on users for each row
  when ((old.role, old.raw_app_meta_data, old.banned_until, old.deleted_at, old.is_anonymous)
    is distinct from (new.role, new.raw_app_meta_data, new.banned_until, new.deleted_at, new.is_anonymous))
  execute function notify_changed_identity();
drop trigger if exists identities_deleted on users;
create trigger identities_deleted
  after delete on users referencing old table as deleted for each statement
  execute function notify_deleted_identities();
drop trigger if exists identities_truncated on users;
create trigger identities_truncated
  after truncate on users for each statement execute function notify_truncated_identities();

drop trigger if exists session_end_changed on sessions;
create trigger session_end_changed
  after update of not_after on sessions for each row when (old.not_after is distinct from new.not_after)
  execute function notify_changed_identity();
drop trigger if exists sessions_deleted on sessions;
create trigger sessions_deleted
  after delete on sessions referencing old table as deleted for each statement
  execute function notify_deleted_identities();
drop trigger if exists sessions_truncated on sessions;
create trigger sessions_truncated
  after truncate on sessions for each statement execute function notify_truncated_identities();
