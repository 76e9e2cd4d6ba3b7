-- Up Migration

-- An encrypted hash is half as long again as the hash; some that were imported have 255 characters already. Where a view stands on the
-- column it stays as it is, which is enough for the hashes that this server makes, with an id of the key of up to 32 characters.
do $$ begin
  alter table users alter column encrypted_password type text;
exception when feature_not_supported then
  raise notice 'users.encrypted_password stays as it is: something stands on it';
end $$;
