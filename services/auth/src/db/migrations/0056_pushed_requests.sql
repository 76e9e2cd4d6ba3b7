-- Up Migration
-- Authorization requests that clients have pushed (RFC 9126).

create table if not exists oauth_pushed_requests (
  -- A digest.
  request_uri text primary key,
  client_id uuid not null,
  -- As a form.
  parameters text not null,
  expires_at timestamptz not null
);

create index if not exists oauth_pushed_requests_expires_at on oauth_pushed_requests (expires_at);
