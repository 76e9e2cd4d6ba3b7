import { createHash } from 'node:crypto';
import { type AuditEntry, auditInsert, auditParameters } from '../db/audit-log.ts';
import { type Queryable, query, type Row } from '../db/query.ts';
import { pkcePrefix } from '../sign-in/pkce.ts';
import type { User } from '../users/user.ts';
import { lockOwner, toUser, userColumns } from '../users/user-row.ts';

/** What a one-time token is good for; each user has at most one of each. */
export type OneTimeTokenType =
  | 'confirmation_token'
  | 'reauthentication_token'
  | 'recovery_token'
  | 'email_change_token_new'
  | 'email_change_token_current'
  | 'phone_change_token';

/** A token that has been sent to somebody, as its hash. */
export interface OneTimeToken {
  readonly userId: string;
  readonly type: OneTimeTokenType;
  /** `hashOneTimeToken` of contact and code, with the prefix `pkce_` where the answer is to be a code. */
  readonly hash: string;
  /** The contact that it was sent to. */
  readonly relatesTo: string;
  readonly at: Date;
}

/** A token as it is found. */
export interface FoundOneTimeToken extends Omit<OneTimeToken, 'hash'> {
  /** What the store keeps of the hash; with the prefix `pkce_` as well. */
  readonly keptAs: string;
  /** Whether the hash is kept as GoTrue keeps it: then it may be one without a secret. */
  readonly isGuessable: boolean;
}

/** One-time tokens, of which the store keeps no more than tells them again: nobody can use what is in there. When one was sent is also noted on the user: `confirmation_sent_at` and so on. */
export interface OneTimeTokenStore {
  /**
   * Puts tokens in the place of those that the user had of these types, and notes on the user when they were sent. Does nothing and
   * answers false when the user has been sent one of these types after `notSince`.
   */
  replace(
    tokens: readonly [OneTimeToken, ...OneTimeToken[]],
    audit: AuditEntry,
    limit?: { readonly notSince: Date | undefined },
  ): Promise<boolean>;
  /** Takes back tokens that could not be sent: the user may ask again at once. */
  withdraw(tokens: readonly [OneTimeToken, ...OneTimeToken[]]): Promise<void>;
  /** The token with one of these hashes and types, and its user, in one statement. */
  find(
    hashes: readonly string[],
    types: readonly OneTimeTokenType[],
  ): Promise<{ readonly token: FoundOneTimeToken; readonly user: User } | undefined>;
  /**
   * The latest token of these types that was sent to a contact after `since`, and its user: for codes that somebody else checks. None
   * when another user has one of that type there as well: such a code does not tell for whom it is.
   */
  findSentTo(
    contact: string,
    types: readonly OneTimeTokenType[],
    since: Date,
  ): Promise<{ readonly token: FoundOneTimeToken; readonly user: User } | undefined>;
  /** Takes a token out of use. Answers false when somebody else did so first: only one may go on. */
  spend(token: Pick<FoundOneTimeToken, 'userId' | 'type' | 'keptAs'>): Promise<boolean>;
  /** Takes all tokens of a user out of use, but those of the types in `except`. */
  clear(userId: string, options?: { readonly except?: readonly OneTimeTokenType[] }): Promise<void>;
}

const keptPrefix = 'sha256:';
/** Form of hashes that are kept as sent: by GoTrue, by earlier versions, and in a shared database. */
const sentForm = /^(?:pkce_)?[0-9a-f]{56}$/;

/**
 * What the database keeps of the hash of a one-time token, which is what links carry: a digest, so that who can read the database cannot
 * follow the links in it. The prefix of PKCE stays in front.
 */
export function keptHash(hash: string): string {
  const isPkce = hash.startsWith(pkcePrefix);
  const digest = createHash('sha256')
    .update(isPkce ? hash.slice(pkcePrefix.length) : hash)
    .digest('hex');
  return `${isPkce ? pkcePrefix : ''}${keptPrefix}${digest}`;
}

/**
 * The values under which a hash that somebody presents may be kept: its digest, or itself in a row of an older server. A digest itself
 * does not have the form of those: presenting it finds nothing.
 */
