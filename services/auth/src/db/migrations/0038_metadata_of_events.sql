-- Up Migration
-- GoTrue's command line and imports by SQL leave JSON `null` in metadata; events have objects.

create or replace function tollgate_event_user(u users) returns jsonb language sql stable as $f$
  select jsonb_build_object(
    'id', u.id, 'aud', coalesce(u.aud, ''), 'role', coalesce(u.role, ''),
    'email', coalesce(u.email, ''), 'phone', coalesce(u.phone, ''),
    'email_confirmed_at', u.email_confirmed_at, 'phone_confirmed_at', u.phone_confirmed_at,
    'app_metadata', case jsonb_typeof(u.raw_app_meta_data) when 'object' then u.raw_app_meta_data else '{}' end,
    'user_metadata', case jsonb_typeof(u.raw_user_meta_data) when 'object' then u.raw_user_meta_data else '{}' end,
    'banned_until', u.banned_until, 'is_anonymous', u.is_anonymous,
    'created_at', u.created_at, 'updated_at', u.updated_at)
$f$;
