import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { Context } from '../context.ts';
import { type Queryable, query } from '../db/query.ts';

/** Seals values before they are kept, and opens them again. Each is bound to the row it is of: in another one it does not open. */
export interface ColumnCipher {
  /** The form in which a value is kept: encrypted, or as it is where nothing is to be encrypted. What is sealed already stays. */
  seal(rowId: string, value: string): string;
  /** The value that is kept; one that is not encrypted is what it is. @throws Error when there is no key for it, or it was changed. */
  open(rowId: string, kept: string): string;
  /** Is that how `seal` would keep it now: with the key of today, or without any? */
  isCurrent(kept: string): boolean;
}

/** The settings that say what is encrypted, and with which key. */
export interface EncryptionSettings {
  readonly dbEncryptionEncrypt: boolean;
  readonly dbEncryptionKeyId: string;
  /** Base64url of 32 bytes. */
  readonly dbEncryptionKey: string;
  /** By id. */
  readonly dbEncryptionDecryptionKeys: Readonly<Record<string, string>>;
}

/** A value as GoTrue encrypts it, so that either server reads what the other has written. `data` ends with the tag. */
interface Sealed {
  readonly key_id: string;
  readonly alg: typeof algorithm;
  /** Base64. */
  readonly data: string;
  /** Base64. */
  readonly nonce: string;
}

const algorithm = 'aes-gcm-hkdf';
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;

/** Is that 32 bytes in base64url? */
export function isEncryptionKey(text: string): boolean {
  return /^[\w-]{43}=?$/.test(text);
}

/** Creates the cipher. Keys that only decrypt open what was encrypted before a change of keys, or before encryption was turned off. */
export function createColumnCipher(settings: EncryptionSettings): ColumnCipher {
  const { dbEncryptionEncrypt: encrypts, dbEncryptionKeyId: currentId, dbEncryptionKey: current } = settings;
  const keys = new Map(Object.entries(settings.dbEncryptionDecryptionKeys));
  if (currentId !== '' && current !== '') keys.set(currentId, current);

  function keyOf(keyId: string, rowId: string): Buffer {
    const text = keys.get(keyId);
    if (text === undefined)
      throw new Error(
        `a column is encrypted with the key ${keyId}, which is not in SVC_SECURITY_DB_ENCRYPTION_DECRYPTION_KEYS`,
      );
    return deriveKey(Buffer.from(text, 'base64url'), rowId);
  }

  return {
    seal(rowId, value) {
      if (!encrypts || parseSealed(value) !== undefined) return value;
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv('aes-256-gcm', keyOf(currentId, rowId), nonce);
      const data = Buffer.concat([cipher.update(value, 'utf8'), cipher.final(), cipher.getAuthTag()]);
      const sealed: Sealed = {
        key_id: currentId,
        alg: algorithm,
        data: data.toString('base64'),
        nonce: nonce.toString('base64'),
      };
      return JSON.stringify(sealed);
    },
    open(rowId, kept) {
      const sealed = parseSealed(kept);
      if (sealed === undefined) return kept;
      const data = Buffer.from(sealed.data, 'base64');
      const key = keyOf(sealed.key_id, rowId);
      const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(sealed.nonce, 'base64'), {
        authTagLength: tagBytes,
      });
      decipher.setAuthTag(data.subarray(-tagBytes));
      const opened = [decipher.update(data.subarray(0, -tagBytes)), decipher.final()];
      return Buffer.concat(opened).toString('utf8');
    },
    isCurrent(kept) {
      const sealed = parseSealed(kept);
      return encrypts ? sealed?.key_id === currentId : sealed === undefined;
    },
  };
}

/**
 * A key for one row: AES-GCM bears 2^32 random nonces a key, which is not much for all users of a large site together.
 *
 * @see RFC 5869 https://www.rfc-editor.org/rfc/rfc5869
 */
function deriveKey(key: Buffer, rowId: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), rowId, keyBytes));
}

