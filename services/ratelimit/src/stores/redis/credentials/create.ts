import { getErrorMessage } from '@tollgate/kit/errors';
import { parseProgram } from '../../../config/redis-credentials.ts';
import { parseRedisAuth } from '../../../config/redis-target.ts';
import type { Settings } from '../../../config/settings.ts';
import { redisSettings } from '../../../config/stores.ts';
import type { Context } from '../../../context.ts';
import type { poolPrefixes } from '../../../metrics/names.ts';
import { CredentialLog } from '../telemetry.ts';
import { CredentialCommand } from './command.ts';
import { watchCredentialFiles } from './files.ts';
import { type CredentialSource, Login } from './login.ts';

type CredentialKey = `${'redis' | 'redisPerSecond'}${'AuthFile' | 'AuthCommand' | 'SentinelAuthFile'}`;

interface InstanceCredentials {
  readonly logins: { readonly login: Login; readonly sentinelLogin: Login };
  readonly sources: readonly CredentialSource[];
}

/** Reads the files of credentials; a program is run when the store starts. */
export async function createCredentials(
  instance: 'redis' | 'redisPerSecond',
  settings: Settings,
  { store, ...context }: Context & { readonly store: keyof typeof poolPrefixes },
): Promise<InstanceCredentials> {
  const isUsed = instance === 'redis' || settings.redisPerSecond;
  const createLog = (key: CredentialKey): CredentialLog =>
    new CredentialLog(context, { store, setting: redisSettings[key].env });
  const watch = async (key: CredentialKey, usernameFile = ''): Promise<CredentialSource | undefined> => {
    if (!isUsed || settings[key] === '') return undefined;
    const { onReloaded, onError } = createLog(key);
    try {
      const { logger } = context;
      const files = { authFile: settings[key], usernameFile };
      return await watchCredentialFiles(files, { onReloaded, onError, logger });
    } catch (cause) {
      throw new Error(`the file of ${redisSettings[key].env} cannot be used: ${getErrorMessage(cause)}`, {
        cause,
      });
    }
  };
  const program = parseProgram(settings[`${instance}AuthCommand`]);
  const source =
    isUsed && program !== undefined
      ? new CredentialCommand({
          ...createLog(`${instance}AuthCommand`),
          program,
          timeoutMs: settings[`${instance}AuthCommandTimeoutMs`],
          intervalMs: settings[`${instance}AuthCommandIntervalMs`],
          nowMs: context.nowMs,
          random: context.random,
        })
      : await watch(`${instance}AuthFile`, settings[`${instance}AuthUsernameFile`]);
  const sentinelSource = await watch(`${instance}SentinelAuthFile`);
  return {
    logins: {
      login: source?.login ?? new Login(parseRedisAuth(settings[`${instance}Auth`])),
      sentinelLogin: sentinelSource?.login ?? new Login(parseRedisAuth(settings[`${instance}SentinelAuth`])),
    },
    sources: [source, sentinelSource].filter((used) => used !== undefined),
  };
}
