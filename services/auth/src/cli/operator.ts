import { isAppError } from '@tollgate/kit/errors';
import { startTracing } from '@tollgate/kit/telemetry';
import { isUuid } from '@tollgate/kit/text';
import type { Context } from '../app/context.ts';
import { createContext } from '../app/create-context.ts';
import type { AuditActor } from '../audit/audit-log.ts';
import type { Settings } from '../config/settings.ts';
import { connect, disconnect } from '../db/connection.ts';
import { migrate } from '../db/migrate.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { SigningKeySource } from '../keys/key-source.ts';
import { normalizeEmail, normalizePhone, type User } from '../users/user.ts';
import { openDevelopmentDatabase, withDefaultsOfMode } from './development.ts';
import { createCommandLogger, type EnvironmentFiles, loadSettings } from './load-settings.ts';

/** The actor in the audit log. */
export const operator: AuditActor = {
  kind: 'command_line',
  id: '',
  email: 'command line',
  phone: '',
  userMetadata: {},
};

export function metadataNow(): RequestMetadata {
  return { nowMs: Date.now(), clientAddress: '', userAgent: '', requestId: '' };
}

/** An error of the operator, printed as it is. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, { exitCode = 1 }: { readonly exitCode?: number } = {}) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** A user by email, phone or id. @throws CommandError. */
export async function findUser({ store, settings }: Context, name: string, aud?: string): Promise<User> {
  const audience = aud ?? settings.jwtAud;
  const [email, phone] = [normalizeEmail(name), normalizePhone(name)];
  const found = isUuid(name)
    ? await store.users.findById(name.toLowerCase())
    : ((email !== undefined ? await store.users.findByEmail(email, audience) : undefined) ??
      (phone !== undefined ? await store.users.findByPhone(phone, audience) : undefined));
  if (found === undefined) throw new CommandError(`user not found: ${name}`);
  return found;
}

/** Mails of a command are sent before it ends, unless the mail server does not answer. */
const mailTimeoutMs = 30_000;

interface OperatorOptions {
  /** Default true. A command that changes nothing does not change the schema either. */
  readonly migrates?: boolean;
}

/**
 * Runs `work` with the services of the server and prints its result, or the error with its exit
 * code.
 */
export async function withContext(
  environmentFiles: EnvironmentFiles,
  work: (context: Context) => Promise<string>,
  options: OperatorOptions = {},
): Promise<void> {
  const { settings } = await loadSettings(environmentFiles, withDefaultsOfMode);
  const logger = createCommandLogger(settings);
  try {
    const database = await openDevelopmentDatabase(settings, process);
    try {
      const result = await runWork({ ...settings, databaseUrl: database.url }, { logger, work, ...options });
      process.stdout.write(result === '' ? '' : `${result}\n`);
    } finally {
      await database.stop();
    }
  } catch (error) {
    const isExpected = isAppError(error) || error instanceof CommandError || error instanceof TypeError;
    if (isExpected) process.stderr.write(`${error.message}\n`);
    else logger.fatal({ err: error }, 'command failed');
    process.exitCode = error instanceof CommandError ? error.exitCode : 1;
  }
}

async function runWork(
  settings: Settings,
  {
    logger,
    work,
    migrates = true,
  }: OperatorOptions & {
    readonly logger: Context['logger'];
    readonly work: (context: Context) => Promise<string>;
  },
): Promise<string> {
  // An operator waits, so an unavailable database is not retried.
  if (migrates) await migrate({ ...settings, dbStartupTimeoutMs: 0 }, { logger });
  const { keys } = await SigningKeySource.open(settings, { logger });
  const tracing = await startTracing({
    serviceName: settings.otelServiceName,
    enabled: false,
    protocol: 'http',
    samplingRate: 0,
  });
  const sql = connect(settings);
  try {
    // Without ext_authz there is no cache of identities.
    const parts = createContext(
      { ...settings, extAuthzEnabled: false },
      { logger, nowMs: Date.now },
      { sql, keys, telemetry: { tracing, registry: undefined } },
    );
    const result = await work(parts.context);
    await parts.context.background.close(AbortSignal.timeout(mailTimeoutMs));
    return result;
  } finally {
    await disconnect(sql);
  }
}
