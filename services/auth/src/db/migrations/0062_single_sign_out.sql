-- Up Migration
-- The session with which the user has approved the request of a client: signing out of it ends the session that the client got.

alter table oidc_authorizations add column if not exists approved_by uuid;
alter table session_authentications add column if not exists approved_by uuid;
create index if not exists session_authentications_approved_by_idx on session_authentications (approved_by) where approved_by is not null;
