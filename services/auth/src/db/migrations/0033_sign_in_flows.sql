-- Up Migration
-- Columns of GoTrue since 2026 that sign-in with external providers uses. Earlier versions of GoTrue
-- name the columns of this table that they read, so more of them do no harm.

alter table flow_state
  add column if not exists invite_token text,
  add column if not exists referrer text,
  add column if not exists oauth_client_state_id uuid,
  add column if not exists linking_target_id uuid,
  add column if not exists email_optional boolean not null default false;
