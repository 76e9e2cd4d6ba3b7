-- Up Migration
-- Another program that soft-deletes a user may have no rights on our tables. The triggers run as the owner; nobody else may make
-- triggers of the function, which would run with these rights on tables of their own.

alter function end_memberships() security definer set search_path = '';
revoke execute on function end_memberships() from public;