function keptHashesOf(hash: string): readonly string[] {
  return isSentForm(hash) ? [keptHash(hash), hash] : [keptHash(hash)];
}

/** Can that be a hash of a server that keeps it as it was sent? */
function isSentForm(hash: string): boolean {
  return sentForm.test(hash);
}

/**
 * GoTrue also keeps the token of a type in the column of `users` with the name of the type, and when
 * it was sent in another column. The two tokens of a change of email share that.
 */
const sentAtColumns: Readonly<Record<OneTimeTokenType, string>> = {
  confirmation_token: 'confirmation_sent_at',
  recovery_token: 'recovery_sent_at',
  email_change_token_new: 'email_change_sent_at',
  email_change_token_current: 'email_change_sent_at',
  phone_change_token: 'phone_change_sent_at',
  reauthentication_token: 'reauthentication_sent_at',
};

/** Types, which are the names of columns as well. */
export const tokenTypes = Object.keys(sentAtColumns) as readonly OneTimeTokenType[]; // of the constant just above

/** Assigns to the column of each type what `value` makes of it. */
function setTokenColumns(value: (type: OneTimeTokenType) => string): string {
  return tokenTypes.map((type) => `${type} = ${value(type)}`).join(', ');
}

/** Empties all of them. */
export const emptyTokenColumns = setTokenColumns(() => "''");

/** Assigns `value` to the columns of the types that the part `from` of the statement has. */
function setSentAt(from: string, value: string): string {
  return [...new Set(Object.values(sentAtColumns))]
    .map((column) => {
      const types = tokenTypes.filter((type) => sentAtColumns[type] === column).map((type) => `'${type}'`);
      return `${column} = case when exists (select 1 from ${from} where type in (${types.join()})) then ${value} else ${column} end`;
    })
    .join(', ');
}

const sentAfter = (moment: string): string =>
  tokenTypes
    .map(
      (type) =>
        `coalesce(${sentAtColumns[type]} > ${moment} and exists (select 1 from tokens where type = '${type}'), false)`,
    )
    .join(' or ');

// With new tokens both addresses have to confirm anew: one that gets several must not count as two.
const restartEmailChange = `email_change_confirm_status = case
  when exists (select 1 from tokens where type in ('email_change_token_new', 'email_change_token_current'))
  then 0 else email_change_confirm_status end`;

// The row of the user is what requests that come together wait for: the second sees what the first has noted.
const replace = `
  with tokens as (
    select * from jsonb_to_recordset($2::jsonb) as t(type one_time_token_type, hash text, in_column text, relates_to text)
  ), noted as (
    update users set ${setSentAt('tokens', '$3')},
      ${setTokenColumns((type) => `coalesce((select in_column from tokens where type = '${type}'), ${type}, '')`)},
      ${restartEmailChange}, updated_at = $3
    where id = $1::uuid and deleted_at is null and ($4::timestamptz is null or not (${sentAfter('$4::timestamptz')}))
    returning id
  ), replaced as (
    insert into one_time_tokens (id, user_id, token_type, token_hash, relates_to, created_at, updated_at)
    select gen_random_uuid(), noted.id, type, hash, relates_to, $3, $3 from noted, tokens
    on conflict (user_id, token_type) do update
      set token_hash = excluded.token_hash, relates_to = excluded.relates_to,
        created_at = excluded.created_at, updated_at = excluded.updated_at
  ), audit as (${auditInsert(5, 'noted')})
  select id from noted`;

// The user comes before the tokens, as where they are replaced: in the other order a verification and a sending would wait for each other.
const withdraw = `
  with owner as (${lockOwner('$1')}), gone as (
    delete from one_time_tokens where user_id = (select id from owner) and token_hash = any($2::text[]) returning token_type as type
  )
  update users set ${setSentAt('gone', 'null')},
    ${setTokenColumns((type) => `case when exists (select 1 from gone where type = '${type}') then '' else ${type} end`)}
  where id = $1`;

