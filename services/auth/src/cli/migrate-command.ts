import { migrate } from '../store/postgres/migrate.ts';
import { createCommandLogger } from './command-logger.ts';
import { loadSettings } from './load-settings.ts';
import type { Command } from './run-command.ts';

/** `migrate` */
export const migrateCommand: Command = async ({ environmentFiles }) => {
  const { settings } = await loadSettings(environmentFiles);
  const logger = createCommandLogger(settings);
  try {
    await migrate(settings, { logger });
  } catch (error) {
    logger.fatal({ err: error }, 'schema not brought up to date');
    process.exitCode = 1;
  }
};
