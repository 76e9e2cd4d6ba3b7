import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import { runUntilSignal } from '@tollgate/kit/run-until-signal';
import { buildApp } from '../app.ts';
import { startDevelopmentDatabase } from '../dev/development-database.ts';
import { withDefaultsOfMode } from '../dev/development-environment.ts';
import { developmentHints } from '../dev/development-hints.ts';
import { type SettingWarning, settingWarnings } from '../settings/setting-warnings.ts';
import type { Settings } from '../settings/settings.ts';
import { createCommandLogger } from './command-logger.ts';
import { type LoadedSettings, loadSettings, readSettingsFrom } from './load-settings.ts';
import { createSettingsReload } from './reload-settings.ts';
import type { Command } from './run-command.ts';

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