// GoTrue writes created_at in the time zone of its machine: the user says when a token was sent.
const sentAt = `coalesce(
  case t.token_type ${tokenTypes.map((type) => `when '${type}' then u.${sentAtColumns[type]}`).join(' ')} end,
  t.created_at at time zone 'utc')`;

const findWhere = (
  which: string,
) => `select ${userColumns}, t.token_type, t.token_hash, t.relates_to, ${sentAt} as sent_at
  from one_time_tokens t join users u on u.id = t.user_id
  where ${which} and t.token_type = any($2::text[]::one_time_token_type[]) and u.deleted_at is null
  order by t.created_at desc limit 1`;

const find = findWhere('t.token_hash = any($1::text[])');
const findSentTo =
  findWhere(`t.relates_to = $1 and t.created_at > $3::timestamptz at time zone 'utc' and not exists (
    select 1 from one_time_tokens other
    where other.relates_to = t.relates_to and other.token_type = t.token_type and other.user_id <> t.user_id
      and other.created_at > $3::timestamptz at time zone 'utc')`);

// GoTrue keeps a token in a column of the user, too.
const spend = `with owner as (${lockOwner('$1')}), gone as (
    delete from one_time_tokens
    where user_id = (select id from owner) and token_type = $2::text::one_time_token_type and token_hash = $3 returning 1
  ), emptied as (
    update users set ${setTokenColumns((type) => `case when $2 = '${type}' then '' else ${type} end`)}
    where id = (select id from owner) and $3 = case $2 ${tokenTypes.map((type) => `when '${type}' then ${type}`).join(' ')} end
  )
  select 1 from gone`;

const clear = `with owner as (${lockOwner('$1')}), gone as (
    delete from one_time_tokens
    where user_id = (select id from owner) and token_type <> all($2::text[]::one_time_token_type[])
  )
  update users set ${setTokenColumns((type) => `case when '${type}' = any($2::text[]) then ${type} else '' end`)}
  where id = (select id from owner) and concat(${tokenTypes.join(', ')}) <> ''`;

interface TokenRow {
  readonly token_type: OneTimeTokenType;
  readonly token_hash: string;
  readonly relates_to: string;
  readonly sent_at: Date;
}

/**
 * {@link OneTimeTokenStore} over PostgreSQL. It keeps digests of hashes; with `asSent` the hashes
 * themselves, in both places where GoTrue looks for them.
 */
export function oneTimeTokens(sql: Queryable, { asSent }: { readonly asSent: boolean }): OneTimeTokenStore {
  return {
    async replace(tokens, audit, { notSince } = { notSince: undefined }) {
      const [{ userId, at }] = tokens;
      const rows = tokens.map(({ type, hash, relatesTo }) => ({
        type,
        hash: asSent ? hash : keptHash(hash),
        in_column: asSent ? hash : '',
        relates_to: relatesTo,
      }));
      const parameters = [userId, rows, at, notSince ?? null, ...auditParameters(audit)];
      return (await query(sql, replace, parameters)).length > 0;
    },
    async withdraw(tokens) {
      await query(sql, withdraw, [tokens[0].userId, tokens.flatMap(({ hash }) => keptHashesOf(hash))]);
    },
    async find(hashes, types) {
      const [row] = await query(sql, find, [hashes.flatMap(keptHashesOf), types]);
      return row && foundOf(row);
    },
    async findSentTo(contact, types, since) {
      const [row] = await query(sql, findSentTo, [contact, types, since]);
      return row && foundOf(row);
    },
    async spend({ userId, type, keptAs }) {
      return (await query(sql, spend, [userId, type, keptAs])).length > 0;
    },
    async clear(userId, { except = [] } = {}) {
      await query(sql, clear, [userId, except]);
    },
  };
}

function foundOf(row: Row): { readonly token: FoundOneTimeToken; readonly user: User } {
  const user = toUser(row);
  // Parsed boundary: these are the columns selected above, with the types of the schema.
  const {
    token_type: type,
    token_hash: keptAs,
    relates_to: relatesTo,
    sent_at: at,
  } = row as unknown as TokenRow;
  return { token: { userId: user.id, type, keptAs, isGuessable: isSentForm(keptAs), relatesTo, at }, user };
}
