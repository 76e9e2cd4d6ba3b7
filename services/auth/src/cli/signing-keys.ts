import { text } from 'node:stream/consumers';
import { getErrorMessage } from '@tollgate/kit/errors';
import { readKeyFile, replaceKeyFile } from '@tollgate/kit/signing-key-file';
import {
  addKey,
  findNextStep,
  keyOfSecret,
  longestTokenSeconds,
  newKeyAlgorithms,
  parseStoredKeys,
  type Rotation,
  type RotationContext,
  retireKeys,
  rotateKeys,
  type StoredKey,
  summarizeKeys,
  toTime,
} from '@tollgate/kit/signing-keys';
import type { Settings } from '../config/settings.ts';
import { parseSigningKeys } from '../keys/signing-keys.ts';
import type { Command, CommandFlags } from './arguments.ts';
import { withDefaultsOfMode } from './development.ts';
import { type EnvironmentFiles, loadSettings } from './load-settings.ts';
import { CommandError } from './operator.ts';

interface State {
  readonly keys: readonly StoredKey[];
  readonly settings: Settings;
  readonly context: RotationContext;
}

/** `signing-keys new` */
export const newKeyCommand: Command = ({ environmentFiles, flags }) =>
  changeKeys(environmentFiles, flags, ({ keys, settings, context }) => {
    const alg = newKeyAlgorithms.find((one) => one === (flags.alg ?? newKeyAlgorithms[0]));
    if (alg === undefined) throw new CommandError(`--alg must be ${newKeyAlgorithms.join(', ')}`);
    const { jwtSecret, jwtKeyId } = settings;
    return addKey(keys.length > 0 ? keys : [keyOfSecret(jwtSecret, jwtKeyId)], alg, context);
  });

/** `signing-keys rotate` */
export const rotateKeyCommand: Command = ({ environmentFiles, flags }) =>
  changeKeys(environmentFiles, flags, ({ keys, context }) => rotateKeys(keys, context));

/** `signing-keys retire` */
export const retireKeyCommand: Command = ({ environmentFiles, flags, args: [kid] }) =>
  changeKeys(environmentFiles, flags, ({ keys, context }) => retireKeys(keys, kid, context));

/** Reads the keys, changes them and writes them back, or prints them if they are in no file. */
async function changeKeys(
  environmentFiles: EnvironmentFiles,
  flags: CommandFlags,
  change: (state: State) => Rotation,
): Promise<void> {
  const { settings } = await loadSettings(environmentFiles, withDefaultsOfMode);
  const file = flags.file ?? (settings.jwtKeysFile === '' ? undefined : settings.jwtKeysFile);
  try {
    const keys = await readKeys(file, settings);
    const lifetimeSeconds = longestTokenSeconds(settings);
    const nowSeconds = Math.floor(Date.now() / 1000);
    const context = { nowSeconds, lifetimeSeconds, isForced: flags.force === true };
    const changed = change({ keys, settings, context });
    if (!changed.ok) throw new CommandError(changed.problem);
    checkKeys(changed.keys, settings);
    const output = `${JSON.stringify(changed.keys, null, 2)}\n`;
    if (file === undefined || file === '-') process.stdout.write(output);
    else await replaceKeyFile(file, output);
    const place = file === undefined ? ['set SVC_JWT_KEYS to the output'] : [];
    const { step, from, why } = findNextStep(summarizeKeys(changed.keys), lifetimeSeconds);
    const next =
      from === undefined ? [] : [`wait until ${toTime(from)} (${why}), then run signing-keys ${step}`];
    const lines = [...place, changed.done, ...changed.notes, ...next];
    process.stderr.write(lines.map((line) => `${line}\n`).join(''));
  } catch (error) {
    process.stderr.write(`${getErrorMessage(error)}\n`);
    process.exitCode = 1;
  }
}

async function readKeys(file: string | undefined, settings: Settings): Promise<readonly StoredKey[]> {
  const source = await readSource(file, settings);
  const parsed = parseStoredKeys(source);
  if (!parsed.ok) throw new CommandError(`${file ?? 'SVC_JWT_KEYS'}: ${parsed.problem}`);
  // With a problem of the present keys, the server would not start.
  if (parsed.keys.length > 0) checkKeys(parsed.keys, settings);
  return parsed.keys;
}

function readSource(file: string | undefined, settings: Settings): Promise<string> | string {
  if (file === undefined) return settings.jwtKeys;
  return file === '-' ? text(process.stdin) : readKeyFile(file);
}

/** Also the settings restrict keys. */
function checkKeys(keys: readonly StoredKey[], settings: Settings): void {
  const parsed = parseSigningKeys({ ...settings, jwtKeys: JSON.stringify(keys) });
  if (!parsed.ok) throw new CommandError(`invalid keys: expected ${parsed.expected}`);
}
