-- Up Migration
-- Invitations end with the user who sent them.

alter table organization_invitations drop constraint if exists organization_invitations_invited_by_fkey;
-- Null: an administrator has sent it.
alter table organization_invitations add constraint organization_invitations_invited_by_fkey
  foreign key (invited_by) references users (id) on delete cascade;
create index if not exists organization_invitations_inviter on organization_invitations (invited_by);

create or replace function end_memberships() returns trigger language plpgsql as $f$
begin
  execute format('delete from %I.organization_members where user_id = $1', tg_table_schema) using new.id;
  execute format('delete from %I.organization_invitations where invited_by = $1', tg_table_schema) using new.id;
  return null;
end $f$;
