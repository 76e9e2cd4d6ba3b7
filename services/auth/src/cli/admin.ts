import { text } from 'node:stream/consumers';
import { isAppError } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import type { Sql } from 'postgres';
import { createUser, deleteUser } from '../admin/users.ts';
import type { Settings } from '../config/settings.ts';
import { connect, disconnect } from '../db/connection.ts';
import { migrate } from '../db/migrate.ts';
import { Store } from '../db/store.ts';
import { isUuid } from '../http/api.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { ColumnCipher, reencrypt, systemRandomness } from '../keys/secrets.ts';
import { LeakedPasswords } from '../passwords/leaked-passwords.ts';
import { checkPassword, PasswordHasher } from '../passwords/passwords.ts';
import { normalizeEmail } from '../users/user.ts';
import { createCommandLogger, type EnvironmentFiles, loadSettings } from './load-settings.ts';
import type { Command } from './run-command.ts';

/** The actor in the audit log. */
export const operator = { id: '', email: 'command line', phone: '', isSsoUser: false, userMetadata: {} };

/** `admin createuser`: prints the id of the new user. */
export const createUserCommand: Command = async ({ environmentFiles, args, flags }) => {
  const [email = '', given] = args;
  // Other users of the machine can see command lines.
  const password = given ?? (await readPassword());
  await withStore(environmentFiles, async ({ store, settings, logger }) => {
    // The admin API does not apply the policy; here an empty or short password is most likely a
    // mistake.
    const leakedPasswords = new LeakedPasswords(settings, { logger, nowMs: Date.now });
    await checkPassword({ leakedPasswords, settings }, password);
    const context = { store, settings, random: systemRandomness, passwords: new PasswordHasher(settings) };
    const aud = flags.aud ?? settings.jwtAud;
    const input = { email, password, aud, role: flags.role, emailConfirm: flags.confirm };
    return (await createUser(context, input, { actor: operator, metadata: metadataNow() })).id;
  });
};

/** `admin deleteuser`: prints the id of the user who was deleted. */
export const deleteUserCommand: Command = async ({ environmentFiles, args: [user = ''], flags }) => {
  await withStore(environmentFiles, async ({ store, settings }) => {
    const id = await findId(store, user, flags.aud ?? settings.jwtAud);
    await deleteUser(store, { id, soft: false }, { actor: operator, metadata: metadataNow() });
    return id;
  });
};

/** `admin reencrypt`: prints the number of changed values. */
export const reencryptCommand: Command = async ({ environmentFiles }) => {
  await withStore(environmentFiles, async ({ store }) => {
    const counts = Object.entries(await reencrypt({ store }));
    return counts.map(([column, count]) => `${column}: ${count}`).join('\n');
  });
};

/** `user` is an id or an email address. */
async function findId(store: Store, user: string, aud: string): Promise<string> {
  if (isUuid(user)) return user.toLowerCase();
  const found = await store.users.findByEmail(normalizeEmail(user) ?? user, aud);
  if (found === undefined) throw new TypeError(`user not found: ${user}`);
  return found.id;
}

/** Runs `work` with the database and prints its result, or the error with exit code 1. */
export async function withStore(
  environmentFiles: EnvironmentFiles,
  work: (services: {
    readonly store: Store;
    readonly settings: Settings;
    readonly logger: Logger;
  }) => Promise<string>,
): Promise<void> {
  const { settings } = await loadSettings(environmentFiles);
  const logger = createCommandLogger(settings);
  let sql: Sql | undefined;
  try {
    // An operator waits, so an unavailable database is not retried.
    await migrate({ ...settings, dbStartupTimeoutMs: 0 }, { logger });
    sql = connect(settings);
    process.stdout.write(
      `${await work({ store: new Store(sql, { cipher: new ColumnCipher(settings), dbSharedWithGotrue: settings.dbSharedWithGotrue }), settings, logger })}\n`,
    );
  } catch (error) {
    const isExpected = isAppError(error) || error instanceof TypeError;
    if (isExpected) process.stderr.write(`${error.message}\n`);
    else logger.fatal({ err: error }, 'command failed');
    process.exitCode = 1;
  } finally {
    if (sql !== undefined) await disconnect(sql);
  }
}

async function readPassword(): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write('Password (will be shown; end with Ctrl-D): ');
  return (await text(process.stdin)).replace(/\r?\n$/, '');
}

export function metadataNow(): RequestMetadata {
  return { nowMs: Date.now(), clientAddress: '', userAgent: '', requestId: '' };
}
