/** Filters of lists of users, by query parameter. The flags of `users list` have their names. */
export const userFilters = {
  filter: 'Part of email, phone or full name, case-insensitive.',
  prefix: 'How email, phone or full name starts, case-insensitive. By index.',
  email: 'The email address, case-insensitive.',
  phone: 'The phone number.',
  provider: 'Provider of an identity, such as `google`.',
  role: 'The role, such as `authenticated`.',
  plan: '`plan` of the app metadata. Users without one are not listed under the default plan.',
  confirmed: '`true`: users with a confirmed email or phone; `false`: other users.',
  banned: '`true`: users whose ban has not ended; `false`: other users.',
  anonymous: '`true`: anonymous users; `false`: other users.',
  created_from: 'Created at or after this time (RFC 3339, or a date in UTC).',
  created_before: 'Created before this time.',
  last_sign_in_from: 'Signed in last at or after this time.',
  last_sign_in_before: 'Signed in last before this time. Users who never did are not listed.',
  sort: '`created_at asc` or `created_at desc` (the default).',
} as const;
