import { type FileWatch, watchFiles } from '@tollgate/kit/file-watch';
import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import { runUntilSignal } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import type { Environment } from '@tollgate/kit/settings';
import { buildApp } from '../app.ts';
import { type Settings, settingsSpec } from '../config/settings.ts';
import { type SettingWarning, settingWarnings } from '../config/warnings.ts';
import { startDevelopmentDatabase } from '../dev/database.ts';
import { developmentHints, withDefaultsOfMode } from '../dev/environment.ts';
import {
  createCommandLogger,
  type LoadedSettings,
  loadSettings,
  type ReadSettings,
  readSettingsFrom,
} from './load-settings.ts';
import type { Command } from './run-command.ts';

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
    // Keys of a file are followed there; whether there is one is settled at the start.
    const followsKeys = loaded.settings.jwtKeysFile === '' && next.settings.jwtKeysFile === '';
    if (followsKeys) replaceKeys(next.settings.jwtKeys);
    const later = changedVariables(loaded.env, next.env).filter(
      (name) => !(followsKeys && name === settingsSpec.jwtKeys.env),
    );
    if (later.length > 0) logger.warn({ variables: later }, 'changed settings take effect at the next start');
  }

  return {
    name: 'settings',
    async start() {
      watch = await watchFiles({ paths: [folder], onChange: reload, logger });
      // What has changed while the service started, which may have waited for its database.
      await reload();
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

const endedByItself = new Error(
  'PostgreSQL ended although nobody stopped it: start the server again, which recovers what was committed',
);

/** `serve` */
export const serveCommand: Command = async ({ environmentFiles: files }) => {
  const loaded = await loadSettings(files, withDefaultsOfMode);
  const development = loaded.settings.mode === 'development';
  const logger = createCommandLogger(loaded.settings);
  warnOfSettings(loaded, logger);
  try {
    const { settings, foundation, lost } = await startFoundation(loaded.settings);
    const app = await buildApp(settings, { logger, nowMs: Date.now, ...(foundation && { foundation }) });
    const { replaceKeys } = app;
    const read = () => readSettingsFrom(files, withDefaultsOfMode);
    if (files.folder !== undefined)
      app.lifecycle.add(createSettingsReload(files.folder, { loaded, read, replaceKeys, logger }));
    if (development) {
      const print = (): void => void process.stdout.write(developmentHints(app.ports.http, settings));
      app.lifecycle.add({ name: 'hints', start: print });
    }
    void lost?.then(() => app.lifecycle.fail('the PostgreSQL of development mode ended', endedByItself));
    await runUntilSignal(app.lifecycle, { logger, signals: process, exit: (code) => process.exit(code) });
  } catch (error) {
    logger.fatal({ err: error }, 'not started');
    process.exit(1);
  }
};

/** In development mode without a database of one's own: starts one, and says where it is. */
async function startFoundation(
  settings: Settings,
): Promise<{ settings: Settings; foundation?: LifecycleComponent; lost?: Promise<void> }> {
  if (settings.mode !== 'development') return { settings };
  const loopback: Settings = { ...settings, apiHost: '127.0.0.1', otelExporterPullHost: '127.0.0.1' };
  const database = await startDevelopmentDatabase(loopback, process);
  if (database === undefined) return { settings: loopback };
  return {
    settings: { ...loopback, databaseUrl: database.url },
    foundation: { name: 'development database', stop: database.stop },
    lost: database.lost,
  };
}

const warningTexts: Readonly<Record<SettingWarning['kind'], string>> = {
  unknown: 'unknown setting',
  'no effect': 'setting is accepted and has no effect',
  'provider not served': 'identity provider is not served yet, sign-in with it is refused',
};

function warnOfSettings({ env }: LoadedSettings, logger: Logger): void {
  for (const { kind, ...fields } of settingWarnings(env)) logger.warn(fields, warningTexts[kind]);
}
