-- Up Migration

-- Anonymous users are removed when they have not been seen for a while.
create index if not exists users_anonymous_created_at_idx on users (created_at) where is_anonymous;
