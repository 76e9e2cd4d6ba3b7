import { type FileWatch, watchFiles } from '@tollgate/kit/file-watch';
import { configureHeap } from '@tollgate/kit/heap';
import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import { runUntilSignal } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import type { Environment } from '@tollgate/kit/settings';
import { StartReport } from '@tollgate/kit/start-report';
import packageJson from '../../package.json' with { type: 'json' };
import { buildApp } from '../app/app.ts';
import { givenValue } from '../config/builders.ts';
import { type Settings, settingsSpec, settingsSpecFor } from '../config/settings.ts';
import { incompleteSettings, type SettingWarning, settingWarnings } from '../config/warnings.ts';
import { developmentHints, startDevelopmentDatabase, withDefaultsOfMode } from './development.ts';
import {
  createCommandLogger,
  type EnvironmentFiles,
  type LoadedSettings,
  loadSettings,
  type ReadSettings,
  readSettingsFrom,
} from './load-settings.ts';

interface SettingsReloadOptions {
  /** The settings at startup. */
  readonly loaded: LoadedSettings;
  readonly read: () => Promise<ReadSettings>;
  /**
   * JWT_KEYS is the only setting that can change at run time. Returns false if the value is
   * invalid.
   */
  readonly replaceKeys: (jwtKeys: string) => boolean;
  readonly logger: Logger;
}

/**
 * Watches a folder of variables. A new value of JWT_KEYS takes effect immediately; other changes
 * are logged and take effect at the next start. Invalid settings are rejected as a whole.
 */
export class SettingsReload implements LifecycleComponent {
  readonly name = 'settings';
  readonly #folder: string;
  readonly #options: SettingsReloadOptions;
  #watch: FileWatch | undefined;

  constructor(folder: string, options: SettingsReloadOptions) {
    this.#folder = folder;
    this.#options = options;
  }

  async start(): Promise<void> {
    const { logger } = this.#options;
    this.#watch = await watchFiles({ paths: [this.#folder], onChange: () => this.#reload(), logger });
    // For changes during the start, which may have waited for the database.
    await this.#reload();
  }

  stop(): void {
    this.#watch?.close();
  }

  async #reload(): Promise<void> {
    const { loaded, read, replaceKeys, logger } = this.#options;
    const next = await read();
    if (!next.ok) return logger.error({ problem: next.message }, 'rejected changed settings');
    // A key file is watched separately; whether one is used is determined at startup.
    const usesKeys = loaded.settings.jwtKeysFile === '' && next.settings.jwtKeysFile === '';
    if (usesKeys) replaceKeys(next.settings.jwtKeys);
    const pending = changedVariables(loaded.env, next.env).filter(
      (name) => !(usesKeys && name === settingsSpec.jwtKeys.env),
    );
    if (pending.length > 0)
      logger.warn({ variables: pending }, 'changed settings take effect at the next start');
  }
}

/** Main names of the settings of which a variable has changed. */
function changedVariables(before: Environment, after: Environment): string[] {
  return Object.values(settingsSpec)
    .filter(({ env, aliases }) => [env, ...aliases].some((name) => before[name] !== after[name]))
    .map(({ env }) => env);
}

const unexpectedExit = new Error(
  'PostgreSQL exited unexpectedly: restart the server to recover committed data',
);

/** Serves until a signal. `takeOver` ends what handled signals until then. */
export async function serve(files: EnvironmentFiles, takeOver: () => void): Promise<void> {
  const loaded = await loadSettings(files, withDefaultsOfMode);
  const development = loaded.settings.mode === 'development';
  const report = new StartReport({
    ...{ service: 'auth', version: packageJson.version },
    ...{ spec: settingsSpecFor(loaded.env), sources: loaded.sources },
  });
  const logger = createCommandLogger(loaded.settings, report);
  warnOfSettings(loaded, logger);
  configureHeap({ growingPercent: 50 });
  try {
    const { settings, foundation, lost } = await startFoundation(loaded.settings);
    const options = { logger, nowMs: Date.now, report, ...(foundation && { foundation }) };
    const app = await buildApp(settings, options);
    const { replaceKeys } = app;
    const read = () => readSettingsFrom(files, withDefaultsOfMode);
    if (files.folder !== undefined)
      app.lifecycle.add(new SettingsReload(files.folder, { loaded, read, replaceKeys, logger }));
    if (development) {
      const print = (): void => void process.stdout.write(developmentHints(app.ports.http, settings));
      app.lifecycle.add({ name: 'hints', start: print });
    }
    void lost?.then(() => app.lifecycle.fail('the PostgreSQL of development mode exited', unexpectedExit));
    const exit = (code: number): void => process.exit(code);
    await runUntilSignal(app.lifecycle, { logger, signals: process, exit, takeOver });
  } catch (error) {
    logger.fatal({ err: error }, 'failed to start');
    process.exit(1);
  }
}

/** Starts the database of development mode, unless DATABASE_URL is set. */
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
  'no effect': 'setting has no effect',
  incomplete: 'setting is missing',
  'provider not served': 'identity provider is not supported, sign-in with it is rejected',
};

function warnOfSettings({ env, settings }: LoadedSettings, logger: Logger): void {
  const { securityProfile } = settingsSpec;
  if (!givenValue(securityProfile, env))
    logger.info(
      { setting: securityProfile.env, profile: settings.securityProfile },
      'security profile not set, using the defaults of GoTrue',
    );
  const warnings = [...settingWarnings(env), ...incompleteSettings(settings)];
  for (const { kind, ...fields } of warnings) logger.warn(fields, warningTexts[kind]);
}
