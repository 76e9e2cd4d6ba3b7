-- Up Migration
-- The resource that the access tokens of a session are for (RFC 8707): the audience of the tokens that an OAuth client gets.

create table if not exists session_resources (
  session_id uuid primary key references sessions (id) on delete cascade,
  resource text not null
);
