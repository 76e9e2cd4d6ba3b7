import { getErrorMessage } from '@tollgate/kit/errors';
import { readKeyFile, replaceKeyFile } from '@tollgate/kit/signing-key-file';
import { parseStoredKeys, type StoredKey } from '@tollgate/kit/signing-keys';
import { CommandFailure } from '../failure.ts';
import type { Terminal } from '../output/terminal.ts';
import { type SecretName, toSecretManifest } from './kubernetes.ts';

/** Where the keys come from. */
export interface KeySource {
  readonly keys: readonly StoredKey[];
  /** The file, which may not exist yet. */
  readonly path: string | undefined;
  /** The variable that has the keys, which this program cannot set. */
  readonly variable: string | undefined;
}

const prefixes = ['SVC_', 'GOTRUE_'];

/** The first variable that is set. */
function findVariable(env: NodeJS.ProcessEnv, name: string) {
  const variable = prefixes.map((prefix) => prefix + name).find((one) => env[one]);
  return variable === undefined ? undefined : { variable, value: env[variable] ?? '' };
}

/** JWT_SECRET with its `kid`. */
export function findSecret(
  env: NodeJS.ProcessEnv,
): { readonly value: string; readonly kid: string } | undefined {
  const secret = findVariable(env, 'JWT_SECRET');
  return secret && { value: secret.value, kid: findVariable(env, 'JWT_KEY_ID')?.value ?? '' };
}

/**
 * Reads the keys of `--file`, SVC_JWT_KEYS_FILE or SVC_JWT_KEYS.
 *
 * @throws CommandFailure, which never contains a key
 */
export async function readKeySource(
  { env, readInput }: { readonly env: NodeJS.ProcessEnv; readonly readInput: () => Promise<string> },
  file: string | undefined,
): Promise<KeySource> {
  const path = file ?? findVariable(env, 'JWT_KEYS_FILE')?.value;
  if (path === '-')
    return { keys: parse(await readInput(), 'standard input'), path: undefined, variable: undefined };
  if (path !== undefined) return { keys: parse(await read(path), path), path, variable: undefined };
  const { variable, value } = findVariable(env, 'JWT_KEYS') ?? {};
  if (value === undefined && findSecret(env) === undefined)
    throw new CommandFailure(
      'name the file with the keys: --file keys.json, - for standard input, or set SVC_JWT_KEYS_FILE or SVC_JWT_KEYS',
    );
  return { keys: parse(value ?? '', variable ?? ''), path: undefined, variable: variable ?? 'SVC_JWT_KEYS' };
}

async function read(path: string): Promise<string> {
  try {
    return await readKeyFile(path);
  } catch (error) {
    throw new CommandFailure(`${path} cannot be read: ${getErrorMessage(error)}`);
  }
}

function parse(text: string, where: string): readonly StoredKey[] {
  const parsed = parseStoredKeys(text);
  if (!parsed.ok) throw new CommandFailure(`${where}: ${parsed.problem}`);
  return parsed.keys;
}

interface Target {
  /** A file, or `-` for standard output. */
  readonly target: string;
  /** The Secret of the manifest; undefined for the keys alone. */
  readonly secret: SecretName | undefined;
}

/** @throws CommandFailure */
export async function writeKeys(
  terminal: Terminal,
  keys: readonly StoredKey[],
  { target, secret }: Target,
): Promise<void> {
  const text = `${JSON.stringify(keys, null, 2)}\n`;
  const output = secret === undefined ? text : toSecretManifest(secret, text);
  if (target === '-') return terminal.print(output);
  try {
    await replaceKeyFile(target, output);
  } catch (error) {
    throw new CommandFailure(`${target} cannot be written: ${getErrorMessage(error)}`);
  }
}
