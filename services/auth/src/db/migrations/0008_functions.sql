-- Up Migration
-- For policies of row level security: who calls, from the claims that PostgREST and its like set for a transaction.
-- Functions that are there already, of a database of GoTrue, stay.

do $$
declare
  claim text;
  wanted text[];
begin
  if not exists (select from pg_proc where proname = 'jwt' and pronamespace = current_schema()::regnamespace) then
    create function jwt() returns jsonb language sql stable as $f$
      select coalesce(
        nullif(current_setting('request.jwt.claim', true), ''),
        nullif(current_setting('request.jwt.claims', true), '')
      )::jsonb
    $f$;
  end if;
  foreach wanted slice 1 in array array[['uid', 'sub', 'uuid'], ['role', 'role', 'text'], ['email', 'email', 'text']] loop
    claim := wanted[2];
    if not exists (select from pg_proc where proname = wanted[1] and pronamespace = current_schema()::regnamespace) then
      execute format(
        $f$create function %I() returns %s language sql stable as %L$f$,
        wanted[1],
        wanted[3],
        format(
          $f$select coalesce(
            nullif(current_setting(%L, true), ''),
            nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> %L
          )::%s$f$,
          'request.jwt.claim.' || claim,
          claim,
          wanted[3]
        )
      );
    end if;
  end loop;
end $$;
