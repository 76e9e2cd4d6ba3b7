import { type FileWatch, watchFiles } from '@tollgate/kit/file-watch';
import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import type { Environment } from '@tollgate/kit/settings';
import { settingsSpec } from '../settings/settings.ts';
import type { LoadedSettings, ReadSettings } from './load-settings.ts';

/** What following a folder of variables takes. */
export interface ReloadDeps {
  /** What the service was started with. */
  readonly loaded: LoadedSettings;
  readonly read: () => Promise<ReadSettings>;
  /** The one setting that takes effect while the service runs; answers false when the value cannot be used. */
  readonly replaceKeys: (jwtKeys: string) => boolean;
  readonly logger: Logger;
}

/**
 * Follows a folder of variables: another value of JWT_KEYS is used at once. What else has changed is logged, as it takes effect at the
 * next start; nothing is used of settings of which one is wrong.
 */
export function createSettingsReload(folder: string, deps: ReloadDeps): LifecycleComponent {
  const { loaded, read, replaceKeys, logger } = deps;
  let watch: FileWatch | undefined;

  async function reload(): Promise<void> {
    const next = await read();
    if (!next.ok) return logger.error({ problem: next.message }, 'changed settings not used');
    replaceKeys(next.settings.jwtKeys);
    const later = changedVariables(loaded.env, next.env).filter((name) => name !== settingsSpec.jwtKeys.env);
    if (later.length > 0) logger.warn({ variables: later }, 'changed settings take effect at the next start');
  }

  return {
    name: 'settings',
    async start() {
      watch = await watchFiles({ paths: [folder], onChange: reload, logger });
    },
    stop: () => watch?.close(),
  };
}

/** The settings of which one of the variables that they may come from has another value: by their first names. */
function changedVariables(before: Environment, after: Environment): string[] {
  return Object.values(settingsSpec)
    .filter(({ env, aliases }) => [env, ...aliases].some((name) => before[name] !== after[name]))
    .map(({ env }) => env);
}
