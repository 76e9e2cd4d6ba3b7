import { escapeIdentifier } from 'pg';
import type { ReadRows } from '../../store/postgres/schema/pending-migrations.ts';
import type { Finding } from './report.ts';

interface Options {
  readonly dbNamespace: string;
  /** Tables that the schema has. */
  readonly tables: readonly string[];
  readonly keyIds: readonly string[];
}

/** A count, and the finding for each group of it. */
interface Counted {
  readonly table: string;
  /** Columns `kind` and `count`. */
  readonly select: (table: string) => string;
  readonly describe: (kind: string, count: string) => Finding | undefined;
}

const encrypted = 'encrypted with key ';

const hashKinds: Readonly<Record<string, string>> = {
  none: 'users without a password: they sign in by link or code',
  bcrypt: 'bcrypt, replaced by argon2id at the next sign-in',
  argon2: 'argon2, taken as they are or replaced at the next sign-in',
  fbscrypt: 'scrypt of Firebase, replaced by argon2id at the next sign-in',
  unknown: 'of an unknown form: CANNOT BE CHECKED, their users have to reset the password',
};

/** GoTrue's metadata has any size; here a token carries so much of it. */
const metadataBytes = { raw_user_meta_data: 4096, raw_app_meta_data: 2048 } as const;

function countedRows({ keyIds }: Options): readonly Counted[] {
  return [
    {
      table: 'users',
      select: (table) => `select 'users' as kind, count(*) from ${table}`,
      describe: plain('users'),
    },
    {
      table: 'users',
      select: (table) => `select case
          when coalesce(encrypted_password, '') = '' then 'none'
          when encrypted_password like '{%' then '${encrypted}' || coalesce(substring(encrypted_password from '"key_id"\\s*:\\s*"([^"]*)"'), '?')
          when encrypted_password ~ '^\\$2[aby]\\$' then 'bcrypt'
          when encrypted_password ~ '^\\$argon2(id|i)\\$' then 'argon2'
          when encrypted_password like '$fbscrypt$%' then 'fbscrypt'
          else 'unknown' end as kind, count(*) from ${table} group by 1 order by 1`,
      describe: (kind, count) => ({ subject: 'passwords', text: `${count} ${passwordText(kind, keyIds)}` }),
    },
    {
      table: 'users',
      select: (table) => `select 'sso' as kind, count(*) from ${table} where is_sso_user`,
      describe: unlessZero(
        'single sign-on',
        (count) => `${count} users, who CANNOT SIGN IN: SAML is not served yet`,
      ),
    },
    {
      table: 'identities',
      select: (table) =>
        `select provider as kind, count(*) from ${table} where provider not in ('email', 'phone') group by 1 order by 1`,
      describe: (provider, count) => ({
        subject: `identities of ${provider}`,
        text: `${count}, whose users cannot sign in with ${provider} yet`,
      }),
    },
    {
      table: 'users',
      select: (
        table,
      ) => `select 'none' as kind, count(*) from ${table} where coalesce(encrypted_password, '') = ''
          and coalesce(email, '') = '' and coalesce(phone, '') = '' and not is_anonymous and not is_sso_user`,
      describe: unlessZero(
        'users without password, email and phone',
        (count) => `${count}, who CANNOT SIGN IN: external providers are not served yet`,
      ),
    },
    {
      table: 'mfa_factors',
      select: (table) =>
        `select factor_type::text as kind, count(*) from ${table} where status::text = 'verified' group by 1 order by 1`,
      describe: (kind, count) => ({
        subject: `factors by ${kind}`,
        text: kind === 'totp' ? `${count}, work as they are` : `${count}, CANNOT BE VERIFIED: not served yet`,
      }),
    },
    {
      table: 'sessions',
      select: (table) => `select 'sessions' as kind, count(*) from ${table}`,
      describe: plain('sessions'),
    },
    ...Object.entries(metadataBytes).map(
      ([column, bytes]): Counted => ({
        table: 'users',
        select: (table) =>
          `select '' as kind, count(*) from ${table} where octet_length(${column}::text) > ${bytes}`,
        describe: unlessZero(
          column,
          (count) => `${count} users have more than ${bytes / 1024} KiB: tokens carry what fits`,
        ),
      }),
    ),
    ...['saml_providers', 'oauth_clients', 'custom_oauth_providers', 'webauthn_credentials'].map(
      (table): Counted => ({
        table,
        select: (name) => `select '' as kind, count(*) from ${name}`,
        describe: unlessZero(table, (count) => `${count}, of a feature that is not served yet`),
      }),
    ),
  ];
}

/** Counts the rows that matter to a switch. A count that fails is reported as such. */
export async function countRows(readRows: ReadRows, options: Options): Promise<Finding[]> {
  const found: Finding[] = [];
  for (const { table, select, describe } of countedRows(options)) {
    if (!options.tables.includes(table)) continue;
    try {
      const rows = await readRows(select(`${escapeIdentifier(options.dbNamespace)}.${table}`));
      found.push(...rows.flatMap(({ kind, count }) => describe(String(kind), String(count)) ?? []));
    } catch (error) {
      found.push({
        subject: table,
        text: `not counted: ${error instanceof Error ? error.message : String(error)}`,
      });
    }
  }
  return found;
}

function plain(subject: string): Counted['describe'] {
  return (_kind, count) => ({ subject, text: count });
}

function unlessZero(subject: string, text: (count: string) => string): Counted['describe'] {
  return (_kind, count) => (count === '0' ? undefined : { subject, text: text(count) });
}

function passwordText(kind: string, keyIds: readonly string[]): string {
  if (!kind.startsWith(encrypted)) return hashKinds[kind] ?? kind;
  return keyIds.includes(kind.slice(encrypted.length))
    ? kind
    : `${kind}, which the settings do not have: CANNOT BE CHECKED`;
}
