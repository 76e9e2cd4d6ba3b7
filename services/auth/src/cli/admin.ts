import { text } from 'node:stream/consumers';
import { isAppError } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import type { Sql } from 'postgres';
import { createUser } from '../admin/create-user.ts';
import { deleteUser } from '../admin/users.ts';
import type { Settings } from '../config/settings.ts';
import { connect, disconnect } from '../db/connection.ts';
import { migrate } from '../db/migrate.ts';
import { Store } from '../db/store.ts';
import { isUuid } from '../http/api.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { ColumnCipher } from '../keys/column-encryption.ts';
import { systemRandomness } from '../keys/random.ts';
import { reencrypt } from '../keys/reencrypt.ts';
import { PasswordHasher } from '../passwords/hasher.ts';
import { LeakedPasswords } from '../passwords/leaked.ts';
import { checkPassword } from '../passwords/policy.ts';
import { normalizeEmail } from '../users/contact.ts';
import { createCommandLogger, type EnvironmentFiles, loadSettings } from './load-settings.ts';
import type { Command } from './run-command.ts';

/** Who the audit log names. */
const operator = { id: '', email: 'command line', phone: '', isSsoUser: false, userMetadata: {} };

/** `admin createuser`: prints the id of the new user. */
export const createUserCommand: Command = async ({ environmentFiles, args, flags }) => {
  const [email = '', given] = args;
  // What stands on a command line, everybody on the machine can see.
  const password = given ?? (await readPassword());
  await withStore(environmentFiles, async ({ store, settings, logger }) => {
    // The policy does not bind the API for administrators; here an empty or short one is a slip of whoever types.
    const leakedPasswords = new LeakedPasswords(settings, { logger, nowMs: Date.now });
    await checkPassword({ leakedPasswords, settings }, password);
    const context = { store, settings, random: systemRandomness, passwords: new PasswordHasher(settings) };
    const aud = flags.aud ?? settings.jwtAud;
    const input = { email, password, aud, role: flags.role, emailConfirm: flags.confirm };
    return (await createUser(context, input, { actor: operator, metadata: metadataNow() })).id;
  });
};

/** `admin deleteuser`: prints the id of the user who was deleted. */
export const deleteUserCommand: Command = async ({ environmentFiles, args: [who = ''], flags }) => {
  await withStore(environmentFiles, async ({ store, settings }) => {
    const id = await findId(store, who, flags.aud ?? settings.jwtAud);
    await deleteUser(store, { id, soft: false }, { actor: operator, metadata: metadataNow() });
    return id;
  });
};

/** `admin reencrypt`: prints how many values were encrypted, or decrypted, anew. */
export const reencryptCommand: Command = async ({ environmentFiles }) => {
  await withStore(environmentFiles, async ({ store }) => {
    const counts = Object.entries(await reencrypt({ store }));
    return counts.map(([column, count]) => `${column}: ${count}`).join('\n');
  });
};

/** The id itself, or that of the user with this email. */
async function findId(store: Store, who: string, aud: string): Promise<string> {
  if (isUuid(who)) return who.toLowerCase();
  const user = await store.users.findByEmail(normalizeEmail(who) ?? who, aud);
  if (user === undefined) throw new TypeError(`there is no user ${who}`);
  return user.id;
}

/** Runs `work` with the database, and prints what it answers; says why not, and sets the exit code 1, when it fails. */
async function withStore(
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
    // Somebody waits for the answer: that the database is away is one.
    await migrate({ ...settings, dbStartupTimeoutMs: 0 }, { logger });
    sql = connect(settings);
    process.stdout.write(
      `${await work({ store: new Store(sql, { cipher: new ColumnCipher(settings), dbSharedWithGotrue: settings.dbSharedWithGotrue }), settings, logger })}\n`,
    );
  } catch (error) {
    const isRefusal = isAppError(error) || error instanceof TypeError;
    if (isRefusal) process.stderr.write(`${error.message}\n`);
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

function metadataNow(): RequestMetadata {
  return { nowMs: Date.now(), clientAddress: '', userAgent: '', requestId: '' };
}