function parseSealed(kept: string): Sealed | undefined {
  // No hash and no secret begins like that.
  if (!kept.startsWith('{')) return undefined;
  try {
    // Parsed boundary: the members are looked at right below.
    const { key_id, alg, data, nonce } = JSON.parse(kept) as Readonly<Record<string, unknown>>;
    if (typeof key_id !== 'string' || typeof data !== 'string' || typeof nonce !== 'string') return undefined;
    return alg === algorithm ? { key_id, alg: algorithm, data, nonce } : undefined;
  } catch {
    return undefined;
  }
}

/** Columns that are encrypted where the settings say so. */
const sealedColumns = ['password hashes', 'factor secrets', 'refresh token keys'] as const;

/** One of them. */
type SealedColumn = (typeof sealedColumns)[number];

/** What one step of sealing anew has done. */
interface ResealStep {
  readonly resealed: number;
  /** Where the next step goes on; absent after the last one. */
  readonly next: string | undefined;
}

/** Values that are kept encrypted, whatever they say. */
export interface SealedColumnStore {
  /**
   * Goes through up to `atMost` values, of rows whose ids come after `after`, and seals those anew that the settings of today would keep
   * in another form. A value that somebody else writes meanwhile stays as that one wrote it.
   */
  reseal(column: SealedColumn, after: string, atMost: number): Promise<ResealStep>;
}

interface Texts {
  readonly find: string;
  readonly update: string;
}

function textsOf(table: string, column: string): Texts {
  return {
    find: `select id, ${column} as kept from ${table} where id > $1::uuid and ${column} <> '' order by id limit $2`,
    update: `with updated as (
        update ${table} t set ${column} = n.sealed
        from unnest($1::uuid[], $2::text[], $3::text[]) as n(id, kept, sealed)
        where t.id = n.id and t.${column} = n.kept
        returning 1
      )
      select count(*)::int as resealed from updated`,
  };
}

const texts: Readonly<Record<SealedColumn, Texts>> = {
  'password hashes': textsOf('users', 'encrypted_password'),
  'factor secrets': textsOf('mfa_factors', 'secret'),
  'refresh token keys': textsOf('sessions', 'refresh_token_hmac_key'),
};

interface KeptRow {
  readonly id: string;
  readonly kept: string;
}

/** {@link SealedColumnStore} over PostgreSQL. */
export function resealColumns(sql: Queryable, cipher: ColumnCipher): SealedColumnStore {
  return {
    async reseal(column, after, atMost) {
      const { find, update } = texts[column];
      // Parsed boundary: the two columns selected above.
      const rows = (await query(sql, find, [after, atMost])) as readonly unknown[] as readonly KeptRow[];
      const next = rows.length < atMost ? undefined : rows.at(-1)?.id;
      const old = rows.filter(({ kept }) => !cipher.isCurrent(kept));
      if (old.length === 0) return { resealed: 0, next };
      const [row] = await query(sql, update, [
        old.map(({ id }) => id),
        old.map(({ kept }) => kept),
        old.map(({ id, kept }) => cipher.seal(id, cipher.open(id, kept))),
      ]);
      return { resealed: Number(row?.resealed ?? 0), next };
    },
  };
}

/** Encrypts what is kept with the key of today, or decrypts it where nothing is to be encrypted; answers how many values that were. */
export type Reencrypt = () => Promise<Readonly<Record<SealedColumn, number>>>;

/** Before all ids. */
const nilUuid = '00000000-0000-0000-0000-000000000000';
/** Rows that are read, and written, by one statement. */
const batchSize = 500;

/** Creates {@link Reencrypt}. It may be interrupted and run again, also while the service runs. */
export function createReencrypt({ store }: Pick<Context, 'store'>): Reencrypt {
  async function reencryptColumn(column: SealedColumn): Promise<number> {
    let resealed = 0;
    let after: string | undefined = nilUuid;
    while (after !== undefined) {
      const step = await store.sealedColumns.reseal(column, after, batchSize);
      resealed += step.resealed;
      after = step.next;
    }
    return resealed;
  }

  return async () => {
    const counts = { 'password hashes': 0, 'factor secrets': 0, 'refresh token keys': 0 };
    for (const column of sealedColumns) counts[column] = await reencryptColumn(column);
    return counts;
  };
}
