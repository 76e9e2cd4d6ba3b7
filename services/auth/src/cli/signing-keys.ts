import { generateKeyPairSync, type JsonWebKey, randomBytes } from 'node:crypto';
import { chmod, realpath, rename, writeFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { getErrorMessage } from '@tollgate/kit/errors';
import { readTextFile } from '@tollgate/kit/text-files';
import type { Settings } from '../config/settings.ts';
import { jwksMaxAgeSeconds, maxKeyFileBytes } from '../keys/key-source.ts';
import { parseSigningKeys } from '../keys/signing-keys.ts';
import type { Command, CommandFlags } from './arguments.ts';
import { withDefaultsOfMode } from './development.ts';
import { type EnvironmentFiles, loadSettings } from './load-settings.ts';
import { CommandError } from './operator.ts';

/** A key of JWT_KEYS. The times, in seconds, are members of these commands (RFC 7517 §4). */
interface StoredKey extends JsonWebKey {
  readonly kid?: string;
  readonly key_ops?: readonly string[];
  /** Set until the key signs. */
  readonly svc_added_at?: number;
  /** Since when the key no longer signs. */
  readonly svc_replaced_at?: number;
}

/** Until all replicas have a changed file: kubelets update Secrets once a minute. */
const replicaSeconds = 120;

/** The new keys, and what to do next. */
interface Change {
  readonly keys: readonly StoredKey[];
  readonly next: readonly string[];
}

/** `signing-keys new` */
export const newKeyCommand: Command = ({ environmentFiles, flags }) =>
  changeKeys(environmentFiles, flags, ({ keys: given, settings, nowSeconds }) => {
    // JWT_SECRET signs while there are no keys. It verifies its tokens until it is retired.
    const keys = given.length > 0 ? given : [keyOfSecret(settings)];
    const waiting = keys.find(isStandby);
    if (waiting !== undefined)
      throw new CommandError(
        `${waiting.kid} was added before and does not sign yet: run signing-keys rotate`,
      );
    const key = generateKey(flags.alg ?? 'ES256', nowSeconds);
    const wait = jwksMaxAgeSeconds + replicaSeconds;
    return {
      keys: [...keys, key],
      next: [
        `added ${key.kid}, which does not sign yet`,
        `wait until ${toTime(nowSeconds + wait)} (${wait / 60} minutes: replicas and caches of the JWKS), then run signing-keys rotate`,
      ],
    };
  });

/** `signing-keys rotate` */
export const rotateKeyCommand: Command = ({ environmentFiles, flags }) =>
  changeKeys(environmentFiles, flags, ({ keys, settings, nowSeconds }) => {
    const standby = keys.find(isStandby);
    if (standby === undefined)
      throw new CommandError('no key was added that does not sign yet: run signing-keys new');
    const from = (standby.svc_added_at ?? 0) + jwksMaxAgeSeconds + replicaSeconds;
    if (nowSeconds < from && flags.force !== true)
      throw new CommandError(
        `caches of the JWKS may lack ${standby.kid} until ${toTime(from)}: wait, or use --force`,
      );
    const end = nowSeconds + lifetimeSeconds(settings);
    return {
      keys: keys.map((key) => {
        if (key === standby) return { ...withoutTimes(key), key_ops: ['sign', 'verify'] };
        return canSign(key) ? { ...key, key_ops: ['verify'], svc_replaced_at: nowSeconds } : key;
      }),
      next: [
        `${standby.kid} signs`,
        `wait until ${toTime(end)} (lifetime of access tokens), then run signing-keys retire`,
      ],
    };
  });

/** `signing-keys retire` */
export const retireKeyCommand: Command = ({ environmentFiles, flags, args: [kid] }) =>
  changeKeys(environmentFiles, flags, ({ keys, settings, nowSeconds }) => {
    const retired = keys.filter((key) =>
      kid === undefined ? key.svc_replaced_at !== undefined : key.kid === kid,
    );
    if (retired.length === 0)
      throw new CommandError(
        kid === undefined ? 'no key was replaced by signing-keys rotate' : `no key ${kid}`,
      );
    for (const key of retired) checkRetirement(key, { settings, nowSeconds, force: flags.force === true });
    return {
      keys: keys.filter((key) => !retired.includes(key)),
      next: [
        `removed ${retired.map((key) => key.kid).join(', ')}`,
        'tokens without expiry that it signed (admin token, API keys of clients) are rejected: issue new ones',
      ],
    };
  });

function checkRetirement(
  key: StoredKey,
  { settings, nowSeconds, force }: { settings: Settings; nowSeconds: number; force: boolean },
): void {
  if (canSign(key)) throw new CommandError(`${key.kid} signs: run signing-keys new and rotate first`);
  if (force) return;
  if (key.svc_replaced_at === undefined)
    throw new CommandError(
      `when ${key.kid} has signed last is not known: use --force once its tokens have expired`,
    );
  const end = key.svc_replaced_at + lifetimeSeconds(settings);
  if (nowSeconds < end)
    throw new CommandError(
      `tokens that ${key.kid} has signed are valid until ${toTime(end)}: wait, or use --force`,
    );
}

/** Reads the keys, changes them and writes them back, or prints them if they are in no file. */
async function changeKeys(
  environmentFiles: EnvironmentFiles,
  flags: CommandFlags,
  change: (state: {
    readonly keys: readonly StoredKey[];
    readonly settings: Settings;
    readonly nowSeconds: number;
  }) => Change,
): Promise<void> {
  const { settings } = await loadSettings(environmentFiles, withDefaultsOfMode);
  const file = flags.file ?? (settings.jwtKeysFile === '' ? undefined : settings.jwtKeysFile);
  try {
    const given = await readKeys(file, settings);
    // With a problem of the present keys, the server would not start.
    if (given.length > 0) checkKeys(given, settings);
    const { keys, next } = change({ keys: given, settings, nowSeconds: Math.floor(Date.now() / 1000) });
    checkKeys(keys, settings);
    const output = `${JSON.stringify(keys, null, 2)}\n`;
    if (file === undefined || file === '-') process.stdout.write(output);
    else await replaceFile(file, output);
    const place = file === undefined ? ['set SVC_JWT_KEYS to the output'] : [];
    process.stderr.write([...place, ...next].map((line) => `${line}\n`).join(''));
  } catch (error) {
    process.stderr.write(`${getErrorMessage(error)}\n`);
    process.exitCode = 1;
  }
}

async function readKeys(file: string | undefined, settings: Settings): Promise<readonly StoredKey[]> {
  const source = await readSource(file, settings);
  if (source.trim() === '') return [];
  let keys: unknown;
  try {
    keys = JSON.parse(source);
  } catch {
    // A parser's message may quote a key.
  }
  if (!Array.isArray(keys)) throw new CommandError(`${file ?? 'SVC_JWT_KEYS'} is not a JSON array of JWKs`);
  return keys as readonly StoredKey[]; // checkKeys validates the members
}

async function readSource(file: string | undefined, settings: Settings): Promise<string> {
  if (file === undefined) return settings.jwtKeys;
  if (file === '-') return text(process.stdin);
  return readTextFile(file, maxKeyFileBytes).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
    throw error;
  });
}

