import { createHash } from 'node:crypto';
import { type AuditEntry, auditInsert } from '../audit/audit-log.ts';
import type { Queryable } from '../db/connection.ts';
import { lockOwner } from '../db/fragments.ts';
import { boolean, jsonOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import {
  type Fragment,
  fragment,
  join,
  parameters,
  raw,
  type StatementRow,
  statement,
} from '../db/statement.ts';
import { pkcePrefix } from '../flows/pkce.ts';
import { type OneTimeTokenType, sentAtColumns, setTokenColumns, tokenTypes } from '../users/token-columns.ts';
import { toUser, type User, userColumns, userRow } from '../users/user.ts';

export interface OneTimeToken {
  readonly userId: string;
  readonly type: OneTimeTokenType;
  /** `hashOneTimeToken` of contact and code, with the prefix `pkce_` for a PKCE flow. */
  readonly hash: string;
  /** The contact that the token was sent to. */
  readonly relatesTo: string;
  readonly at: Date;
}

export interface FoundOneTimeToken extends Omit<OneTimeToken, 'hash'> {
  /** The hash as the database has it; also with the prefix `pkce_`. */
  readonly storedHash: string;
  /** Whether the hash is stored as GoTrue stores it: it may be one without a secret. */
  readonly isGuessable: boolean;
}

interface TokenAndUser {
  readonly token: FoundOneTimeToken;
  readonly user: User;
}

const digestPrefix = 'sha256:';
/**
 * Form of hashes that are stored as sent: by GoTrue, by earlier versions, and in a shared database.
 */
const sentForm = /^(?:pkce_)?[0-9a-f]{56}$/;

/**
 * A digest of the hash, with the same prefix of PKCE. Links contain the hash: the digest keeps
 * readers of the database from following them.
 */
export function toStoredHash(hash: string): string {
  const isPkce = hash.startsWith(pkcePrefix);
  const digest = createHash('sha256')
    .update(isPkce ? hash.slice(pkcePrefix.length) : hash)
    .digest('hex');
  return `${isPkce ? pkcePrefix : ''}${digestPrefix}${digest}`;
}

/**
 * The forms in which a presented hash may be stored: as a digest, or as it is. A presented digest
 * finds nothing, as it does not have the form of a hash.
 */
function possibleStoredHashes(hash: string): readonly string[] {
  return isSentForm(hash) ? [toStoredHash(hash), hash] : [toStoredHash(hash)];
}

function isSentForm(hash: string): boolean {
  return sentForm.test(hash);
}

const p = {
  ...parameters(uuid, 'userId'),
  ...parameters(jsonOf<readonly object[]>(), 'tokens'),
  ...parameters(timestamptz, 'at', 'since'),
  ...parameters(timestamptz.orNull, 'notSince'),
  ...parameters(text.list, 'hashes', 'types', 'except'),
  ...parameters(text, 'type', 'storedHash', 'contact'),
  ...parameters(boolean, 'clearSentAt'),
};

/** Assignments to the columns with the times of tokens; `types` is a list of literals. */
function setSentAtColumns<V>(
  value: (column: Fragment<unknown>, types: Fragment<unknown>) => Fragment<V>,
): Fragment<V> {
  const columns = [...new Set(Object.values(sentAtColumns))];
  return join(
    columns.map((column) => {
      const types = tokenTypes.filter((type) => sentAtColumns[type] === column).map((type) => `'${type}'`);
      return fragment`${raw(column)} = ${value(raw(column), raw(types.join()))}`;
    }),
    ', ',
  );
}

/**
 * Assigns `value` to the columns of the types that are in `from`, another part of the statement.
 */
function setSentAt<V>(from: 'tokens' | 'gone', value: Fragment<V>): Fragment<V> {
  return setSentAtColumns(
    (column, types) =>
      fragment`case when exists (select 1 from ${raw(from)} where type in (${types})) then ${value} else ${column} end`,
  );
}

const sentAfter = join(
  tokenTypes.map(
    (type) =>
      fragment`coalesce(${raw(sentAtColumns[type])} > ${p.notSince}::timestamptz
        and exists (select 1 from tokens where type = '${raw(type)}'), false)`,
  ),
  ' or ',
);

// New tokens require both addresses to confirm again: otherwise one address could confirm twice.
const restartEmailChange = raw(`email_change_confirm_status = case
  when exists (select 1 from tokens where type in ('email_change_token_new', 'email_change_token_current'))
  then 0 else email_change_confirm_status end`);

// Concurrent requests wait for the lock on the user, and then see the time of the first.
const replace = statement({})`
  with tokens as (
    select * from jsonb_to_recordset(${p.tokens}::jsonb) as t(type one_time_token_type, hash text, in_column text, relates_to text)
  ), noted as (
    update users set ${setSentAt('tokens', p.at)},
      ${setTokenColumns((type) => raw(`coalesce((select in_column from tokens where type = '${type}'), ${type}, '')`))},
      ${restartEmailChange}, updated_at = ${p.at}
    where id = ${p.userId}::uuid and deleted_at is null and (${p.notSince}::timestamptz is null or not (${sentAfter}))
    returning id
  ), replaced as (
    insert into one_time_tokens (id, user_id, token_type, token_hash, relates_to, created_at, updated_at)
    select gen_random_uuid(), noted.id, type, hash, relates_to, ${p.at}, ${p.at} from noted, tokens
    on conflict (user_id, token_type) do update
      set token_hash = excluded.token_hash, relates_to = excluded.relates_to,
        created_at = excluded.created_at, updated_at = excluded.updated_at
  ), audit as (${auditInsert('noted')})
  select id from noted`;

// All statements lock the user before the tokens; otherwise a verification and a sending could
// deadlock.
const withdraw = statement({})`
  with owner as (${lockOwner(p.userId)}), gone as (
    delete from one_time_tokens where user_id = (select id from owner)
      and token_hash = any(${p.hashes}::text[]) returning token_type as type
  )
  update users set ${setSentAt('gone', raw('null'))},
    ${setTokenColumns((type) => raw(`case when exists (select 1 from gone where type = '${type}') then '' else ${type} end`))}
  where id = ${p.userId}`;

// GoTrue writes created_at in the time zone of its machine, so the column of the user takes
// precedence.
const sentAt = raw(`coalesce(
  case t.token_type ${tokenTypes.map((type) => `when '${type}' then u.${sentAtColumns[type]}`).join(' ')} end,
  t.created_at at time zone 'utc')`);

const foundRow = {
  ...userRow,
  token_type: text.as<OneTimeTokenType>(),
  token_hash: text,
  relates_to: text,
  sent_at: timestamptz,
};

const findWhere = <V>(which: Fragment<V>) => statement(foundRow)`
  select ${userColumns}, t.token_type, t.token_hash, t.relates_to, ${sentAt} as sent_at
  from one_time_tokens t join users u on u.id = t.user_id
  where ${which} and t.token_type = any(${p.types}::text[]::one_time_token_type[]) and u.deleted_at is null
  order by t.created_at desc limit 1`;

const find = findWhere(fragment`t.token_hash = any(${p.hashes}::text[])`);
const findSentTo =
  findWhere(fragment`t.relates_to = ${p.contact} and t.created_at > ${p.since}::timestamptz at time zone 'utc' and not exists (
    select 1 from one_time_tokens other
    where other.relates_to = t.relates_to and other.token_type = t.token_type and other.user_id <> t.user_id
      and other.created_at > ${p.since}::timestamptz at time zone 'utc')`);

// Also empties the column where GoTrue stores the token.
const spend = statement({})`with owner as (${lockOwner(p.userId)}), gone as (
    delete from one_time_tokens
    where user_id = (select id from owner) and token_type = ${p.type}::text::one_time_token_type
      and token_hash = ${p.storedHash} returning 1
  ), emptied as (
    update users set ${setTokenColumns((type) => fragment`case when ${p.type} = '${raw(type)}' then '' else ${raw(type)} end`)}
    where id = (select id from owner) and ${p.storedHash} = case ${p.type} ${raw(tokenTypes.map((type) => `when '${type}' then ${type}`).join(' '))} end
  )
  select 1 from gone`;

const clearSentAt = setSentAtColumns(
  (column, types) =>
    fragment`case when ${p.clearSentAt} and not array[${types}] && ${p.except}::text[] then null else ${column} end`,
);

const clear = statement({})`with owner as (${lockOwner(p.userId)}), gone as (
    delete from one_time_tokens
    where user_id = (select id from owner) and token_type <> all(${p.except}::text[]::one_time_token_type[])
  )
  update users set ${setTokenColumns((type) => fragment`case when '${raw(type)}' = any(${p.except}::text[]) then ${raw(type)} else '' end`)},
    ${clearSentAt}
  where id = (select id from owner) and (${p.clearSentAt} or concat(${raw(tokenTypes.join(', '))}) <> '')`;

/**
 * One-time tokens; when one was sent is also stored with the user, in `confirmation_sent_at` and so
 * on.
 */
export class OneTimeTokenStore {
  readonly #sql: Queryable;
  readonly #sharedWithGotrue: boolean;

  /**
   * With `sharedWithGotrue`, hashes are stored as they are, in both places where GoTrue looks for
   * them.
   */
  constructor(sql: Queryable, { sharedWithGotrue }: { readonly sharedWithGotrue: boolean }) {
    this.#sql = sql;
    this.#sharedWithGotrue = sharedWithGotrue;
  }

  /**
   * Replaces the user's tokens of these types. Does nothing and returns false if the user was sent
   * one of these types after `notSince`.
   */
  async replace(
    tokens: readonly [OneTimeToken, ...OneTimeToken[]],
    audit: AuditEntry,
    { notSince }: { readonly notSince?: Date | undefined } = {},
  ): Promise<boolean> {
    const [{ userId, at }] = tokens;
    const rows = tokens.map(({ type, hash, relatesTo }) => ({
      type,
      hash: this.#sharedWithGotrue ? hash : toStoredHash(hash),
      in_column: this.#sharedWithGotrue ? hash : '',
      relates_to: relatesTo,
    }));
    return replace.matches(this.#sql, { userId, tokens: rows, at, notSince, audit });
  }

  /** Removes tokens that could not be sent, so that the user may request others immediately. */
  async withdraw(tokens: readonly [OneTimeToken, ...OneTimeToken[]]): Promise<void> {
    const hashes = tokens.flatMap(({ hash }) => possibleStoredHashes(hash));
    await withdraw.run(this.#sql, { userId: tokens[0].userId, hashes });
  }

  async find(
    hashes: readonly string[],
    types: readonly OneTimeTokenType[],
  ): Promise<TokenAndUser | undefined> {
    const row = await find.first(this.#sql, { hashes: hashes.flatMap(possibleStoredHashes), types });
    return row && toTokenAndUser(row);
  }

  /**
   * The latest token that was sent to a contact after `since`, for codes that the SMS gateway
   * checks. Undefined if another user has such a token, too: the code does not tell for which of
   * them it is.
   */
  async findSentTo(
    contact: string,
    types: readonly OneTimeTokenType[],
    since: Date,
  ): Promise<TokenAndUser | undefined> {
    const row = await findSentTo.first(this.#sql, { contact, types, since });
    return row && toTokenAndUser(row);
  }

  /** Removes a token. Returns true for one of concurrent requests. */
  async spend(token: Pick<FoundOneTimeToken, 'userId' | 'type' | 'storedHash'>): Promise<boolean> {
    return spend.matches(this.#sql, token);
  }

  /**
   * Removes all tokens of a user, except some types. `clearSentAt` also removes when they were
   * sent.
   */
  async clear(
    userId: string,
    {
      except = [],
      clearSentAt = false,
    }: { readonly except?: readonly OneTimeTokenType[]; readonly clearSentAt?: boolean } = {},
  ): Promise<void> {
    await clear.run(this.#sql, { userId, except, clearSentAt });
  }
}

function toTokenAndUser(r: StatementRow<typeof find>): TokenAndUser {
  const user = toUser(r);
  const token = {
    userId: user.id,
    type: r.token_type,
    storedHash: r.token_hash,
    isGuessable: isSentForm(r.token_hash),
    relatesTo: r.relates_to,
    at: r.sent_at,
  };
  return { token, user };
}
