import { migrate } from '../db/migrate.ts';
import type { Command } from './arguments.ts';
import { createCommandLogger, loadSettings } from './load-settings.ts';

/** `migrate` */
export const migrateCommand: Command = async ({ environmentFiles }) => {
  const { settings } = await loadSettings(environmentFiles);
  const logger = createCommandLogger(settings);
  try {
    await migrate(settings, { logger, indexes: 'wait' });
  } catch (error) {
    logger.fatal({ err: error }, 'migration failed');
    process.exitCode = 1;
  }
};
