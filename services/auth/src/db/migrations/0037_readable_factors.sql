-- Up Migration
-- Earlier versions stored no secret for phone and WebAuthn factors and recovery codes, and no instance for refresh tokens at first.
-- GoTrue cannot read a null there, and answers 500 to requests of the user. It writes these values itself, so the updates are safe
-- while it runs.

update mfa_factors set secret = coalesce(secret, ''), friendly_name = coalesce(friendly_name, '')
where num_nulls(secret, friendly_name) > 0;
update refresh_tokens set instance_id = '00000000-0000-0000-0000-000000000000' where instance_id is null;
