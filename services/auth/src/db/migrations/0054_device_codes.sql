-- Up Migration
-- Codes of devices that ask a user for access (RFC 8628). The request itself is a row of `oauth_authorizations`, which the user decides about as about any other.
-- There is no foreign key: a schema of GoTrue before 2025 has no such table.

create table if not exists oauth_device_codes (
  -- As `oauth_authorizations.id`.
  request_id uuid primary key,
  -- A digest.
  device_code text not null unique,
  user_code text not null unique,
  expires_at timestamptz not null,
  -- Seconds between requests for the token, and the last one.
  poll_interval integer not null,
  polled_at timestamptz
);

create index if not exists oauth_device_codes_expires_at on oauth_device_codes (expires_at);