function checkKeys(keys: readonly StoredKey[], settings: Settings): void {
  const parsed = parseSigningKeys({ ...settings, jwtKeys: JSON.stringify(keys) });
  if (!parsed.ok) throw new CommandError(`invalid keys: expected ${parsed.expected}`);
}

/** A server that watches the file never reads half of it. */
async function replaceFile(file: string, content: string): Promise<void> {
  const target = await realpath(file).catch(() => file);
  const unfinished = `${target}.${process.pid}`;
  await writeFile(unfinished, content, { mode: 0o600, flag: 'wx' });
  await chmod(unfinished, 0o600);
  await rename(unfinished, target);
}

function generateKey(alg: string, nowSeconds: number): StoredKey {
  const kid = `${new Date(nowSeconds * 1000).toISOString().slice(0, 10)}-${randomBytes(4).toString('hex')}`;
  const jwk = generatePair(alg).privateKey.export({ format: 'jwk' });
  return { kid, alg, ...jwk, key_ops: ['verify'], svc_added_at: nowSeconds };
}

function generatePair(alg: string) {
  switch (alg) {
    case 'ES256':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' });
    case 'RS256':
      return generateKeyPairSync('rsa', { modulusLength: 2048 });
    case 'EdDSA':
      return generateKeyPairSync('ed25519');
    default:
      throw new CommandError(`--alg must be ES256, RS256 or EdDSA`);
  }
}

function keyOfSecret({ jwtSecret, jwtKeyId }: Settings): StoredKey {
  const k = Buffer.from(jwtSecret, 'utf8').toString('base64url');
  return { kid: jwtKeyId || 'jwt-secret', alg: 'HS256', kty: 'oct', k, key_ops: ['sign', 'verify'] };
}

function isStandby(key: StoredKey): boolean {
  return key.svc_added_at !== undefined && !canSign(key);
}

function canSign({ key_ops: operations = [] }: StoredKey): boolean {
  return operations.includes('sign');
}

function withoutTimes({ svc_added_at: _added, svc_replaced_at: _replaced, ...key }: StoredKey): StoredKey {
  return key;
}

function lifetimeSeconds({ jwtExpMs }: Settings): number {
  return Math.ceil(jwtExpMs / 1000) + replicaSeconds;
}

function toTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000', '');
}
