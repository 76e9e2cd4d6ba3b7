import { createHash, randomUUID } from 'node:crypto';
import { hash as bcryptHash } from '@node-rs/bcrypt';
import type { Sql } from 'postgres';

/** Credentials of the users of {@link insertGotrueRows}. */
export const gotrueUsers = {
  /** Confirmed, signed in, with a verified TOTP factor. */
  ada: {
    id: '0a000000-0000-4000-8000-00000000000a',
    email: 'ada@example.com',
    password: 'correct horse',
    sessionId: '0a000000-0000-4000-8000-0000000000a5',
    refreshToken: 'abcdef234567',
    factorId: '0a000000-0000-4000-8000-0000000000fa',
    totpSecret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
  },
  /** Has not confirmed the sign-up. */
  bob: { id: '0b000000-0000-4000-8000-00000000000b', email: 'bob@example.com', code: '111111' },
  /** Has requested a password reset. */
  cleo: { id: '0c000000-0000-4000-8000-00000000000c', email: 'cleo@example.com', code: '222222' },
  /** Has requested a magic link with PKCE. */
  dora: {
    id: '0d000000-0000-4000-8000-00000000000d',
    email: 'dora@example.com',
    code: '333333',
    verifier: 'v'.repeat(43),
  },
  /** Has an email change confirmed at the old address only. */
  emil: {
    id: '0e000000-0000-4000-8000-00000000000e',
    email: 'emil@example.com',
    newEmail: 'emil@example.org',
    code: '444444',
  },
  /** Has requested a code by phone. */
  gus: { id: '06000000-0000-4000-8000-000000000006', phone: '15555550100', code: '555555' },
} as const;

/** The hash that GoTrue stores and puts into links. */
export function gotrueHash(contact: string, code: string): string {
  return createHash('sha224')
    .update(contact + code)
    .digest('hex');
}

type Value = string | number | boolean | Date | object | null;

/** Puts users, sessions, factors and pending tokens into a schema `auth` as GoTrue stores them. */
export async function insertGotrueRows(sql: Sql): Promise<void> {
  const { ada, bob, cleo, dora, emil, gus } = gotrueUsers;
  const now = new Date();
  const hasTokenTable = (await sql`select to_regclass('auth.one_time_tokens') as name`)[0]?.name !== null;
  const insert = (table: string, row: Readonly<Record<string, Value>>) =>
    sql`insert into ${sql(`auth.${table}`)} ${sql(row)}`;

  async function insertUser(
    { id, email, phone }: { readonly id: string; readonly email?: string; readonly phone?: string },
    more: Readonly<Record<string, Value>> = {},
  ): Promise<void> {
    const provider = email === undefined ? 'phone' : 'email';
    await insert('users', {
      id,
      instance_id: '00000000-0000-0000-0000-000000000000',
      aud: 'authenticated',
      role: 'authenticated',
      email: email ?? null,
      phone: phone ?? null,
      encrypted_password: '',
      email_confirmed_at: email === undefined ? null : now,
      phone_confirmed_at: phone === undefined ? null : now,
      confirmation_token: '',
      recovery_token: '',
      email_change_token_new: '',
      email_change: '',
      email_change_token_current: '',
      phone_change: '',
      phone_change_token: '',
      reauthentication_token: '',
      email_change_confirm_status: 0,
      raw_app_meta_data: { provider, providers: [provider] },
      raw_user_meta_data: {},
      is_sso_user: false,
      is_anonymous: false,
      created_at: now,
      updated_at: now,
      ...more,
    });
    await insert('identities', {
      id: randomUUID(),
      provider_id: id,
      user_id: id,
      identity_data: {
        sub: id,
        ...(email === undefined ? { phone } : { email }),
        email_verified: email !== undefined,
        phone_verified: phone !== undefined,
      },
      provider,
      last_sign_in_at: now,
      created_at: now,
      updated_at: now,
    });
  }

  async function insertToken(userId: string, type: string, hash: string, relatesTo: string): Promise<void> {
    await sql`update auth.users set ${sql({ [type]: hash })} where id = ${userId}`;
    if (!hasTokenTable) return;
    await insert('one_time_tokens', {
      id: randomUUID(),
      user_id: userId,
      token_type: type,
      token_hash: hash,
      relates_to: relatesTo,
      // Far behind UTC, because the columns have no time zone.
      created_at: new Date(now.getTime() - 12 * 3_600_000).toISOString(),
      updated_at: now.toISOString(),
    });
  }

  const hash = (await bcryptHash(ada.password, 4)).replace('$2b$', '$2a$');
  await insertUser(ada, { encrypted_password: hash });
  const session = { id: ada.sessionId, user_id: ada.id, created_at: now, updated_at: now };
  await insert('sessions', { ...session, aal: 'aal1', user_agent: 'Mozilla/5.0', ip: '192.0.2.1' });
  await insert('mfa_amr_claims', {
    id: randomUUID(),
    session_id: session.id,
    created_at: now,
    updated_at: now,
    authentication_method: 'password',
  });
  await insert('refresh_tokens', {
    id: 1,
    instance_id: '00000000-0000-0000-0000-000000000000',
    token: ada.refreshToken,
    user_id: ada.id,
    parent: '',
    revoked: false,
    session_id: session.id,
    created_at: now,
    updated_at: now,
  });
  await sql`select setval('auth.refresh_tokens_id_seq', 1)`;
  await insert('mfa_factors', {
    id: ada.factorId,
    user_id: ada.id,
    friendly_name: 'phone',
    factor_type: 'totp',
    status: 'verified',
    secret: ada.totpSecret,
    created_at: now,
    updated_at: now,
  });

  await insertUser(bob, { email_confirmed_at: null, confirmation_sent_at: now });
  await insertToken(bob.id, 'confirmation_token', gotrueHash(bob.email, bob.code), bob.email);
  await insertUser(cleo, { recovery_sent_at: now });
  await insertToken(cleo.id, 'recovery_token', gotrueHash(cleo.email, cleo.code), cleo.email);
  await insertUser(dora, { recovery_sent_at: now });
  await insertToken(dora.id, 'recovery_token', `pkce_${gotrueHash(dora.email, dora.code)}`, dora.email);
  await insert('flow_state', {
    id: randomUUID(),
    user_id: dora.id,
    auth_code: randomUUID(),
    code_challenge_method: 's256',
    code_challenge: createHash('sha256').update(dora.verifier).digest('base64url'),
    provider_type: 'magiclink',
    provider_access_token: '',
    provider_refresh_token: '',
    authentication_method: 'magiclink',
    created_at: now,
    updated_at: now,
  });
  await insertUser(emil, {
    email_change: emil.newEmail,
    email_change_sent_at: now,
    email_change_confirm_status: 1,
  });
  await insertToken(emil.id, 'email_change_token_new', gotrueHash(emil.newEmail, emil.code), emil.newEmail);

  await insertUser(gus, { confirmation_sent_at: now });
  await insertToken(gus.id, 'confirmation_token', gotrueHash(gus.phone, gus.code), gus.phone);
}
