-- Up Migration
-- Members of an organization manage the keys that they issue. Those that an administrator issued they can only revoke.

alter table api_keys add column if not exists by_member boolean not null default false;
