-- Up Migration

-- Two factors may be challenged at the same moment.
alter table mfa_factors drop constraint if exists mfa_factors_last_challenged_at_key;
create index if not exists mfa_challenges_factor_id_idx on mfa_challenges (factor_id);
create index if not exists sessions_factor_id_idx on sessions (factor_id) where factor_id is not null;
